from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_kit import Sender

from claudescope import semconv
from claudescope.live.records import Batch, parse_reasons, read_spans
from claudescope.steps.model import Reason

TRACE = bytes(range(16))
SPAN = b"\x0a" * 8
CALL = b"\x0b" * 8


def read(sender: Sender) -> Batch:
    batch = Batch()
    for _ in read_spans(sender.request, batch):
        pass
    return batch


def test_the_record_of_a_step() -> None:
    sender = Sender("support-agent")
    sender.span(
        {
            semconv.STEP_INDEX: 3,
            semconv.STEP_KIND: "tool_use",
            semconv.STEP_NAME: "Look it up",
            semconv.STEP_LATENCY_SOURCE: "measured",
            semconv.STEP_CONFIDENCE: 0.25,
            semconv.STEP_CONFIDENCE_METHOD: "verbalised",
            semconv.STEP_CONFIDENCE_CALIBRATED: False,
            semconv.STEP_VALID: False,
            semconv.STEP_VALIDITY_REASON: "tool_input.schema_mismatch@12-40 tool_name.unknown",
            semconv.CHAIN_ID: "c0ffee",
            semconv.REQUEST_MODEL: "claude-sonnet-4-5",
            semconv.TOOL_NAME: "lookup",
            semconv.LABEL_PREFIX + "team": "blue",
        },
        trace=TRACE,
        span=SPAN,
        parent=CALL,
        end_ms=1_700_000_000_500,
        latency_ms=250,
    )
    batch = read(sender)
    assert batch.steps == [
        {
            "trace_id": "000102030405060708090a0b0c0d0e0f",
            "span_id": "0a" * 8,
            "call_span_id": "0b" * 8,
            "run_id": "c0ffee",
            "step_index": 3,
            "kind": "tool_use",
            "name": "Look it up",
            "service": "support-agent",
            "model": "claude-sonnet-4-5",
            "tool": "lookup",
            "ts_ms": 1_700_000_000_500,
            "latency_us": 250_000,
            "latency_source": "measured",
            "confidence": 0.25,
            "confidence_method": "verbalised",
            "calibrated": False,
            "is_valid": False,
            "reasons": [
                {"check": "tool_input", "code": "schema_mismatch", "start": 12, "end": 40},
                {"check": "tool_name", "code": "unknown", "start": None, "end": None},
            ],
            "labels": {"team": "blue"},
        }
    ]


def test_what_is_absent_is_null_and_the_run_is_the_trace() -> None:
    sender = Sender()
    sender.span({semconv.STEP_INDEX: 0}, trace=TRACE, span=SPAN, end_ms=5, latency_ms=0)
    (step,) = read(sender).steps
    assert (step["kind"], step["run_id"], step["latency_us"]) == ("unknown", TRACE.hex(), 0)
    for key in ("call_span_id", "name", "model", "tool", "latency_source", "confidence", "calibrated", "is_valid"):
        assert step[key] is None  # type: ignore[literal-required]
    assert (step["reasons"], step["labels"]) == ([], {})


@pytest.mark.parametrize("index", ["3", -1, 2**31, 1.0, True])
def test_a_step_needs_a_whole_number(index: Any) -> None:
    sender = Sender()
    sender.span({semconv.STEP_INDEX: index, semconv.STEP_KIND: "text"})
    batch = read(sender)
    assert (batch.steps, batch.spans) == ([], 1)


@pytest.mark.parametrize("confidence", [1.5, -0.1, float("nan"), float("inf"), "0.5", True])
def test_a_confidence_that_is_none_is_unknown(confidence: Any) -> None:
    sender = Sender()
    sender.step(0, {semconv.STEP_CONFIDENCE: confidence, semconv.STEP_CONFIDENCE_METHOD: "m"})
    (step,) = read(sender).steps
    assert (step["confidence"], step["confidence_method"]) == (None, None)


def test_a_clock_that_runs_backwards_gives_no_negative_latency() -> None:
    sender = Sender()
    sender.step(0, latency_ms=-50)
    assert read(sender).steps[0]["latency_us"] == 0


def test_spans_without_ids_are_rejected_and_the_rest_is_taken() -> None:
    sender = Sender()
    for trace, span in [(bytes(16), SPAN), (TRACE, bytes(8)), (b"\1" * 15, SPAN), (TRACE, b"\1" * 9)]:
        sender.step(0, trace=trace, span=span)
    sender.step(1, trace=TRACE, span=SPAN)
    batch = read(sender)
    assert (batch.rejected, batch.spans, [step["step_index"] for step in batch.steps]) == (4, 1, [1])


def test_one_row_for_each_trace_and_source() -> None:
    sender = Sender()
    for number in range(8):
        sender.step(number, trace=bytes([1 + number % 2] * 16))
    sizes = {chunk.trace_id[0]: len(chunk.spans) for chunk in read(sender).chunks.values()}
    assert sizes == {1: 4, 2: 4}


word = st.from_regex(r"[a-z_]{1,9}", fullmatch=True)


@given(
    st.lists(
        st.tuples(word, word, st.one_of(st.none(), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))),
        max_size=20,
    )
)
def test_reasons_come_back_as_they_were_written(reasons: list[Any]) -> None:
    made = [Reason(check, code, *(spot or ())) for check, code, spot in reasons]
    expected = [{"check": r.check, "code": r.code, "start": r.start, "end": r.end} for r in made]
    assert parse_reasons(" ".join(map(str, made))) == expected


@given(st.text())
def test_any_text_gives_reasons(text: str) -> None:
    assert len(parse_reasons(text)) == min(64, len(text.split()))


def test_reasons_are_at_most_64() -> None:
    assert len(parse_reasons("a.b " * 1000)) == 64
