from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest
from google.protobuf import json_format
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from claudescope.live.receiver.otlp import (
    JSON,
    MAX_BODY,
    PROTOBUF,
    OtlpError,
    decode,
    encoding_of,
    error_body,
    success_body,
    unpack,
)
from claudescope.live.receiver.otlp_json import JsonError, fill

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.one_of(
    text.map(lambda v: AnyValue(string_value=v)),
    st.booleans().map(lambda v: AnyValue(bool_value=v)),
    st.integers(-(2**63), 2**63 - 1).map(lambda v: AnyValue(int_value=v)),
    st.floats(allow_nan=False).map(lambda v: AnyValue(double_value=v)),
    st.binary(max_size=9).map(lambda v: AnyValue(bytes_value=v)),
)


def _array(values: list[AnyValue]) -> AnyValue:
    made = AnyValue()
    made.array_value.values.extend(values)
    made.array_value.SetInParent()
    return made


def _map(values: dict[str, AnyValue]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    for key, value in values.items():
        made.kvlist_value.values.add(key=key, value=value)
    return made


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(_array), st.dictionaries(text, inner, max_size=3).map(_map)
    ),
    max_leaves=6,
)


@st.composite
def requests(draw: Any) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for _ in range(draw(st.integers(0, 2))):
        resource_spans = request.resource_spans.add(schema_url=draw(text))
        resource_spans.resource.attributes.add(key=draw(text), value=draw(values))
        scope = resource_spans.scope_spans.add()
        for _ in range(draw(st.integers(0, 3))):
            span = scope.spans.add(
                trace_id=draw(st.binary(max_size=16)),
                span_id=draw(st.binary(max_size=8)),
                parent_span_id=draw(st.binary(max_size=8)),
                name=draw(text),
                kind=draw(st.integers(0, 5)),
                start_time_unix_nano=draw(st.integers(0, 2**64 - 1)),
                end_time_unix_nano=draw(st.integers(0, 2**64 - 1)),
                flags=draw(st.integers(0, 2**32 - 1)),
            )
            span.attributes.add(key=draw(text), value=draw(values))
            span.events.add(name=draw(text), time_unix_nano=draw(st.integers(0, 2**64 - 1)))
            span.links.add(trace_id=draw(st.binary(max_size=16)), span_id=draw(st.binary(max_size=8)))
            span.status.code = draw(st.integers(0, 2))
            span.status.message = draw(text)
    return request


def to_otlp_json(data: Any) -> Any:
    """protobuf's own JSON with ids in hex, as OTLP has them."""
    import base64

    if isinstance(data, list):
        return [to_otlp_json(item) for item in data]
    if isinstance(data, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {k: base64.b64decode(v).hex() if k in ids else to_otlp_json(v) for k, v in data.items()}
    return data


@given(requests(), st.booleans())
def test_json_says_the_same_as_protobuf(request: ExportTraceServiceRequest, enums_as_numbers: bool) -> None:
    data = json_format.MessageToDict(request, use_integers_for_enums=enums_as_numbers)
    body = json.dumps(to_otlp_json(data)).encode()
    assert decode(ExportTraceServiceRequest, body, JSON) == request
    assert decode(ExportTraceServiceRequest, request.SerializeToString(), PROTOBUF) == request


NAMES = (
    "resourceSpans scopeSpans spans attributes key value intValue traceId kind status code events arrayValue values "
    "resourceMetrics scopeMetrics metrics sum dataPoints asInt resourceLogs scopeLogs logRecords body x"
)
names = st.sampled_from(tuple(NAMES.split(" ")))
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)


@given(junk, st.sampled_from([ExportTraceServiceRequest, ExportMetricsServiceRequest, ExportLogsServiceRequest]))
def test_any_json_is_taken_or_named(data: Any, kind: Any) -> None:
    message = ""
    try:
        fill(kind(), data)
    except JsonError as error:
        message = str(error)
    assert not message or "must be" in message or "nested" in message


@given(st.binary(max_size=200), st.sampled_from([PROTOBUF, JSON]))
def test_any_bytes_are_taken_or_400(body: bytes, encoding: str) -> None:
    status = 400
    try:
        decode(ExportTraceServiceRequest, body, encoding)
    except OtlpError as error:
        status = error.status
    assert status == 400


