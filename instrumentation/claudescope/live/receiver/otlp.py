"""OTLP bodies over HTTP: unpacked within a limit, decoded from protobuf or JSON, and answered in the same encoding."""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import orjson
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from .otlp_json import JsonError, fill, parse

__all__ = [
    "JSON",
    "MAX_BODY",
    "MAX_RECORDS",
    "PROTOBUF",
    "OtlpError",
    "decode",
    "encoding_of",
    "error_body",
    "success_body",
    "too_large",
    "unpack",
]

MAX_BODY: Final = 16 * 2**20
"""Bytes of one body after unpacking."""
MAX_RECORDS: Final = 100_000
"""Spans, log records or data points of one request, with the resources and scopes they are in."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"

M = TypeVar("M", ExportTraceServiceRequest, ExportMetricsServiceRequest, ExportLogsServiceRequest)

_LEVELS: Final = {
    ExportTraceServiceRequest: ("resource_spans", "scope_spans", "spans"),
    ExportMetricsServiceRequest: ("resource_metrics", "scope_metrics", "metrics"),
    ExportLogsServiceRequest: ("resource_logs", "scope_logs", "log_records"),
}
_GRPC_CODES: Final = {400: 3, 401: 16, 413: 8, 415: 3, 429: 8, 503: 14}


class OtlpError(Exception):
    """A body that is not taken: HTTP status, code, message and what to change; ``retry_after`` in seconds."""

    def __init__(self, status: int, code: str, message: str, fix: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.fix = fix
        self.retry_after = retry_after


def too_large() -> OtlpError:
    """The 413 for a body over ``MAX_BODY``."""
    return OtlpError(
        413,
        "body_too_large",
        f"The body is over {MAX_BODY // 2**20} MiB after unpacking.",
        "Send smaller batches, such as with OTEL_BSP_MAX_EXPORT_BATCH_SIZE.",
    )


def encoding_of(content_type: str) -> str:
    """``PROTOBUF`` or ``JSON`` for a Content-Type header; raises OtlpError 415 for any other."""
    media = content_type.partition(";")[0].strip().lower()
    if media in (PROTOBUF, "application/protobuf"):
        return PROTOBUF
    if media == JSON:
        return JSON
    raise OtlpError(
        415,
        "unsupported_content_type",
        f"Content-Type is {media[:100]!r}." if media else "There is no Content-Type.",
        f"Send OTLP as {PROTOBUF} or {JSON}.",
    )


def unpack(body: bytes, content_encoding: str, limit: int = MAX_BODY) -> bytes:
    """The body without its Content-Encoding (none or gzip); never grows over ``limit``. Raises OtlpError."""
    name = content_encoding.strip().lower()
    if name in ("", "identity"):
        if len(body) > limit:
            raise too_large()
        return body
    if name not in ("gzip", "deflate"):
        raise OtlpError(
            415, "unsupported_encoding", f"Content-Encoding is {name[:100]!r}.", "Send gzip, deflate or no compression."
        )
    unpacker = zlib.decompressobj(47)  # gzip or zlib header, found by itself
    try:
        data = unpacker.decompress(body, limit + 1)
    except zlib.error:
        raise OtlpError(400, "bad_compression", f"The body is not {name}.", "Correct the Content-Encoding.") from None
    if len(data) > limit:
        raise too_large()
    if not unpacker.eof:
        raise OtlpError(400, "bad_compression", f"The {name} body ends too early.", "Send the whole body.")
    return data


def decode(request: type[M], body: bytes, encoding: str) -> M:
    """``body`` as a ``request`` message.

    Raises OtlpError: 400 that says where a JSON body is wrong, 413 for over ``MAX_RECORDS`` (empty ones take two bytes
    each, so the size alone bounds neither memory nor time).
    """
    if encoding == PROTOBUF:
        try:
            message = request.FromString(body)
        except DecodeError:
            raise OtlpError(
                400, "bad_protobuf", f"The body is not an {request.__name__}.", "Check which signal goes to which path."
            ) from None
        _count(message)
        return message
    message = request()
    try:
        fill(message, parse(body))
    except (orjson.JSONDecodeError, JsonError) as error:
        raise OtlpError(
            400, "bad_json", f"The body is not OTLP/JSON: {error}.", "Ids are hex, field names lowerCamelCase."
        ) from None
    _count(message)
    return message


def _count(request: Message) -> None:
    resources, scopes, records = _LEVELS[type(request)]
    left = MAX_RECORDS - len(getattr(request, resources))
    for resource in getattr(request, resources) if left >= 0 else ():
        inner = getattr(resource, scopes)
        left -= len(inner)
        if left < 0:
            break
        for scope in inner:
            items = getattr(scope, records)
            left -= len(items)
            if left < 0:
                break
            if records == "metrics":
                left -= sum(len(metric.sum.data_points) + len(metric.histogram.data_points) for metric in items)
    if left < 0:
        raise OtlpError(
            413,
            "too_many_records",
            f"The body has over {MAX_RECORDS} records.",
            "Send smaller batches, such as with OTEL_BSP_MAX_EXPORT_BATCH_SIZE.",
        )


_RESPONSES: Final = {
    "traces": (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
}


def _success_message(signal: str, rejected: int = 0, why: str = "") -> Message:
    """The response message of a signal (``traces``, ``metrics`` or ``logs``) with what was not taken."""
    response, field, _ = _RESPONSES[signal]
    message: Message = response()
    if rejected:
        partial = message.partial_success  # type: ignore[attr-defined]
        setattr(partial, field, rejected)
        partial.error_message = why
    return message


def success_body(signal: str, encoding: str, rejected: int = 0, why: str = "") -> bytes:
    """The body of a 200."""
    if encoding == PROTOBUF:
        return _success_message(signal, rejected, why).SerializeToString()
    if not rejected:
        return b"{}"
    return orjson.dumps({"partialSuccess": {_RESPONSES[signal][2]: str(rejected), "errorMessage": why}})


def error_body(error: OtlpError, encoding: str) -> bytes:
    """The body of a failure: a ``google.rpc.Status`` for protobuf, else the JSON envelope of all errors.

    The JSON form carries the Status fields besides, so that an OTLP client finds them too.
    """
    code = _GRPC_CODES.get(error.status, 2)
    if encoding == PROTOBUF:
        from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

        return bytes(Status(code=code, message=f"{error.message} {error.fix}").SerializeToString())
    envelope = {"code": error.code, "message": error.message, "fix": error.fix}
    return orjson.dumps({"error": envelope, "code": code, "message": error.message})
