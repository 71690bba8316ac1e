"""Steps and calls as spans, with explicit start and end times, and verdicts as evaluation events."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry._logs import Logger, LoggerProvider, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.util.types import AttributeValue

from .. import __version__, semconv
from ..settings import Settings
from ..steps.model import Call, Step
from .content import call_content, encodable, request_sha256, step_content
from .holding import Late
from .metrics import NO_EXEMPLAR, cache_written, input_tokens
from .providers import Providers

__all__ = ["SpanWriter"]


class SpanWriter:
    """Writes spans and events. Only the worker uses it."""

    def __init__(self, settings: Settings, providers: Providers) -> None:
        self._settings = settings
        self._providers = providers
        # Of the provider asked last, which is nearly always the next one too; not every provider can be a key.
        self._tracer: tuple[TracerProvider, Tracer] | None = None
        self._logger: tuple[LoggerProvider, Logger] | None = None

    def _tracer_of(self, call: Call) -> Tracer:
        provider = self._providers.tracer_provider(call.tracer_provider)
        if self._tracer is None or self._tracer[0] is not provider:
            self._tracer = provider, provider.get_tracer(semconv.SCOPE, __version__)
        return self._tracer[1]

    def _logger_now(self) -> Logger:
        provider = self._providers.logger_provider()
        if self._logger is None or self._logger[0] is not provider:
            self._logger = provider, provider.get_logger(semconv.SCOPE, __version__)
        return self._logger[1]

    def step(self, step: Step, call: Call) -> Context:
        """Emits a step's span, if its call is sampled; gives the context to record its metrics in."""
        under = call.context
        if not under.trace_flags.sampled:
            return NO_EXEMPLAR
        span = self._tracer_of(call).start_span(
            encodable(f"{semconv.STEP_SPAN} {step.kind}"),
            context=trace.set_span_in_context(NonRecordingSpan(under)),
            kind=SpanKind.INTERNAL,
            attributes=self.step_attributes(step, call),
            start_time=step.started,
        )
        if step.error_type is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(max(step.started, step.ended))
        return trace.set_span_in_context(span)

    def manual(self, step: Step, call: Call, span: Span) -> Context:
        """Completes and ends the span of a step made by hand."""
        span.set_attributes(self.step_attributes(step, call))
        if step.error_type is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(max(step.started, step.ended))
        return trace.set_span_in_context(span) if span.get_span_context().trace_flags.sampled else NO_EXEMPLAR

    def step_attributes(self, step: Step, call: Call) -> dict[str, AttributeValue]:
        """All attributes of a step's span; what is unknown is absent."""
        chain = call.chain
        attributes: dict[str, AttributeValue] = {
            semconv.STEP_INDEX: step.index,
            semconv.STEP_KIND: step.kind,
            semconv.CHAIN_ID: chain.id,
        }
        optional: tuple[tuple[str, AttributeValue | None], ...] = (
            (semconv.STEP_LATENCY_SOURCE, step.latency_source),
            (semconv.REQUEST_MODEL, call.model or None),
            (semconv.STEP_NAME, step.name),
            (semconv.TOOL_NAME, step.tool_name),
            (semconv.TOOL_CALL_ID, step.tool_call_id),
            (semconv.STEP_CONFIDENCE, step.confidence),
            (semconv.STEP_CONFIDENCE_METHOD, step.confidence_method),
            (semconv.STEP_CONFIDENCE_CALIBRATED, step.calibrated),
            (semconv.STEP_VALID, step.valid),
            (semconv.STEP_VALIDITY_CHECKS, step.checks or None),
            (semconv.STEP_VALIDITY_REASON, " ".join(map(str, step.reasons)) or None),
            (semconv.STEP_MERGED, step.merged or None),
            (semconv.STEP_INCOMPLETE, step.incomplete),
            (semconv.CHAIN_CONFIDENCE, step.chain_confidence),
            (semconv.REQUEST_SHA256, request_sha256(call)),
            (semconv.KEEP, chain.keep or None),
            (semconv.ERROR_TYPE, step.error_type),
        )
        attributes.update({name: value for name, value in optional if value is not None})
        for key, value in (*call.labels.items(), *step.labels.items()):
            attributes[semconv.LABEL_PREFIX + key] = value
        if self._settings.content != "off":
            attributes.update(step_content(step, self._settings))
        return _sendable(attributes)

    def call(self, call: Call) -> Context:
        """Ends our own call span, or releases somebody else's; gives the context to record the call's metrics in."""
        late = self._late_attributes(call)
        if not call.owned:
            if call.context.is_valid:
                # Of a response that the app never parsed the SDK's own span tells neither tokens nor model.
                self._providers.release(call.context, Late(late, _sendable(_response_attributes(call))))
            sampled = call.context.trace_flags.sampled
            return trace.set_span_in_context(NonRecordingSpan(call.context)) if sampled else NO_EXEMPLAR
        span = call.span
        span.set_attributes({**_sendable(_response_attributes(call)), **late})
        if call.error is not None and call.error.type != "cancelled":
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute(semconv.ERROR_TYPE, call.error.type)
        span.end(call.ended)
        return trace.set_span_in_context(span) if call.context.trace_flags.sampled else NO_EXEMPLAR

    def _late_attributes(self, call: Call) -> dict[str, AttributeValue]:
        chain = call.chain
        attributes: dict[str, AttributeValue] = {semconv.CHAIN_ID: chain.id}
        if chain.confidence is not None:
            attributes[semconv.CHAIN_CONFIDENCE] = chain.confidence
        if chain.keep:
            attributes[semconv.KEEP] = True
        if (digest := request_sha256(call)) is not None:
            attributes[semconv.REQUEST_SHA256] = digest
        if call.stream_end is not None:
            attributes[semconv.STREAM_END] = call.stream_end
        if hour := cache_written(call.usage)[1]:
            attributes[semconv.USAGE_CACHE_WRITE_1H] = hour
        if _is_partial(call):
            attributes[semconv.USAGE_PARTIAL] = True
        for key, value in call.labels.items():
            attributes[semconv.LABEL_PREFIX + key] = value
        if self._settings.content == "full":
            attributes.update(call_content(call, self._settings))
        return _sendable(attributes)

    def evaluations(self, step: Step, call: Call, context: Context) -> None:
        """Emits the verdicts that ``CLAUDESCOPE_EVALUATION_EVENTS`` asks for, in the step's context."""
        wanted = self._settings.evaluation_events
        if wanted == "off":
            return
        if step.valid is not None and (wanted == "all" or not step.valid):
            self._event(call, context, step.ended, "validity", _pass(step.valid), None, step)
        if step.confidence is not None and wanted == "all":
            label = _pass(step.confidence >= self._settings.keep_below)
            self._event(call, context, step.ended, "confidence", label, step.confidence, step)

    def call_failed(self, call: Call, context: Context) -> None:
        """Emits the failing verdict on a call that the API refused or that broke."""
        if self._settings.evaluation_events != "off":
            self._event(call, context, call.ended, "validity", "fail", None, None)

    def _event(
        self, call: Call, context: Context, at: int, name: str, label: str, score: float | None, step: Step | None
    ) -> None:
        attributes: dict[str, AttributeValue] = {semconv.EVALUATION_NAME: name, semconv.EVALUATION_LABEL: label}
        if score is not None:
            attributes[semconv.EVALUATION_SCORE] = score
        if step is not None and step.reasons and name == "validity":
            attributes[semconv.EVALUATION_EXPLANATION] = " ".join(map(str, step.reasons))
        if call.response_id is not None:
            attributes[semconv.RESPONSE_ID] = call.response_id
        error = step.error_type if step is not None else call.error.type if call.error is not None else None
        if error is not None:
            attributes[semconv.ERROR_TYPE] = error
        self._logger_now().emit(
            timestamp=at,
            context=context,
            severity_number=SeverityNumber.WARN if label == "fail" else SeverityNumber.INFO,
            attributes=_sendable(attributes),
            event_name=semconv.EVALUATION_EVENT,
        )


