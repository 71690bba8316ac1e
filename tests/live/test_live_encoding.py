"""OTLP/JSON as it is written is what is read: every value comes back, ids are hex, wide numbers are strings."""

from __future__ import annotations

import json
import math

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from claudescope.live.receiver.otlp_json import fill
from claudescope.live.store.encoding import encode

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(
    st.builds(lambda v: AnyValue(string_value=v), WORDS),
    st.builds(lambda v: AnyValue(bool_value=v), st.booleans()),
    st.builds(lambda v: AnyValue(int_value=v), st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda v: AnyValue(double_value=v), st.floats(allow_nan=False)),
    st.builds(lambda v: AnyValue(bytes_value=v), st.binary(max_size=8)),
    st.just(AnyValue()),
)


def _array(values: list[AnyValue]) -> AnyValue:
    made = AnyValue()
    made.array_value.SetInParent()
    made.array_value.values.extend(values)
    return made


def _mapping(pairs: list[tuple[str, AnyValue]]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    made.kvlist_value.values.extend([KeyValue(key=key, value=value) for key, value in pairs])
    return made


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(_array, st.lists(inner, max_size=3)),
        st.builds(_mapping, st.lists(st.tuples(WORDS, inner), max_size=3)),
    ),
    max_leaves=6,
)
ATTRIBUTES = st.lists(st.builds(lambda k, v: KeyValue(key=k, value=v), WORDS, VALUES), max_size=4)
TIMES = st.integers(0, 2**64 - 1)
IDS = st.binary(min_size=8, max_size=8)
TRACES = st.binary(min_size=16, max_size=16)
SPANS = st.builds(
    Span,
    trace_id=TRACES,
    span_id=IDS,
    parent_span_id=st.one_of(st.just(b""), IDS),
    trace_state=WORDS,
    flags=st.integers(0, 2**32 - 1),
    name=WORDS,
    kind=st.integers(0, 5),
    start_time_unix_nano=TIMES,
    end_time_unix_nano=TIMES,
    attributes=ATTRIBUTES,
    dropped_attributes_count=st.integers(0, 2**32 - 1),
    events=st.lists(st.builds(Span.Event, time_unix_nano=TIMES, name=WORDS, attributes=ATTRIBUTES), max_size=2),
    links=st.lists(st.builds(Span.Link, trace_id=TRACES, span_id=IDS, attributes=ATTRIBUTES), max_size=2),
)
LOGS = st.builds(
    LogRecord,
    time_unix_nano=TIMES,
    observed_time_unix_nano=TIMES,
    severity_number=st.integers(0, 24),
    severity_text=WORDS,
    body=VALUES,
    attributes=ATTRIBUTES,
    trace_id=TRACES,
    span_id=IDS,
    event_name=WORDS,
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(SPANS, LOGS))
def test_what_is_written_is_read_back(message):
    read = type(message)()
    fill(read, orjson.loads(encode(message)))
    assert read == message


def test_the_form_is_that_of_otlp():
    span = Span(trace_id=b"\1" * 16, span_id=b"\xab" * 8, kind=3, start_time_unix_nano=2**63, name="a")
    span.status.code = 2
    for key, value in (
        ("i", AnyValue(int_value=-5)),
        ("b", AnyValue(bool_value=False)),
        ("d", AnyValue(double_value=1)),
    ):
        span.attributes.add(key=key, value=value)
    assert json.loads(encode(span)) == {
        "traceId": "01" * 16,
        "spanId": "ab" * 8,
        "name": "a",
        "kind": 3,
        "startTimeUnixNano": "9223372036854775808",
        "attributes": [
            {"key": "i", "value": {"intValue": "-5"}},
            {"key": "b", "value": {"boolValue": False}},
            {"key": "d", "value": {"doubleValue": 1.0}},
        ],
        "status": {"code": 2},
    }


@pytest.mark.parametrize(("value", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")])
def test_numbers_that_json_lacks_are_words(value, text):
    assert json.loads(encode(AnyValue(double_value=value))) == {"doubleValue": text}
    read = AnyValue()
    fill(read, {"doubleValue": text})
    assert str(read.double_value) == str(value)


def test_bytes_that_are_no_id_are_base64():
    assert json.loads(encode(AnyValue(bytes_value=b"\0\1"))) == {"bytesValue": "AAE="}
