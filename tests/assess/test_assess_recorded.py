"""Steps and verdicts of all recorded responses: nothing is lost, and no correct answer is called wrong."""

from __future__ import annotations

import json
from collections import Counter

from opentelemetry.trace import INVALID_SPAN
from recorded import Exchange, exchanges

from claudescope.assess.panel import Panel
from claudescope.assess.stop_reason import StopReason
from claudescope.assess.stream import StreamFailure
from claudescope.assess.structured_output import StructuredOutput
from claudescope.assess.tool_input import ToolInput
from claudescope.assess.tool_json import ToolJson
from claudescope.assess.tool_name import ToolName
from claudescope.assess.tool_result import ToolResultError
from claudescope.assess.verbalised import Verbalised
from claudescope.steps.blocks import SUB_STEPS_MAX, blocks_of, steps_of, text_of
from claudescope.steps.model import Block, Call, Chain, Delta, Step


def panel() -> Panel:
    checks = [StopReason(), StreamFailure(), StructuredOutput(), ToolInput(), ToolJson(), ToolName(), ToolResultError()]
    # Verdicts must not depend on how loaded the machine is.
    return Panel(checks, [Verbalised()], budget_s=60.0)


def recorded_steps(exchange: Exchange, mode: str = "segment") -> list[tuple[Block, list[Step]]]:
    blocks = blocks_of(exchange.message, 0, 1_000_000)
    for block in blocks:
        pieces = exchange.texts.get(block.index)
        if block.index in exchange.raw_inputs:
            pieces = [exchange.raw_inputs[block.index]]
        if pieces is not None:
            block.streamed = True
            start = {name: "" for name in ("text", "thinking", "content") if isinstance(block.fields.get(name), str)}
            block.fields = {**block.fields, **start}
            span = block.ended - block.started
            block.deltas = [
                (block.started + span * i // len(pieces), block.started + span * (i + 1) // len(pieces), piece)
                for i, piece in enumerate(pieces)
            ]
    budget, made = SUB_STEPS_MAX, []
    for block in blocks:
        steps = steps_of(block, mode, budget)
        budget -= len(steps)
        made.append((block, steps))
    return made


def call_of(exchange: Exchange) -> Call:
    call = Call(Chain(), 0, INVALID_SPAN, owned=False, request=json.dumps(exchange.request).encode())
    call.stop_reason = exchange.message.get("stop_reason")
    return call


def test_steps_of_every_recorded_response() -> None:
    for exchange in exchanges():
        content = exchange.message["content"]
        made = recorded_steps(exchange)
        assert [block.type for block, _ in made] == [entry["type"] for entry in content]
        at = 0
        for (block, steps), entry in zip(made, content, strict=True):
            text = entry.get(entry["type"])
            if entry["type"] in ("text", "thinking"):
                assert "".join(step.text for step in steps) == text == text_of(block)
            assert [step.last for step in steps] == [False] * (len(steps) - 1) + [True]
            for step in steps:
                assert step.started == at
                assert step.ended >= at
                at = step.ended
        assert at == 1_000_000
        for _, steps in recorded_steps(exchange, "block"):
            assert len(steps) == 1


def test_recorded_deltas_and_whole_text_give_the_same_steps() -> None:
    for exchange in exchanges():
        for index, pieces in exchange.texts.items():
            kind = exchange.message["content"][index]["type"]
            deltas: list[Delta] = [(i, i + 1, piece) for i, piece in enumerate(pieces)]
            streamed = steps_of(Block(0, kind, {}, 0, len(pieces), deltas, streamed=True), "segment", SUB_STEPS_MAX)
            whole = steps_of(Block(0, kind, {"text": "".join(pieces)}, 0, 1), "segment", SUB_STEPS_MAX)
            assert [(s.text, s.name) for s in streamed] == [(s.text, s.name) for s in whole]


def found() -> tuple[Counter[str], list[tuple[str, str, str]], list[tuple[str, float]]]:
    """Steps by verdict, each invalid one (file, kind, reasons), each stated confidence (file, value)."""
    verdicts: Counter[str] = Counter()
    invalid: list[tuple[str, str, str]] = []
    stated: list[tuple[str, float]] = []
    judge = panel()
    for exchange in exchanges():
        call = call_of(exchange)
        for _, steps in recorded_steps(exchange):
            for step in steps:
                judge.assess(step, call)
                verdicts[{True: "valid", False: "invalid", None: "unknown"}[step.valid]] += 1
                if step.valid is False:
                    name = exchange.file.rsplit("/", 1)[-1]
                    invalid.append((name, step.kind, " ".join(map(str, step.reasons))))
                if step.confidence is not None:
                    stated.append((exchange.file.rsplit("/", 1)[-1], step.confidence))
    assert all(status.failures == 0 for status in judge.status())
    return verdicts, invalid, stated


# Every invalid verdict on the recorded responses; each is right, so the false alarms are none.
INVALID = {
    # The answer was cut by `max_tokens` inside the tool's input.
    ("incomplete_partial_json_response.txt", "tool_use", "stop_reason.max_tokens tool_json.truncated@136-149"): 1,
    # `"stop_reason": "refusal"`.
    ("refusal_response.txt", "text", "stop_reason.refusal"): 1,
    ("stream-a-refusal.sse", "text", "stop_reason.refusal"): 1,
    ("stream-a-toolrefusal.sse", "text", "stop_reason.refusal"): 1,
    # `"error_code": "unavailable"`.
    ("inference_beta_server_tool_calling_conformance.yaml", "web_search_tool_result", "tool_result.is_error"): 1,
    ("server_tool_calling_conformance.yaml", "web_search_tool_result", "tool_result.is_error"): 1,
    (
        "test_anthropic_text_editor_code_execution_tool.yaml",
        "text_editor_code_execution_tool_result",
        "tool_result.is_error",
    ): 2,
    (
        "test_anthropic_text_editor_code_execution_tool_stream.yaml",
        "text_editor_code_execution_tool_result",
        "tool_result.is_error",
    ): 1,
    # `{"ticker": "AAPL"}` where the schema wants `symbol`; the model says so itself in its next answer.
    ("test_tool_search_eval[anthropic].yaml", "tool_use", "tool_input.schema_mismatch@0-17"): 1,
}


def test_verdicts_on_every_recorded_response() -> None:
    verdicts, invalid, stated = found()
    assert Counter(invalid) == INVALID
    assert verdicts["invalid"] == 10
    assert verdicts["valid"] > 200
    # One answer states a confidence: `{"confidence": 0.5, ...}`.
    assert stated == [("test_no_tools_profile_default_native_output.yaml", 0.5)]
