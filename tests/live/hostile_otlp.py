"""OTLP that means no good, and questions about it: strategies, and what is too large or too deep."""

from __future__ import annotations

import copy
import gzip
import json
import math
import time
import zlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes

from hypothesis import strategies as st
from live_kit import Sender
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from claudescope import semconv
from claudescope.live.receiver.otlp import JSON, PROTOBUF, OtlpError, decode, unpack
from claudescope.live.records import Batch, read_spans

REQUESTS: dict[str, Any] = {
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
    "logs": ExportLogsServiceRequest,
}


@dataclass(frozen=True)
class Shot:
    """One request as it goes out. ``body`` is packed already."""

    signal: str
    body: bytes
    content_type: str = PROTOBUF
    content_encoding: str = ""
    over_grpc: bool = False

    def words(self) -> tuple[bytes, ...]:
        """Trace ids, runs, services and labels that it names, for questions."""
        try:
            batch = Batch()
            list(read_spans(decode(ExportTraceServiceRequest, *self.plain()), batch))
        except OtlpError:
            return ()
        found = [chunk.trace_id.hex() for chunk in batch.chunks.values()]
        for step in batch.steps:
            found += [step["run_id"], step["service"], step["model"] or "x"]
            found += [f"{key}:{value}" for key, value in step["labels"].items()]
        return tuple(word.encode() for word in found[:12])

    def plain(self) -> tuple[bytes, str]:
        """The body unpacked, and its encoding. Raises OtlpError."""
        encoding = JSON if self.content_type.startswith(JSON) else PROTOBUF
        return unpack(self.body, "" if self.over_grpc else self.content_encoding), encoding

    def __repr__(self) -> str:
        shown = self.body if len(self.body) <= 2000 else self.body[:200] + b"..."
        way = "grpc" if self.over_grpc else f"{self.content_type!r} {self.content_encoding!r}"
        return f"Shot({self.signal}, {way}, {len(self.body)} bytes: {shown!r})"


# ---------------------------------------------------------------------------------------------- values

