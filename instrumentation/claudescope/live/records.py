"""What the server knows of a span: whether it is a step or a call, and the record of a step.

Spans come from any sender; a step is recognised by the attributes of ``semconv`` alone, and a value of another type
than the conventions say counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, TypedDict

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from .. import semconv
from .typed_values import MAX_TEXT, boolean, milliseconds, share, string, tokens, whole

__all__ = [
    "Batch",
    "CallRecord",
    "Chunk",
    "Dims",
    "Reason",
    "Source",
    "StepFigures",
    "StepRecord",
    "StoredSpan",
    "dims_of",
    "label_json",
    "parse_reasons",
    "read_spans",
    "service_of",
]

_MAX_LABELS: Final = 64
_MAX_ATTRIBUTES: Final = 1024
"""How many attributes of a span are looked at; all are stored."""
_MAX_REASON_TEXT: Final = 8192
_MAX_STEP_TEXT: Final = 32_768
"""Characters of a captured text that can be searched; all of it is stored with the span."""
_MAX_REASONS: Final = 64
_SLICE: Final = 1000
_CALLS: Final = frozenset({"chat", "text_completion", "generate_content", "embeddings", "invoke_workflow"})


class Reason(TypedDict):
    """Why a step is invalid: check, code and, where known, character offsets into the step."""

    check: str
    code: str
    start: int | None
    end: int | None


class StepFigures(TypedDict):
    """What the aggregates need of a step."""

    step_index: int
    ts_ms: int
    latency_us: int
    latency_source: str | None
    confidence: float | None
    is_valid: bool | None


class StepRecord(StepFigures):
    """The one record of a step, as REST and SSE give it. Ids are hex; ``ts_ms`` is when the step ended."""

    trace_id: str
    span_id: str
    call_span_id: str | None
    run_id: str
    kind: str
    name: str | None
    service: str
    model: str | None
    tool: str | None
    confidence_method: str | None
    calibrated: bool | None
    reasons: list[Reason]
    labels: dict[str, str]


class Dims(NamedTuple):
    """What steps are counted by. Nothing is the empty string; ``labels`` is a JSON object with sorted keys."""

    service: str
    model: str
    kind: str
    tool: str
    failed_check: str
    """The check of the first reason, of invalid steps only."""
    labels: str


def dims_of(step: StepRecord) -> Dims:
    """The dimensions of a step."""
    labels = step["labels"]
    reasons = step["reasons"]
    return Dims(
        step["service"],
        step["model"] or "",
        step["kind"],
        step["tool"] or "",
        reasons[0]["check"] if reasons else "",
        label_json(labels) if labels else "",
    )


def label_json(labels: dict[str, str]) -> str:
    """Labels as the store has them: JSON with sorted keys."""
    return orjson.dumps(labels, option=orjson.OPT_SORT_KEYS).decode()


class CallRecord(NamedTuple):
    """A call of a model, or the root of a run. ``run_id`` is None where the span itself does not say.

    ``input_tokens`` holds the cached ones, too. ``finish`` are the reasons, joined by commas.
    """

    span_id: bytes
    parent_id: bytes
    run_id: str | None
    trace_id: str
    service: str
    root: bool
    name: str | None
    model: str | None
    response_model: str | None
    started_ms: int
    ended_ms: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    error_type: str | None
    status_code: int | None
    retries: int
    first_chunk_ms: int | None
    finish: str | None
    labels: dict[str, str]
    failed: bool
    final: bool
    limit_used: float | None = None
    """The highest share of one of the API's rate limits that was used after it, where the response said so."""
    cache_write_1h_tokens: int = 0
    """Those of ``cache_write_tokens`` that are kept for an hour."""


class StoredSpan(NamedTuple):
    """A span as sent, with what it is."""

    span_id: bytes
    data: bytes
    ended_ms: int
    step: StepRecord | None
    call: CallRecord | None
    text: str | None
    """The captured text of a step."""


class Source(NamedTuple):
    """Where spans come from: serialized Resource and InstrumentationScope."""

    resource: bytes
    scope: bytes


class Chunk(NamedTuple):
    """The spans of one trace from one source in one request: stored as one row."""

    trace_id: bytes
    source: Source
    spans: list[StoredSpan]


