"""Built-in checks: exact reasons, offsets, and silence where nothing was checked."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from opentelemetry.trace import INVALID_SPAN

from claudescope.assess.json_text import Broken, parsed, value_span
from claudescope.assess.protocol import Verdict
from claudescope.assess.schema_form import well_formed
from claudescope.assess.schemas import LONGEST_MATCHED, Schemas, Undecided
from claudescope.assess.stop_reason import StopReason
from claudescope.assess.stream import StreamFailure
from claudescope.assess.structured_output import StructuredOutput
from claudescope.assess.tool_input import ToolInput
from claudescope.assess.tool_json import ToolJson
from claudescope.assess.tool_name import ToolName
from claudescope.assess.tool_result import ToolResultError
from claudescope.steps.blocks import steps_of
from claudescope.steps.model import Block, Call, Chain, Reason, Step

VALID = Verdict(True)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "weather", "description": "d", "input_schema": SCHEMA}


def invalid(check: str, code: str, start: int | None = None, end: int | None = None) -> Verdict:
    return Verdict(False, (Reason(check, code, start, end),))


def call(**request: Any) -> Call:
    made = Call(Chain(), 0, INVALID_SPAN, owned=False)
    made.request = json.dumps(request).encode()
    return made


def tool_use(text: str, name: str = "weather", kind: str = "tool_use", **block: Any) -> Step:
    fields = {"type": kind, "id": "t1", "name": name, "input": {}}
    made = Block(0, kind, fields, 0, 9, [(0, 1, text)], streamed=True, **block)
    return steps_of(made, "segment", 64)[0]


def text_step(text: str, stop_reason: str | None = "end_turn", mode: str = "segment") -> Step:
    made = Block(0, "text", {"type": "text", "text": text}, 0, 9, stop_reason=stop_reason)
    return steps_of(made, mode, 64)[-1]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"city": "Oslo"}', VALID),
        ('{"city": "Oslo", "days": [1, 2]}', VALID),
        ('{"city": 5}', invalid("tool_input", "schema_mismatch", 9, 10)),
        ('{"city": "Oslo", "days": [1, "two", 3]}', invalid("tool_input", "schema_mismatch", 29, 34)),
        ('{"days": [1]}', invalid("tool_input", "schema_mismatch", 0, 13)),
        ('{"city": "Oslo", "planet": 1}', invalid("tool_input", "schema_mismatch", 0, 29)),
        ("", invalid("tool_input", "schema_mismatch", 0, 0)),  # no text is {}, and the city is missing
        ('{"city": "Os', None),
    ],
)
def test_tool_input(text: str, verdict: Verdict | None) -> None:
    assert ToolInput().check(tool_use(text), call(tools=[{"name": "other"}, WEATHER])) == verdict


def test_tool_input_is_silent_where_there_is_no_usable_schema() -> None:
    check = ToolInput().check
    step = tool_use('{"command": 5}', "bash")
    assert check(step, call()) is None
    assert check(step, call(tools=[{"type": "bash_20250124", "name": "bash"}])) is None
    assert check(step, call(tools=[{"name": "bash", "input_schema": {"type": "objekt"}}])) is None
    assert check(step, call(tools=[{"name": "bash", "input_schema": {"$ref": "http://127.0.0.1:9/x"}}])) is None
    assert check(step, call(tools="no")) is None
    assert check(tool_use("{}", kind="server_tool_use"), call(tools=[WEATHER])) is None
    assert check(text_step("{}"), call(tools=[WEATHER])) is None
    assert check(tool_use("", incomplete="closed"), call(tools=[WEATHER])) is None


def test_whole_tool_input_has_offsets_into_its_json() -> None:
    made = Block(
        0, "tool_use", {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "é", "days": [""]}}, 0, 9
    )
    (step,) = steps_of(made, "segment", 64)
    assert step.text == '{"city":"é","days":[""]}'
    assert ToolInput().check(step, call(tools=[WEATHER])) == invalid("tool_input", "schema_mismatch", 20, 22)


@pytest.mark.parametrize(
    ("name", "kind", "tools", "verdict"),
    [
        ("weather", "tool_use", [WEATHER], VALID),
        ("bash", "tool_use", [{"type": "bash_20250124", "name": "bash"}], VALID),
        ("wether", "tool_use", [WEATHER], invalid("tool_name", "unknown")),
        ("wether", "tool_use", [WEATHER, {"type": "toolset"}], None),
        ("wether", "tool_use", [], None),
        ("web_search", "server_tool_use", [WEATHER], None),
        ("anything", "mcp_tool_use", [WEATHER], None),
    ],
)
def test_tool_name(name: str, kind: str, tools: list[Any], verdict: Verdict | None) -> None:
    assert ToolName().check(tool_use("{}", name, kind), call(tools=tools)) == verdict
    assert ToolName().check(tool_use("{}", name, kind), call()) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", VALID),
        ("{}", VALID),
        ('{"a": [1, {"b": null}]}', VALID),
        ('{"a": "b', invalid("tool_json", "truncated", 6, 8)),
        ('{"a": ', invalid("tool_json", "truncated", 6, 6)),
        ('{"a"', invalid("tool_json", "truncated", 4, 4)),
        ('{"a": 1', invalid("tool_json", "truncated", 7, 7)),
        ('{"a": tru', invalid("tool_json", "truncated", 6, 9)),
        ('{"a": -', invalid("tool_json", "truncated", 6, 7)),
        ("{", invalid("tool_json", "truncated", 1, 1)),
        ('{"a": 1,}', invalid("tool_json", "malformed", 7, 9)),
        ("{'a': 1}", invalid("tool_json", "malformed", 1, 8)),
        ('{"a": 1} x', invalid("tool_json", "malformed", 9, 10)),
        ('{"a": maybe}', invalid("tool_json", "malformed", 6, 12)),
        ("[1]", invalid("tool_json", "not_object", 0, 3)),
    ],
)
@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
def test_tool_json(text: str, verdict: Verdict, kind: str) -> None:
    # Python 3.13 points at the comma before a closing brace, earlier versions at the brace after it.
    got = ToolJson().check(tool_use(text, kind=kind), call())
    if text == '{"a": 1,}':
        assert got is not None
        assert (got.valid, got.reasons[0].code, got.reasons[0].end) == (False, "malformed", 9)
        assert got.reasons[0].start in (7, 8)
    else:
        assert got == verdict


def test_tool_json_has_nothing_to_check_in_a_whole_message() -> None:
    made = Block(0, "tool_use", {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}, 0, 9)
    assert ToolJson().check(steps_of(made, "segment", 64)[0], call()) is None
    assert ToolJson().check(text_step("{"), call()) is None
    assert ToolJson().check(tool_use("", incomplete="failed"), call()) is None


@pytest.mark.parametrize("code", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_stop_reason(code: str) -> None:
    assert StopReason().check(text_step("cut", code), call()) == invalid("stop_reason", code)


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "stop_sequence", "pause_turn", "something_new", None])
def test_other_stop_reasons_say_nothing(reason: str | None) -> None:
    assert StopReason().check(text_step("whole", reason), call()) is None


def test_stop_reason_is_the_last_sub_steps() -> None:
    made = Block(0, "text", {"text": "Step 1: a\nStep 2: b"}, 0, 9, stop_reason="max_tokens")
    first, second = steps_of(made, "segment", 64)
    assert StopReason().check(first, call()) is None
    assert StopReason().check(second, call()) == invalid("stop_reason", "max_tokens")


FORMAT = {"type": "json_schema", "schema": SCHEMA}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"city": "Oslo"}', VALID),
        ('{"city": 5}', invalid("structured_output", "schema_mismatch", 9, 10)),
        ('Sure! {"city": "Oslo"}', invalid("structured_output", "not_json", 0, 22)),
        ('{"city": "Os', invalid("structured_output", "not_json", 9, 12)),
        ("", invalid("structured_output", "not_json", 0, 0)),
    ],
)
def test_structured_output(text: str, verdict: Verdict) -> None:
    check = StructuredOutput().check
    assert check(text_step(text), call(output_config={"format": FORMAT})) == verdict
    assert check(text_step(text), call(output_format=FORMAT)) == verdict
    assert check(text_step(text), call()) is None
    assert check(text_step(text), call(output_config={"effort": "low"})) is None
    assert check(text_step(text, "tool_use"), call(output_format=FORMAT)) is None
    assert check(text_step(text, "refusal"), call(output_format=FORMAT)) is None
    assert check(text_step(text, None), call(output_format=FORMAT)) is None


def test_structured_output_without_a_usable_schema() -> None:
    check = StructuredOutput().check
    bad = {"type": "json_schema", "schema": {"required": "city"}}
    assert check(text_step("{}"), call(output_format=bad)) is None
    assert check(text_step("{"), call(output_format=bad)) == invalid("structured_output", "not_json", 1, 1)
    assert check(text_step("{}"), call(output_format={"type": "json_schema"})) == VALID


def test_structured_output_offsets_are_into_the_last_step() -> None:
    text = "Step 1: talk\nStep 2: " + '{"city": 1}'
    assert text_step(text).text == 'Step 2: {"city": 1}'
    verdict = StructuredOutput().check(text_step(text), call(output_format=FORMAT))
    assert verdict == invalid("structured_output", "not_json", 0, 19)  # it stops to be JSON before this step


def test_a_long_json_answer_is_one_step() -> None:
    text = json.dumps({"city": "Oslo is far. " * 200, "notes": ["Step 1: go.\n\nStep 2: on."] * 9}, indent=1)
    made = Block(0, "text", {"text": text}, 0, 9, stop_reason="end_turn")
    assert len(steps_of(made, "segment", 64)) == 1


def test_tool_result() -> None:
    check = ToolResultError().check

    def result(kind: str, is_error: bool | None) -> Verdict | None:
        return check(Step(kind, 0, 1, "measured", is_error=is_error), call())

    for kind in ("tool_run", "mcp_tool_result", "web_search_tool_result"):
        assert result(kind, False) == VALID
        assert result(kind, True) == invalid("tool_result", "is_error")
        assert result(kind, None) is None
    assert result("text", True) is None


@pytest.mark.parametrize(
    ("incomplete", "verdict"),
    [("failed", invalid("stream", "failed")), ("closed", None), ("dropped", None), ("cancelled", None), (None, None)],
)
def test_stream(incomplete: Any, verdict: Verdict | None) -> None:
    made = Block(0, "text", {"text": "Step 1: a\nStep 2: b"}, 0, 9, [], True, incomplete)
    first, second = steps_of(made, "segment", 64)
    assert StreamFailure().check(first, call()) is None
    assert StreamFailure().check(second, call()) == verdict


@pytest.mark.parametrize(
    ("path", "span"),
    [
        ((), '{"a": [1, {"b\\"": "x, ]}"}], "c": {}, "c": -2.5 }'),
        (("a",), '[1, {"b\\"": "x, ]}"}]'),
        (("a", 1), '{"b\\"": "x, ]}"}'),
        (("a", 1, 'b"'), '"x, ]}"'),
        (("c",), "-2.5"),
    ],
)
def test_value_span(path: tuple[str | int, ...], span: str) -> None:
    text = ' {"a": [1, {"b\\"": "x, ]}"}], "c": {}, "c": -2.5 } '
    start, end = value_span(text, path)
    assert text[start:end] == span


def test_value_span_of_a_path_that_is_not_there() -> None:
    assert value_span('{"a": 1}', ("b",)) == (0, 8)
    assert value_span("{", ("b",)) == (0, 1)


def test_parsed_cut_inside_an_escape() -> None:
    assert parsed('{"a": "\\u12')[1] == Broken("truncated", parsed('{"a": "\\u12')[1].start, 11)  # type: ignore[union-attr]
    broken = parsed('{"a": "\\q"}')[1]
    assert broken is not None
    assert broken.code == "malformed"


def undecided(schema: Any, instance: Any) -> bool:
    try:
        Schemas().violation(schema, instance)
    except Undecided:
        return True
    return False


def test_schemas_that_cannot_decide() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fetch over the network would warn
        assert undecided({"$ref": "http://127.0.0.1:9/schema"}, {})
    assert undecided({"$ref": "#"}, {})
    assert undecided({"$ref": "#/$defs/none"}, {})
    assert undecided("text", {})
    assert undecided({"properties": {"a": {"type": "str"}}}, {})
    assert undecided({"pattern": "("}, "x")
    assert undecided({"pattern": "^(a+)+$"}, "a" * 40 + "b")
    assert undecided({"pattern": "a"}, "a" * (LONGEST_MATCHED + 1))
    assert undecided({"patternProperties": {"a": {}}}, {"a" * (LONGEST_MATCHED + 1): 1})
    assert not undecided({"pattern": r"^(\d{1,3}\.){3}\d{1,3}$"}, "10.0.0.1")
    # A property may be called like a keyword.
    assert not undecided({"properties": {"pattern": {"type": "string"}, "type": {"enum": [1]}, "required": {}}}, {})


def test_references_inside_a_schema_work() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}
    assert Schemas().violation(schema, {"a": 1}) is None
    assert Schemas().violation(schema, {"a": "1"}) == ("a",)


def test_schemas_are_compiled_once_and_bounded() -> None:
    schemas = Schemas(capacity=3)
    for n in range(10):
        assert schemas.violation({"const": n}, n) is None
        assert schemas.violation({"const": n}, n + 1) == ()
    assert len(schemas) == 3


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": 3},
        {"required": "a"},
        {"required": [1]},
        {"properties": []},
        {"properties": {"a": 1}},
        {"items": [{}]},
        {"anyOf": {}},
        {"minimum": "1"},
        {"maxLength": -1},
        {"multipleOf": 0},
        {"pattern": "["},
        {"enum": "abc"},
        {"$defs": {"x": {"type": "int"}}},
        None,
        [],
    ],
)
def test_schemas_that_are_not_well_formed(schema: Any) -> None:
    assert well_formed(schema) is None


def test_well_formed_gives_the_expressions() -> None:
    schema = {"properties": {"a": {"pattern": "x"}}, "patternProperties": {"^y": {}}, "default": {"pattern": 3}}
    assert sorted(well_formed(schema) or ()) == ["^y", "x"]
    assert well_formed(True) == well_formed({}) == well_formed({"x-own": 1, "type": ["string", "null"]}) == []