def span_json(**fields: Any) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}).encode()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"traceId": "xyz"}, "resourceSpans.scopeSpans.spans.traceId must be a string of hex digits"),
        ({"traceId": 5}, "resourceSpans.scopeSpans.spans.traceId must be a string"),
        ({"startTimeUnixNano": "-1"}, "startTimeUnixNano must be a whole number from 0 to 18446744073709551615"),
        ({"startTimeUnixNano": str(2**64)}, "startTimeUnixNano must be a whole number"),
        ({"startTimeUnixNano": 1.5}, "startTimeUnixNano must be a whole number"),
        ({"startTimeUnixNano": True}, "startTimeUnixNano must be a whole number"),
        ({"attributes": {}}, "resourceSpans.scopeSpans.spans.attributes must be a list"),
        ({"attributes": [{"key": "k", "value": {"boolValue": 1}}]}, "attributes.value.boolValue must be true or false"),
        ({"attributes": [{"key": "k", "value": {"doubleValue": "x"}}]}, "value.doubleValue must be a number"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": "*"}}]}, "value.bytesValue must be a base64 string"),
        ({"attributes": ["k"]}, "resourceSpans.scopeSpans.spans.attributes must be an object"),
        ({"kind": "NO_SUCH"}, "resourceSpans.scopeSpans.spans.kind must be a whole number"),
        ({"name": []}, "resourceSpans.scopeSpans.spans.name must be a string"),
    ],
)
def test_json_errors_say_where(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(OtlpError) as caught:
        decode(ExportTraceServiceRequest, span_json(**fields), JSON)
    assert (caught.value.status, caught.value.code) == (400, "bad_json")
    assert path in caught.value.message


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\ude00 cut", "\ufffd cut"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        (r"\\ud83d and \uD83D\n", "\\ud83d and \ufffd\n"),
        (r"\\\udfff\"", '\\\ufffd"'),
        (r"\u00e4\udC00\u0041", "\u00e4\ufffdA"),
    ],
)
def test_half_of_a_surrogate_pair_costs_nothing_but_itself(escaped: str, text: str) -> None:
    spans = f'[{{"name": "{escaped}"}}, {{"name": "whole"}}]'
    body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": {spans}}}]}}]}}'
    decoded = decode(ExportTraceServiceRequest, body.encode(), JSON).resource_spans[0].scope_spans[0].spans
    assert [span.name for span in decoded] == [text, "whole"]


def test_json_nested_too_deep_is_400() -> None:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(100):
        value = {"arrayValue": {"values": [value]}}
    with pytest.raises(OtlpError, match="nested over 64 levels"):
        decode(ExportTraceServiceRequest, span_json(attributes=[{"key": "k", "value": value}]), JSON)


def test_unpack() -> None:
    assert unpack(b"abc", "") == unpack(b"abc", "identity") == b"abc"
    assert unpack(gzip.compress(b"abc"), "gzip") == unpack(zlib.compress(b"abc"), "deflate") == b"abc"
    for body, encoding, status in [
        (b"abc", "br", 415),
        (b"abc", "gzip", 400),
        (gzip.compress(b"abc" * 100)[:-9], "gzip", 400),
        (gzip.compress(bytes(MAX_BODY + 1)), "gzip", 413),
        (bytes(MAX_BODY + 1), "", 413),
    ]:
        with pytest.raises(OtlpError) as caught:
            unpack(body, encoding)
        assert caught.value.status == status
    assert len(unpack(gzip.compress(bytes(MAX_BODY)), "gzip")) == MAX_BODY


def test_content_types() -> None:
    assert encoding_of("application/x-protobuf") == encoding_of("Application/Protobuf; a=b") == PROTOBUF
    assert encoding_of("application/json; charset=utf-8") == JSON
    for wrong in ("", "text/plain", "application/x-www-form-urlencoded"):
        with pytest.raises(OtlpError) as caught:
            encoding_of(wrong)
        assert caught.value.status == 415


def test_bodies_answer_in_the_encoding_of_the_request() -> None:
    error = OtlpError(503, "writer_behind", "The store is behind.", "Send again.")
    status = Status.FromString(error_body(error, PROTOBUF))
    assert (status.code, status.message) == (14, "The store is behind. Send again.")  # 14: UNAVAILABLE
    assert json.loads(error_body(error, JSON)) == {
        "error": {"code": "writer_behind", "message": "The store is behind.", "fix": "Send again."},
        "code": 14,
        "message": "The store is behind.",
    }
    assert success_body("traces", PROTOBUF) == b""
    assert success_body("traces", JSON) == b"{}"
    partial = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "why"}}
    assert json.loads(success_body("traces", JSON, 2, "why")) == partial
    assert b"why" in success_body("logs", PROTOBUF, 2, "why")