@dataclass(slots=True)
class Batch:
    """The spans of one request. ``rejected`` counts those without a usable id."""

    chunks: dict[tuple[bytes, Source], Chunk] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    spans: int = 0
    size: int = 0
    rejected: int = 0


def parse_reasons(text: str | None) -> list[Reason]:
    """``check.code@start-end`` joined by blanks, as ``claudescope.step.validity.reason`` has it; 64 at most."""
    reasons: list[Reason] = []
    for word in (text or "")[:_MAX_REASON_TEXT].split(maxsplit=_MAX_REASONS)[:_MAX_REASONS]:
        name, _, spot = word.partition("@")
        check, _, code = name.partition(".")
        start, dash, end = spot.partition("-")
        placed = dash and start.isascii() and start.isdigit() and end.isascii() and end.isdigit()
        reasons.append(
            {
                "check": check,
                "code": code,
                "start": int(start[:15]) if placed else None,
                "end": int(end[:15]) if placed else None,
            }
        )
    return reasons


def _parent(span: Span) -> bytes:
    return span.parent_span_id if len(span.parent_span_id) == 8 else b""


def _labels(attributes: dict[str, AnyValue]) -> dict[str, str]:
    prefix = semconv.LABEL_PREFIX
    labels = {
        key[len(prefix) :][:MAX_TEXT]: value.string_value[:MAX_TEXT]
        for key, value in attributes.items()
        if key.startswith(prefix) and value.HasField("string_value")
    }
    return dict(islice(labels.items(), _MAX_LABELS)) if len(labels) > _MAX_LABELS else labels


def _step(span: Span, attributes: dict[str, AnyValue], index: int, trace_id: str, service: str) -> StepRecord:
    get = attributes.get
    end = span.end_time_unix_nano
    confidence = share(get(semconv.STEP_CONFIDENCE))
    given = get(semconv.STEP_VALIDITY_REASON)
    reason = given.string_value if given is not None else ""
    return {
        "trace_id": trace_id,
        "span_id": span.span_id.hex(),
        "call_span_id": _parent(span).hex() or None,
        "run_id": string(get(semconv.CHAIN_ID)) or trace_id,
        "step_index": index,
        "kind": string(get(semconv.STEP_KIND)) or "unknown",
        "name": string(get(semconv.STEP_NAME)),
        "service": service,
        "model": string(get(semconv.REQUEST_MODEL)),
        "tool": string(get(semconv.TOOL_NAME)),
        "ts_ms": end // 1_000_000,
        "latency_us": max(0, end - span.start_time_unix_nano) // 1000,
        "latency_source": string(get(semconv.STEP_LATENCY_SOURCE)),
        "confidence": confidence,
        "confidence_method": string(get(semconv.STEP_CONFIDENCE_METHOD)) if confidence is not None else None,
        "calibrated": boolean(get(semconv.STEP_CONFIDENCE_CALIBRATED)) if confidence is not None else None,
        "is_valid": boolean(get(semconv.STEP_VALID)),
        "reasons": parse_reasons(reason) if reason else [],
        "labels": _labels(attributes),
    }


_GOES_ON: Final = frozenset({"tool_use", "tool_call", "tool_calls", "pause_turn"})
"""Finish reasons after which the run continues with another call."""