NOW = time.time_ns()
CLOCKS = (0, 1, 10**9, NOW, NOW - 3600 * 10**9, 4102444800 * 10**9, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
"""The epoch, 1970, now, an hour ago, 2100, and where integers end."""
INTEGERS = (0, 1, -1, 15, 16, 17, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.0, 0.7, 1.0, -1e-9, 1.0000001, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
TEXTS = (
    "", " ", "\0", "x", "a.b@1-2 c", "true", "16+", "__proto__", "%", "_%", "'; DROP TABLE steps; --", '"', "\\",
    "{\"a\": 1}", "\u2028\u2029", "\ufeff", "\u202e", "\U0001f600", "e\u0301", "é" * 300, "x" * 5000, "<script>", "NaN",
    "AND OR NOT *", "\"unclosed", "a\nb", "key:value", ":", "claude-sonnet-4-5", "chat", "invoke_workflow", "thinking",
)  # fmt: skip
NAMES = (
    *semconv.ATTRIBUTES,
    *(semconv.LABEL_PREFIX + key for key in ("", "tier", "\0", "x" * 300)),
    *("claudescope.overflow", "event.name", "", "service.name"),
)

times = st.sampled_from(CLOCKS) | st.integers(0, 2**64 - 1)
integers = st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1)
doubles = st.sampled_from(DOUBLES) | st.floats()
texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(NAMES) | texts
trace_ids = st.sampled_from((b"", bytes(16), b"\1" * 16, b"\2" * 16, b"\1" * 15, b"\xff" * 17)) | st.binary(
    min_size=16, max_size=16
)
span_ids = st.sampled_from((b"", bytes(8), b"\1" * 8, b"\2" * 8, b"\1" * 7, b"\xff" * 9)) | st.binary(
    min_size=8, max_size=8
)


def _list(values: list[AnyValue]) -> AnyValue:
    made = AnyValue()
    made.array_value.values.extend(values)
    made.array_value.SetInParent()
    return made


def _map(items: list[tuple[str, AnyValue]]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    for key, value in items:
        made.kvlist_value.values.add(key=key, value=value)
    return made


scalars = st.one_of(
    st.just(AnyValue()),
    texts.map(lambda value: AnyValue(string_value=value)),
    st.booleans().map(lambda value: AnyValue(bool_value=value)),
    integers.map(lambda value: AnyValue(int_value=value)),
    doubles.map(lambda value: AnyValue(double_value=value)),
    st.binary(max_size=9).map(lambda value: AnyValue(bytes_value=value)),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(_list) | st.lists(st.tuples(names, inner), max_size=3).map(_map),
    max_leaves=6,
)
attributes = st.lists(st.builds(lambda key, value: KeyValue(key=key, value=value), names, scalars | values), max_size=8)

# ---------------------------------------------------------------------------------------------- requests


def _spans(draw: Any, request: ExportTraceServiceRequest) -> None:
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.extend(draw(attributes))
    scope = resource_spans.scope_spans.add()
    for _ in range(draw(st.integers(0, 4))):
        span = scope.spans.add(
            trace_id=draw(trace_ids),
            span_id=draw(span_ids),
            parent_span_id=draw(span_ids),
            name=draw(texts),
            kind=draw(st.integers(-1, 9)),
            start_time_unix_nano=draw(times),
            end_time_unix_nano=draw(times),
            flags=draw(st.integers(0, 2**32 - 1)),
        )
        if draw(st.booleans()):  # most spans are to be steps: what is not is only stored
            span.attributes.add(key=semconv.STEP_INDEX).value.int_value = draw(st.integers(0, 20))
        span.attributes.extend(draw(attributes))
        for _ in range(draw(st.integers(0, 1))):
            span.events.add(name=draw(texts), time_unix_nano=draw(times), attributes=draw(attributes))
            span.links.add(trace_id=draw(trace_ids), span_id=draw(span_ids), attributes=draw(attributes))
        span.status.code = draw(st.integers(-1, 9))
        span.status.message = draw(texts)


def _metrics(draw: Any, request: ExportMetricsServiceRequest) -> None:
    resource_metrics = request.resource_metrics.add()
    resource_metrics.resource.attributes.extend(draw(attributes))
    scope = resource_metrics.scope_metrics.add()
    for _ in range(draw(st.integers(0, 3))):
        metric = scope.metrics.add(name=draw(st.sampled_from(tuple(semconv.METRICS)) | texts), unit=draw(texts))
        kind = draw(st.sampled_from(("sum", "sum", "sum", "gauge", "histogram", "exponential_histogram", "summary")))
        data = getattr(metric, kind)
        data.SetInParent()
        if hasattr(data, "aggregation_temporality"):
            data.aggregation_temporality = draw(st.integers(-1, 3))
        for _ in range(draw(st.integers(0, 3))):
            point = data.data_points.add(
                time_unix_nano=draw(times), start_time_unix_nano=draw(times), attributes=draw(attributes)
            )
            if kind in ("sum", "gauge"):
                if draw(st.booleans()):
                    point.as_int = draw(integers)
                else:
                    point.as_double = draw(doubles)


def _logs(draw: Any, request: ExportLogsServiceRequest) -> None:
    resource_logs = request.resource_logs.add()
    resource_logs.resource.attributes.extend(draw(attributes))
    scope = resource_logs.scope_logs.add()
    for _ in range(draw(st.integers(0, 3))):
        scope.log_records.add(
            trace_id=draw(trace_ids),
            span_id=draw(span_ids),
            time_unix_nano=draw(times),
            observed_time_unix_nano=draw(times),
            event_name=draw(st.sampled_from((*semconv.EVENTS, "")) | texts),
            severity_number=draw(st.integers(-1, 30)),
            severity_text=draw(texts),
            body=draw(values),
            attributes=draw(attributes),
        )


MAKERS = {"traces": _spans, "metrics": _metrics, "logs": _logs}


@st.composite
def messages(draw: Any, name: str) -> Any:
    """A request of a signal, right in its form and odd in all that it says."""
    request = REQUESTS[name]()
    for _ in range(draw(st.integers(0, 2))):
        MAKERS[name](draw, request)
    return request


@st.composite
def damaged(draw: Any, body: bytes) -> bytes:
    """Bytes that were changed, cut, doubled or filled up in a few places."""
    data = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        how = draw(st.sampled_from(("put", "cut", "double", "end")))
        if how == "put":
            edges = (b"\xff" * 10 + b"\1", b"\xc3\x28", b"\xed\xa0\x80", b"\0", b"\x0a\xff\xff\xff\xff\x0f")
            data[at:end] = draw(st.binary(max_size=6) | st.sampled_from(edges))
        elif how == "cut":
            del data[at:end]
        elif how == "double":
            data[at:at] = data[at:end] * draw(st.integers(1, 50))
        else:
            del data[at:]
    return bytes(data)


JSON_JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    doubles,
    texts,
    st.sampled_from(("Infinity", "-Infinity", "1e400", "-1", str(2**64), "0x10", "٣", "1_000", "A" * 32, "zz")),
    st.sampled_from(([], {}, [None], [[]], [{}], {"": {}}, {"key": 1}, {"values": 5})),
)


def as_json(message: Any) -> Any:
    """OTLP/JSON of a message: ids in hex, enums as numbers, 64-bit numbers as strings."""

    def value(field: Any, item: Any) -> Any:
        if field.message_type is not None:
            return as_json(item)
        if field.type == field.TYPE_BYTES:
            return item.hex()
        return str(item) if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64) else item

    def repeated(item: Any) -> bool:
        return hasattr(item, "append") or hasattr(item, "add")

    return {
        field.json_name: [value(field, one) for one in item] if repeated(item) else value(field, item)
        for field, item in message.ListFields()
    }


