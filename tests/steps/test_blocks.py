"""Blocks of a message and steps of a block: texts, names, exact times and where the times come from."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.steps.blocks import SUB_STEPS_MAX, blocks_of, steps_of
from claudescope.steps.model import Block, Delta

THREE = "Step 1: aa\nStep 2: bb\nStep 3: cc"  # 11, 11 and 10 characters


def message(*content: object, stop_reason: str | None = "end_turn") -> dict[str, object]:
    return {"type": "message", "content": list(content), "stop_reason": stop_reason}


def text(value: str) -> dict[str, object]:
    return {"type": "text", "text": value}


def test_time_is_shared_out_by_what_the_model_wrote() -> None:
    blocks = blocks_of(
        message(
            {"type": "thinking", "thinking": "x" * 50, "signature": "s" * 999},
            {"type": "redacted_thinking", "data": "d" * 10},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "abcdef"}},  # 14 as JSON
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"encrypted_content": "e" * 999}]},
            text("y" * 26),
        ),
        1_000,
        2_000,
    )
    assert [(b.index, b.type, b.started, b.ended) for b in blocks] == [
        (0, "thinking", 1_000, 1_500),
        (1, "redacted_thinking", 1_500, 1_600),
        (2, "server_tool_use", 1_600, 1_740),
        (3, "web_search_tool_result", 1_740, 1_740),
        (4, "text", 1_740, 2_000),
    ]
    assert [b.stop_reason for b in blocks] == [None, None, None, None, "end_turn"]
    assert not any(b.streamed for b in blocks)


def test_blocks_without_length() -> None:
    assert [(b.started, b.ended) for b in blocks_of(message(text(""), text("")), 0, 100)] == [(0, 50), (50, 100)]
    assert [(b.started, b.ended) for b in blocks_of(message(text("a"), text("")), 0, 100)] == [(0, 100), (100, 100)]
    assert [(b.started, b.ended) for b in blocks_of(message(text("a")), 100, 50)] == [(100, 100)]
    assert blocks_of(message(), 0, 1) == blocks_of({}, 0, 1) == blocks_of({"content": 3}, 0, 1) == []
    assert [b.fields for b in blocks_of({"content": "hi"}, 0, 1)] == [text("hi")]
    assert [b.type for b in blocks_of(message("x", {"text": "y"}), 0, 1)] == ["unknown"]


def test_whole_block_in_sub_steps_by_length() -> None:
    (block,) = blocks_of(message(text(THREE)), 0, 320)
    steps = steps_of(block, "segment", SUB_STEPS_MAX)
    assert [(s.name, s.text, s.started, s.ended, s.last) for s in steps] == [
        ("step 1", "Step 1: aa\n", 0, 110, False),
        ("step 2", "Step 2: bb\n", 110, 220, False),
        ("step 3", "Step 3: cc", 220, 320, True),
    ]
    assert {s.latency_source for s in steps} == {"apportioned"}
    assert {s.kind for s in steps} == {"text"}
    assert all(s.block is block and s.merged == 0 and s.index == -1 for s in steps)


def test_block_mode_does_not_cut() -> None:
    (block,) = blocks_of(message(text(THREE)), 0, 320)
    (step,) = steps_of(block, "block", SUB_STEPS_MAX)
    assert (step.text, step.name, step.started, step.ended, step.last) == (THREE, None, 0, 320, True)


@pytest.mark.parametrize(
    ("budget", "count", "merged"), [(64, 3, 0), (3, 3, 0), (2, 2, 1), (1, 1, 2), (0, 1, 2), (-5, 1, 2)]
)
def test_beyond_the_budget_steps_are_merged(budget: int, count: int, merged: int) -> None:
    (block,) = blocks_of(message(text(THREE)), 0, 320)
    steps = steps_of(block, "segment", budget)
    assert len(steps) == count
    assert "".join(s.text for s in steps) == THREE
    assert [s.merged for s in steps] == [0] * (count - 1) + [merged]
    assert steps[-1].name == f"step {count}"


def test_streamed_sub_steps_end_with_the_delta_of_their_last_character() -> None:
    deltas: list[Delta] = [
        (100, 200, "Step 1: a"),
        (200, 300, "a\nStep"),  # the last character of step 1
        (300, 400, " 2: bb"),
        (400, 500, "\n"),  # of step 2
        (500, 600, "Step 3: cc"),
    ]
    block = Block(0, "text", text(""), 100, 650, deltas, streamed=True, stop_reason="end_turn")
    steps = steps_of(block, "segment", SUB_STEPS_MAX)
    assert [(s.name, s.started, s.ended) for s in steps] == [
        ("step 1", 100, 300),
        ("step 2", 300, 500),
        ("step 3", 500, 650),
    ]
    assert "".join(s.text for s in steps) == THREE
    assert {s.latency_source for s in steps} == {"measured"}


def test_text_that_comes_with_the_start_counts() -> None:
    block = Block(0, "text", text("Step 1: aa\nSt"), 100, 300, [(100, 250, "ep 2: bb")], streamed=True)
    assert [(s.text, s.started, s.ended) for s in steps_of(block, "segment", 64)] == [
        ("Step 1: aa\n", 100, 100),
        ("Step 2: bb", 100, 300),
    ]


@pytest.mark.parametrize(
    ("pulled", "source"), [(100, "measured"), (120, "measured"), (121, "consumer"), (190, "consumer")]
)
def test_the_apps_own_time_between_reads(pulled: int, source: str) -> None:
    # The block starts at 100 and lasts 100; the app asks for its only delta at `pulled`: over 20 is the app's own.
    block = Block(0, "text", text(""), 100, 200, [(pulled, 200, "hello")], streamed=True)
    assert [s.latency_source for s in steps_of(block, "segment", 64)] == [source]


def test_a_slow_read_counts_for_the_step_that_it_delays() -> None:
    deltas: list[Delta] = [(100, 200, "Step 1: aa\n"), (200, 300, "Step 2: bb\n"), (380, 400, "Step 3: cc")]
    block = Block(0, "text", text(""), 100, 410, deltas, streamed=True)
    assert [s.latency_source for s in steps_of(block, "segment", 64)] == ["measured", "measured", "consumer"]


def test_an_empty_delta_counts_its_wait() -> None:
    block = Block(0, "text", text(""), 100, 200, [(100, 110, "hi"), (190, 200, "")], streamed=True)
    assert [s.latency_source for s in steps_of(block, "block", 64)] == ["consumer"]


def test_tool_use() -> None:
    fields = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
    streamed = Block(1, "tool_use", fields, 0, 9, [(0, 1, ""), (1, 2, '{"a": '), (2, 3, "1}")], streamed=True)
    (step,) = steps_of(streamed, "segment", 64)
    assert (step.kind, step.tool_name, step.tool_call_id, step.text) == ("tool_use", "add", "t1", '{"a": 1}')
    assert step.is_error is None
    assert steps_of(Block(1, "tool_use", fields, 0, 9, [(0, 1, "")], streamed=True), "segment", 64)[0].text == ""
    whole = Block(1, "tool_use", {**fields, "input": {"b": [1, "é"], "a": None}}, 0, 9)
    assert steps_of(whole, "segment", 64)[0].text == '{"b":[1,"é"],"a":null}'
    assert steps_of(Block(1, "tool_use", fields, 0, 9), "segment", 64)[0].text == "{}"
    eager = Block(1, "tool_use", {**fields, "input": {"a": 1}}, 0, 9, streamed=True)
    assert steps_of(eager, "segment", 64)[0].text == '{"a":1}'
    for kind in ("server_tool_use", "mcp_tool_use"):
        (step,) = steps_of(Block(1, kind, {**fields, "type": kind}, 0, 9), "segment", 64)
        assert (step.kind, step.tool_name, step.tool_call_id) == (kind, "add", "t1")


@pytest.mark.parametrize(
    ("fields", "is_error", "words"),
    [
        (
            {"type": "mcp_tool_result", "is_error": False, "content": [{"type": "text", "text": "a"}, {"text": "b"}]},
            False,
            "a\nb",
        ),
        ({"type": "mcp_tool_result", "is_error": True, "content": "no"}, True, "no"),
        ({"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": "u"}]}, False, ""),
        (
            {
                "type": "web_search_tool_result",
                "content": {"type": "web_search_tool_result_error", "error_code": "max"},
            },
            True,
            '{"type":"web_search_tool_result_error","error_code":"max"}',
        ),
        (
            {"type": "code_execution_tool_result", "content": {"type": "code_execution_result", "return_code": 1}},
            False,
            '{"type":"code_execution_result","return_code":1}',
        ),
        ({"type": "new_tool_result", "content": {"type": "new_error"}}, True, '{"type":"new_error"}'),
        ({"type": "new_tool_result"}, False, ""),
    ],
)
def test_results_of_server_tools(fields: dict[str, object], is_error: bool, words: str) -> None:
    (step,) = steps_of(Block(0, str(fields["type"]), {**fields, "tool_use_id": "s1"}, 0, 1), "segment", 64)
    assert (step.tool_call_id, step.is_error, step.text, step.tool_name) == ("s1", is_error, words, None)


def test_redacted_and_unknown_blocks() -> None:
    (step,) = steps_of(Block(0, "redacted_thinking", {"data": "zzz", "text": "no"}, 0, 1), "segment", 64)
    assert (step.kind, step.text) == ("redacted_thinking", "")
    (step,) = steps_of(Block(0, "compaction", {"content": "sum"}, 0, 1), "segment", 64)
    assert (step.kind, step.text) == ("compaction", "sum")
    (step,) = steps_of(Block(0, "hologram", {"beam": "x"}, 0, 1), "segment", 64)
    assert (step.kind, step.text) == ("hologram", "")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
_KINDS = st.sampled_from(
    ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_result", "tool_result", "later"]
)
_FIELDS = st.dictionaries(
    st.sampled_from(["type", "text", "thinking", "content", "input", "id", "name", "tool_use_id", "is_error", "data"]),
    _JSON,
)


@given(
    st.dictionaries(st.sampled_from(["content", "stop_reason"]), st.lists(_FIELDS | _JSON) | _JSON), st.integers(0, 99)
)
@settings(max_examples=200, deadline=None)
def test_any_json_is_a_message(body: dict[str, object], duration: int) -> None:
    blocks = blocks_of(body, 7, 7 + duration)
    for block in blocks:
        assert steps_of(block, "segment", 64)[-1].last
    if blocks:
        assert blocks[0].started == 7
        assert blocks[-1].ended == 7 + duration
        assert all(a.ended == b.started for a, b in itertools.pairwise(blocks))


@given(
    _KINDS, _FIELDS, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.text(max_size=30))), st.booleans()
)
@settings(max_examples=200, deadline=None)
def test_any_json_is_a_block_and_any_times_come_out_monotone(
    kind: str, fields: dict[str, object], deltas: list[Delta], streamed: bool
) -> None:
    block = Block(0, kind, fields, 20, 80, deltas, streamed)
    steps = steps_of(block, "segment", 64)
    times = [20, *(at for step in steps for at in (step.started, step.ended)), 80]
    assert times == sorted(times)
    assert [step.last for step in steps] == [False] * (len(steps) - 1) + [True]


_PARTS = st.sampled_from(
    ["Step 1: go\n", "Step 2: on\n", "1. first", "2. second", "好的。", "\n\n", "```\n", "$$", "word " * 50]
)


@given(st.lists(_PARTS, max_size=20).map("".join), st.data())
@settings(max_examples=150, deadline=None)
def test_the_size_of_the_deltas_does_not_matter(whole: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    bounds = [0, *places, len(whole)]
    deltas: list[Delta] = [(10 * i, 10 * i + 10, whole[a:b]) for i, (a, b) in enumerate(itertools.pairwise(bounds))]
    streamed = steps_of(
        Block(0, "thinking", {"thinking": ""}, 0, 10 * len(deltas), deltas, streamed=True), "segment", 64
    )
    at_once = steps_of(Block(0, "thinking", {"thinking": whole}, 0, 10 * len(deltas)), "segment", 64)
    assert [(s.text, s.name, s.merged) for s in streamed] == [(s.text, s.name, s.merged) for s in at_once]
    assert "".join(s.text for s in streamed) == whole
    assert all(a.ended == b.started for a, b in itertools.pairwise(streamed))


def test_no_more_sub_steps_than_the_budget_for_a_very_long_list() -> None:
    whole = "".join(f"Step {n}: x\n" for n in range(1, 201))
    steps = steps_of(Block(0, "text", text(whole), 0, 1), "segment", SUB_STEPS_MAX)
    assert len(steps) == 64
    assert steps[-1].merged == 136
    assert "".join(s.text for s in steps) == whole
