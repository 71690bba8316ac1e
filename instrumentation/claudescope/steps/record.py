"""One record of a step: the same shape for callbacks, REST, the event stream and exports."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from .model import Call, Step

__all__ = ["record"]


def record(
    step: Step, call: Call, span: SpanContext, service: str, parent: SpanContext | None = None
) -> dict[str, Any]:
    """The record of ``step``, whose span is ``span`` (not valid when the call was not sampled: ids are then None).

    ``parent`` is its parent: the call's span by default.
    """
    above = parent if step.kind == "manual" else call.context
    return {
        "trace_id": format_trace_id(span.trace_id) if span.is_valid else None,
        "span_id": format_span_id(span.span_id) if span.is_valid else None,
        "call_span_id": format_span_id(above.span_id) if span.is_valid and above is not None else None,
        "run_id": call.chain.id,
        "step_index": step.index,
        "kind": step.kind,
        "name": step.name,
        "service": service,
        "model": call.model or None,
        "tool": step.tool_name,
        "ts_ms": step.ended // 1_000_000,
        "latency_us": max(0, step.ended - step.started) // 1000,
        "latency_source": step.latency_source,
        "confidence": step.confidence,
        "confidence_method": step.confidence_method,
        "calibrated": step.calibrated,
        "is_valid": step.valid,
        "reasons": [
            {"check": reason.check, "code": reason.code, "start": reason.start, "end": reason.end}
            for reason in step.reasons
        ],
        "labels": {**call.labels, **step.labels},
    }