def _places(data: Any) -> list[tuple[Any, Any]]:
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [place for key in keys for place in [(data, key), *_places(data[key])]]


@st.composite
def json_bodies(draw: Any, name: str) -> bytes:
    """OTLP/JSON with some values of another type, deep, not numbers, or no text at all."""
    data: Any = as_json(draw(messages(name)))
    for _ in range(draw(st.integers(0, 3))):
        places = _places(data)
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        holder[key] = copy.deepcopy(draw(JSON_JUNK))  # the next change may be inside it
    body = json.dumps(data, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    how = draw(st.sampled_from(("whole", "whole", "whole", "surrogate", "damaged", "deep", "odd")))
    if how == "surrogate":
        body = body.replace(b'"', rb'"\ud800', draw(st.integers(1, 5)))
    elif how == "damaged":
        body = draw(damaged(body))
    elif how == "deep":
        levels = draw(st.sampled_from((63, 70, 1000, 100_000)))
        inner = draw(st.sampled_from((b"[", b'{"arrayValue":{"values":[')))
        body = body.replace(b"{", b'{"attributes":[{"key":"k","value":' + inner * levels, 1)
    elif how == "odd":
        body = draw(st.sampled_from((b"", b"null", b"[]", b"0", b'""', b"{}", b"\xff\xfe{}", b"{} {}", b"NaN")))
    return body


@st.composite
def shots(draw: Any) -> Shot:
    """One request of any signal, way and encoding, right or wrong."""
    name = draw(st.sampled_from(("traces", "traces", "traces", "metrics", "logs")))
    if draw(st.integers(0, 2)) == 0:
        body, content_type, over_grpc = draw(json_bodies(name)), JSON, False
    else:
        body = draw(messages(draw(st.sampled_from((name, name, name, "traces"))))).SerializeToString()
        if draw(st.booleans()):
            body = draw(damaged(body))
        content_type, over_grpc = PROTOBUF, draw(st.integers(0, 3)) == 0
    if over_grpc:
        return Shot(name, body, over_grpc=True)
    encoding = draw(st.sampled_from(("",) * 8 + ("gzip", "gzip", "deflate", "identity", "br", "gzip, gzip")))
    if encoding == "gzip":
        body = gzip.compress(body, 1)
    elif encoding == "deflate":
        body = zlib.compress(body, 1)
    if encoding in ("gzip", "deflate") and draw(st.integers(0, 3)) == 0:
        body = draw(damaged(body))
    wrong = draw(st.sampled_from((None,) * 20 + ("", "text/plain", JSON, PROTOBUF, "application/json;charset=utf-16")))
    return Shot(name, body, content_type if wrong is None else wrong, encoding)


# ---------------------------------------------------------------------------------------------- questions

FILTER = (
    "service", "model", "kind", "tool", "check", "index", "valid", "label", "confidence_min", "confidence_max",
    "confidence_known", "latency_min_us", "latency_max_us", "from", "to",
)  # fmt: skip
LIST = ("limit", "cursor", "order")
PATHS: dict[str, tuple[str, ...]] = {
    "/api/steps": (*FILTER, *LIST, "run", "trace"),
    "/api/runs": (*FILTER, *LIST, "run", "q", "status", "sort", "sort", "q"),
    "/api/runs/{run}": (),
    "/api/traces/{trace}": (),
    "/api/heatmap": (*FILTER, "range", "bucket"),
    "/api/distribution": FILTER,
    "/api/facets": FILTER,
    "/api/status": (),
    "/api/counters": (),
    "/api/openapi.json": (),
    "/metrics": (),
    "/healthz": (),
}
"""Each path and its parameters."""
ODD = (*(text.encode() for text in TEXTS), b"\xff\xfe", b"\xed\xa0\x80", b"\0\0", b"1" * 400, b"-1", b"1e9", b"nan")
MOMENTS = (b"0", b"1", b"1700000000000", b"253402300799999", b"2026-01-31T12:00:00Z", b"1969-12-31T23:59:59-23:59",
           b"9999-12-31T23:59:59.999999999Z", b"0001-01-01T00:00:00+23:59")  # fmt: skip
PARAMETERS: dict[str, tuple[bytes, ...]] = {
    "limit": (b"1", b"3", b"1000", b"0", b"1001"),
    "cursor": (b"0.0", b"999999999999999999.1", b"1.", b"."),
    "from": MOMENTS,
    "to": MOMENTS,
    "range": (b"5m", b"15m", b"1h", b"6h", b"24h", b"7d", b"30d", b"0s"),
    "order": (b"asc", b"desc"),
    "sort": (b"started", b"steps", b"duration", b"tokens", b"cost", b"worst"),
    "status": (b"ok", b"failed", b"running"),
    "run": (), "trace": (), "service": (), "model": (), "kind": (b"thinking",), "tool": (), "check": (b"a",),
    "q": (b"0101", b"tier:x", b"the", b"tier:", b'"'),
    "label": (b"tier:x", b"tier:", b":", b"tier"),
    "index": (b"0", b"16", b"15", b"17", b"2147483647"),
    "valid": (b"true", b"false", b"unknown"),
    "confidence_min": (b"0", b".7", b"1", b"-1", b"1e308", b"inf"),
    "confidence_max": (b"0", b"0.7", b"1.0", b"2"),
    "confidence_known": (b"true", b"false"),
    "latency_min_us": (b"0", b"100000", b"9223372036854775807", b"9223372036854775808"),
    "latency_max_us": (b"0", b"1", b"100000000"),
    "bucket": (b"10", b"60", b"300", b"3600", b"21600", b"7", b"999999999"),
    "last_event_id": (b"x-1",),
}  # fmt: skip


@st.composite
def questions(draw: Any, known: tuple[bytes, ...] = ()) -> str:
    """A path of the API with parameters, some of which make sense; ``known`` are texts of what was sent."""
    run = st.sampled_from((b"01" * 16, *known, *ODD))
    path = draw(st.sampled_from(tuple(PATHS)))
    own = PATHS[path] or tuple(PARAMETERS)
    path = path.replace("{run}", quote_from_bytes(draw(run), "") or "-")
    path = path.replace("{trace}", quote_from_bytes(draw(run), "") or "-")
    pairs = []
    for _ in range(draw(st.integers(0, 4 if len(own) < len(PARAMETERS) else 1))):
        name = draw(st.sampled_from(own if draw(st.integers(0, 19)) else tuple(PARAMETERS)))
        plausible = st.sampled_from((*PARAMETERS[name], *known) or (b"x",))
        value = draw(plausible if draw(st.integers(0, 5)) else st.sampled_from(ODD))
        pairs.append(f"{name}={quote_from_bytes(value, '')}")
    if draw(st.integers(0, 29)) == 0:
        pairs.append(draw(st.sampled_from(("x=1", "=", "&&", "%", "%zz=%", "limit", "limit=1&limit=2"))))
    return path + ("?" + "&".join(pairs) if pairs else "")


@st.composite
def volleys(draw: Any) -> tuple[Shot, list[str]]:
    """A shot and questions, some of them about what it says."""
    shot = draw(shots())
    known = shot.words() if shot.signal == "traces" else ()
    return shot, draw(st.lists(questions(known), min_size=2, max_size=4))


# ---------------------------------------------------------------------------------------------- large ones


def many_attributes(number: int) -> ExportTraceServiceRequest:
    """One step with so many attributes, labels among them."""
    sender = Sender()
    labels = {f"{semconv.LABEL_PREFIX}k{key}": "v" for key in range(number // 2)}
    sender.step(0, {**labels, **{f"a{key}": key for key in range(number // 2)}}, trace=b"\3" * 16, span=b"\3" * 8)
    return sender.request


def deep_value(levels: int) -> bytes:
    """A span whose attribute is nested so deep, made by hand: the library cannot."""

    def wrap(number: int, inner: bytes) -> bytes:
        size, length = len(inner), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + inner

    value = wrap(1, b"x")
    for _ in range(levels):
        value = wrap(5, wrap(1, value))  # AnyValue.array_value, ArrayValue.values
    span = wrap(1, b"\4" * 16) + wrap(2, b"\4" * 8) + wrap(9, wrap(1, b"k") + wrap(2, value))
    return wrap(1, wrap(2, wrap(2, span)))


def large_shots() -> list[Shot]:
    """What is too large, too deep or too many; each is one known way to make a server work or swell."""
    many = many_attributes(10_000)
    bomb = gzip.compress(bytes(64 * 2**20), 9)
    empty = gzip.compress(b"\x0a\x00" * (8 * 2**20 - 8), 9)
    objects = gzip.compress(b'{"resourceSpans":[' + b"{}," * 1_100_000 + b"{}]}", 9)
    text = Sender()
    text.step(0, {"t": "x" * (8 * 2**20)}, trace=b"\5" * 16, span=b"\5" * 8)
    made = [
        Shot("traces", many.SerializeToString()),
        Shot("traces", json.dumps(as_json(many)).encode(), JSON),
        Shot("traces", text.body()),
        Shot("traces", text.body(), over_grpc=True),
        Shot("traces", objects, JSON, "gzip"),
        Shot("traces", b"[" * 1_000_000, JSON),
        Shot("traces", b'{"a":' * 1_000_000, JSON),
    ]
    for name in REQUESTS:
        made += [Shot(name, bomb, media, "gzip") for media in (PROTOBUF, JSON)]
        made += [Shot(name, empty, PROTOBUF, "gzip"), Shot(name, bytes(17 * 2**20))]
        made += [Shot(name, bytes(17 * 2**20), content_encoding="gzip", over_grpc=True)]
    made += [Shot("traces", deep_value(levels)) for levels in (20, 40, 47, 60, 5000)]
    made += [Shot("traces", deep_value(levels), over_grpc=True) for levels in (40, 5000)]
    return made