def _sendable(attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Attributes of which none keeps its span from being encoded: JSON can spell text that UTF-8 cannot."""
    return {
        encodable(name): encodable(value) if isinstance(value, str) else value for name, value in attributes.items()
    }


def _pass(good: bool) -> str:
    return "pass" if good else "fail"


def _is_partial(call: Call) -> bool:
    """Whether the token counts are those of the stream's start: the final ones come with the stop reason."""
    return bool(call.usage) and call.stream_end not in (None, "completed") and call.stop_reason is None


def _response_attributes(call: Call) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    if call.response_id:
        attributes[semconv.RESPONSE_ID] = call.response_id
    if call.response_model:
        attributes[semconv.RESPONSE_MODEL] = call.response_model
    if call.stop_reason:
        attributes[semconv.FINISH_REASONS] = (call.stop_reason,)
    if call.first_chunk is not None:
        attributes[semconv.TIME_TO_FIRST_CHUNK] = (call.first_chunk - call.started) / 1e9
    usage = call.usage
    details = usage.get("output_tokens_details")
    thinking = (
        details.get("thinking_tokens") if isinstance(details, dict) else getattr(details, "thinking_tokens", None)
    )
    for name, value in (
        (semconv.USAGE_INPUT, input_tokens(usage)),
        (semconv.USAGE_OUTPUT, usage.get("output_tokens")),
        (semconv.USAGE_CACHE_READ, usage.get("cache_read_input_tokens")),
        (semconv.USAGE_CACHE_CREATION, usage.get("cache_creation_input_tokens")),
        (semconv.USAGE_REASONING, thinking),
    ):
        if isinstance(value, int):
            attributes[name] = value
    return attributes
