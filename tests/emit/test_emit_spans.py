"""Spans and events: whose tracer and logger writes them, and what is said of tokens."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from claudescope import __version__, semconv
from claudescope.emit.metrics import NO_EXEMPLAR
from claudescope.emit.spans import SpanWriter
from claudescope.settings import Settings
from claudescope.steps.model import Call, Chain, Step
from claudescope.testing import Telemetry

PARENT = NonRecordingSpan(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)))


class Unhashable:
    """A provider around a real one, as logfire's, that counts how often it is asked."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.asked: list[tuple[Any, ...]] = []

    def get_tracer(self, *arguments: Any) -> Any:
        self.asked.append(arguments)
        return self.inner.get_tracer(*arguments)

    def get_logger(self, *arguments: Any) -> Any:
        self.asked.append(arguments)
        return self.inner.get_logger(*arguments)


class OneOfEach:
    """Whose providers are used: those that were set last."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.tracers, self.loggers = Unhashable(telemetry.tracer_provider), Unhashable(telemetry.logger_provider)

    def tracer_provider(self, own: Any) -> Any:
        return own or self.tracers

    def logger_provider(self) -> Any:
        return self.loggers


@pytest.fixture
def telemetry():
    with Telemetry() as made:
        yield made


def step(index: int = 0) -> Step:
    return Step("text", 1, 2, "measured", index=index, valid=False)


def call(**more: Any) -> Call:
    return Call(Chain(), 0, PARENT, owned=False, **more)


def test_a_provider_is_asked_for_its_tracer_and_its_logger_once(telemetry):
    providers = OneOfEach(telemetry)
    writer = SpanWriter(Settings({}), providers)  # type: ignore[arg-type]
    for index in range(5):
        context = writer.step(step(index), call())
        writer.evaluations(step(index), call(), context)
    expected = [(semconv.SCOPE, __version__)]
    assert providers.tracers.asked == providers.loggers.asked == expected
    scopes = {span.instrumentation_scope.version for span in telemetry.spans}
    scopes |= {event.instrumentation_scope.version for event in telemetry.events}
    assert (scopes, len(telemetry.spans), len(telemetry.events)) == ({__version__}, 5, 5)


def test_another_provider_has_a_tracer_of_its_own(telemetry):
    """The app sets one later, or a client has its own, call by call."""
    with Telemetry() as other:
        providers = OneOfEach(telemetry)
        writer = SpanWriter(Settings({}), providers)  # type: ignore[arg-type]
        own = Unhashable(other.tracer_provider)
        for provider in (None, own, None, own):
            writer.step(step(), call(tracer_provider=provider))
        assert (len(telemetry.spans), len(other.spans)) == (2, 2)
        providers.tracers = Unhashable(other.tracer_provider)
        writer.step(step(), call())
        assert (len(telemetry.spans), len(other.spans)) == (2, 3)


def test_a_step_of_a_call_that_is_not_sampled_offers_no_exemplar(telemetry):
    writer = SpanWriter(Settings({}), OneOfEach(telemetry))  # type: ignore[arg-type]
    dark = Call(Chain(), 0, NonRecordingSpan(SpanContext(1, 2, is_remote=False)), owned=False)
    assert writer.step(step(), dark) is NO_EXEMPLAR
    assert telemetry.spans == []


def test_no_half_of_a_surrogate_pair_keeps_a_span_from_being_sent(telemetry):
    """A tool, a block or a label may be named with a cut emoji: JSON can spell that, UTF-8 cannot."""
    writer = SpanWriter(Settings({}), OneOfEach(telemetry))  # type: ignore[arg-type]
    half = "a\ud83d"
    bad = Step(half, 1, 2, "measured", index=0, name=half, tool_name=half, tool_call_id=half, labels={half: half})
    writer.step(bad, call(model=half))
    (span,) = telemetry.spans
    assert span.name == "reasoning_step a?"
    texts = [text for pair in span.attributes.items() for text in pair if isinstance(text, str)]
    assert [text.encode("utf-8") for text in texts].count(b"a?") == 6
    assert span.attributes["claudescope.label.a?"] == "a?"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}, 12),
        ({"input_tokens": 3, "cache_read_input_tokens": None}, 3),
        ({"cache_read_input_tokens": 4}, None),
        ({"input_tokens": True}, None),
        ({"input_tokens": "3", "cache_read_input_tokens": "x"}, None),
    ],
)
def test_the_spans_input_tokens_are_those_of_the_metric(telemetry, usage, expected):
    writer = SpanWriter(Settings({}), OneOfEach(telemetry))  # type: ignore[arg-type]
    span = telemetry.tracer_provider.get_tracer("t").start_span("chat")
    writer.call(Call(Chain(), 0, span, owned=True, usage=usage, ended=1))
    (made,) = telemetry.spans
    assert (made.attributes or {}).get(semconv.USAGE_INPUT) == expected


def test_no_model_leaves_no_latency_source_of_a_step_without_time(telemetry):
    writer = SpanWriter(Settings({}), OneOfEach(telemetry))  # type: ignore[arg-type]
    timeless = step()
    timeless.latency_source = None
    writer.step(timeless, call())
    (made,) = telemetry.spans
    assert semconv.STEP_LATENCY_SOURCE not in (made.attributes or {})
