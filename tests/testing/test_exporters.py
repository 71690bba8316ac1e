from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord
from opentelemetry.trace import SpanKind

from claudescope import semconv
from claudescope.testing import Telemetry


def test_spans_steps_and_calls():
    with Telemetry({"service.name": "shop"}) as telemetry:
        ours = telemetry.tracer_provider.get_tracer(semconv.SCOPE)
        native = telemetry.tracer_provider.get_tracer(semconv.NATIVE_SCOPE + ".messages")
        with ours.start_as_current_span("chat m", attributes={semconv.OPERATION_NAME: "chat"}):
            for index in (1, 0):
                ours.start_span("reasoning_step text", attributes={semconv.STEP_INDEX: index}).end()
        native.start_span("anthropic.messages.create", kind=SpanKind.CLIENT).end()
        native.start_span("anthropic.custom_tool_use").end()
        ours.start_span("GET /", kind=SpanKind.CLIENT).end()
        ours.start_span("reasoning_stepping").end()
        assert len(telemetry.spans) == 7
        assert [dict(step.attributes or {})[semconv.STEP_INDEX] for step in telemetry.steps] == [0, 1]
        assert [call.name for call in telemetry.calls] == ["chat m", "anthropic.messages.create"]
        assert telemetry.spans[0].resource.attributes["service.name"] == "shop"
        telemetry.clear()
        assert telemetry.spans == []


def test_metrics_stay_readable_after_the_end():
    with Telemetry() as telemetry:
        assert telemetry.metric("steps") == []
        meter = telemetry.meter_provider.get_meter("test")
        counter = meter.create_counter("steps")
        counter.add(2, {"kind": "text"})
        assert [(point.value, dict(point.attributes)) for point in telemetry.metric("steps")] == [(2, {"kind": "text"})]
        counter.add(3, {"kind": "text"})
    assert telemetry.metric("steps")[0].value == 5
    assert telemetry.metrics == ["steps"]


def test_events_are_log_records_with_a_name():
    with Telemetry() as telemetry:
        logger = telemetry.logger_provider.get_logger("test")
        logger.emit(LogRecord(body="a line"))
        logger.emit(LogRecord(event_name="gen_ai.evaluation.result", attributes={"a": 1}))
        (event,) = telemetry.events
        assert (event.log_record.event_name, dict(event.log_record.attributes or {})) == (
            "gen_ai.evaluation.result",
            {"a": 1},
        )


def test_nothing_global_is_set():
    before = trace.get_tracer_provider()
    with Telemetry():
        assert trace.get_tracer_provider() is before


def test_the_kit_imports_lazily_and_names_what_is_missing():
    import claudescope.testing

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = claudescope.testing.nothing
    for name in claudescope.testing.__all__:
        assert getattr(claudescope.testing, name).__name__ == name