def _call(span: Span, attributes: dict[str, AnyValue], operation: str, trace_id: str, service: str) -> CallRecord:
    get = attributes.get
    finish = get(semconv.FINISH_REASONS)
    reasons = [value.string_value for value in finish.array_value.values[:_MAX_REASONS]] if finish is not None else []
    if not reasons and (stop := string(get(semconv.STOP_REASON))):
        reasons = [stop]
    end = string(get(semconv.STREAM_END))
    cut = end if end != "completed" else None
    failed = span.status.code == Status.STATUS_CODE_ERROR or semconv.ERROR_TYPE in attributes
    root = operation == "invoke_workflow"
    return CallRecord(
        span.span_id,
        _parent(span),
        string(get(semconv.CHAIN_ID)),
        trace_id,
        service,
        root,
        (string(get(semconv.CHAIN_NAME)) or string(get(semconv.WORKFLOW_NAME))) if root else None,
        string(get(semconv.REQUEST_MODEL)),
        string(get(semconv.RESPONSE_MODEL)),
        span.start_time_unix_nano // 1_000_000,
        span.end_time_unix_nano // 1_000_000,
        tokens(get(semconv.USAGE_INPUT)),
        tokens(get(semconv.USAGE_CACHE_READ)),
        tokens(get(semconv.USAGE_CACHE_CREATION) or get(semconv.USAGE_CACHE_WRITE)),
        tokens(get(semconv.USAGE_OUTPUT)),
        string(get(semconv.ERROR_TYPE)),
        whole(get(semconv.HTTP_STATUS)),
        whole(get(semconv.RETRY_COUNT)) or 0,
        milliseconds(get(semconv.TIME_TO_FIRST_CHUNK)),
        cut or ",".join(reasons)[:MAX_TEXT] or None,
        _labels(attributes),
        failed,
        root or failed or bool(cut) or bool(reasons and not _GOES_ON.intersection(reasons)),
        _limit_used(attributes),
        tokens(get(semconv.USAGE_CACHE_WRITE_1H)),
    )


_LIMITS: Final = [
    (f"{semconv.RATELIMIT_PREFIX}{kind}.limit", f"{semconv.RATELIMIT_PREFIX}{kind}.remaining")
    for kind in semconv.RATELIMIT_KINDS
]


def _limit_used(attributes: dict[str, AnyValue]) -> float | None:
    used = None
    for limit_name, remaining_name in _LIMITS:
        limit, remaining = whole(attributes.get(limit_name)), whole(attributes.get(remaining_name))
        if limit and remaining is not None:
            share = max(0.0, (limit - remaining) / limit)
            used = share if used is None else max(used, share)
    return used


def service_of(attributes: Any) -> str:
    """``service.name`` of a resource's attributes, else ``unknown_service``."""
    for attribute in attributes[:_MAX_ATTRIBUTES]:
        if attribute.key == semconv.SERVICE_NAME:
            return attribute.value.string_value[:MAX_TEXT] or "unknown_service"
    return "unknown_service"


def read_spans(request: ExportTraceServiceRequest, batch: Batch) -> Iterator[int]:
    """Fills ``batch`` from a request; yields after each thousand spans, so that an event loop may do other work."""
    chunks = batch.chunks
    steps = batch.steps
    for resource_spans in request.resource_spans:
        service = service_of(resource_spans.resource.attributes)
        resource = resource_spans.resource.SerializeToString()
        for scope_spans in resource_spans.scope_spans:
            source = Source(resource, scope_spans.scope.SerializeToString())
            last = b""
            spans: list[StoredSpan] = []
            trace = ""
            for span in scope_spans.spans:
                trace_id = span.trace_id
                span_id = span.span_id
                if len(trace_id) != 16 or len(span_id) != 8 or not any(trace_id) or not any(span_id):
                    batch.rejected += 1
                    continue
                if trace_id != last:
                    key = (trace_id, source)
                    chunk = chunks.get(key)
                    if chunk is None:
                        chunk = chunks[key] = Chunk(trace_id, source, [])
                    last, spans, trace = trace_id, chunk.spans, trace_id.hex()
                data = span.SerializeToString()
                listed: Sequence[KeyValue] = span.attributes
                if len(listed) > _MAX_ATTRIBUTES:
                    listed = listed[:_MAX_ATTRIBUTES]
                attributes = {attribute.key: attribute.value for attribute in listed}
                step = call = text = None
                index = whole(attributes.get(semconv.STEP_INDEX))
                if index is not None:
                    step = _step(span, attributes, index, trace, service)
                    steps.append(step)
                    captured = attributes.get(semconv.STEP_TEXT)
                    if captured is not None:
                        text = captured.string_value[:_MAX_STEP_TEXT] or None
                else:
                    operation = attributes.get(semconv.OPERATION_NAME)
                    if operation is not None and operation.string_value in _CALLS:
                        call = _call(span, attributes, operation.string_value, trace, service)
                spans.append(StoredSpan(span_id, data, span.end_time_unix_nano // 1_000_000, step, call, text))
                batch.spans += 1
                batch.size += len(data)
                if not batch.spans % _SLICE:
                    yield batch.spans
    yield batch.spans
