"""Senders and folders that mean no good, or had bad luck: what they cost is bounded, and what is wrong is named."""

from __future__ import annotations

import gzip
import http.client
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from live_kit import Client, Sender, Stream, running
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.live import server
from claudescope.live.receiver import otlp_json
from claudescope.live.receiver.otlp import JSON, MAX_BODY, MAX_RECORDS, PROTOBUF, OtlpError, decode
from claudescope.live.records import Batch, read_spans
from claudescope.live.server import LiveServer
from claudescope.live.store import folder, traces
from claudescope.live.store.folder import DataFolder, default_folder
from claudescope.live.store.schema import FILE_NAME, connect
from claudescope.live.stream import Hub
from claudescope.live.web import app, connection
from claudescope.settings import Settings

# ---------------------------------------------------------------------------------------------- senders


def nested(levels: int, empty: int) -> bytes:
    """``empty`` empty messages of field 1 or 2, each two bytes, in the first ``levels`` levels of a request."""
    fields = (b"\x0a", b"\x12", b"\x12")
    body = (fields[levels] + b"\x00") * empty
    for field in reversed(fields[:levels]):
        size, length = len(body), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        body = field + length + bytes([size]) + body
    return body


@pytest.mark.parametrize(
    "request_type", [ExportTraceServiceRequest, ExportMetricsServiceRequest, ExportLogsServiceRequest]
)
@pytest.mark.parametrize("levels", [0, 1, 2])
def test_a_body_of_many_empty_messages_is_413(request_type: Any, levels: int) -> None:
    # the levels above are one message each
    assert decode(request_type, nested(levels, MAX_RECORDS - levels), PROTOBUF) is not None
    with pytest.raises(OtlpError) as caught:
        decode(request_type, nested(levels, MAX_RECORDS - levels + 1), PROTOBUF)
    assert (caught.value.status, caught.value.code) == (413, "too_many_records")


def test_data_points_count_as_records() -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.sum.MergeFromString(b"\x0a\x00" * MAX_RECORDS)
    with pytest.raises(OtlpError, match="over 100000 records"):
        decode(ExportMetricsServiceRequest, request.SerializeToString(), PROTOBUF)


def test_json_objects_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_json, "_MAX_OBJECTS", 5)
    spans = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}'
    assert decode(ExportTraceServiceRequest, spans % b"{},{}", JSON) is not None  # with the three around them: 5
    with pytest.raises(OtlpError, match="over 5 objects") as caught:
        decode(ExportTraceServiceRequest, spans % b"{},{},{}", JSON)
    assert caught.value.status == 400


def test_a_small_body_that_unpacks_to_many_messages_is_refused_by_the_server(live: Client) -> None:
    body = gzip.compress(b"\x0a\x00" * (MAX_BODY // 2))
    assert len(body) < 20_000
    for path in ("/v1/traces", "/v1/metrics", "/v1/logs"):
        assert live.post(body, path, Content_Encoding="gzip").status == 413
    assert live.get("/healthz").status == 200


def test_the_texts_of_a_step_are_cut(live: Client) -> None:
    long = "x" * 300
    sender = Sender(service=long)
    named = (
        semconv.STEP_KIND,
        semconv.STEP_NAME,
        semconv.REQUEST_MODEL,
        semconv.TOOL_NAME,
        semconv.CHAIN_ID,
        semconv.STEP_LATENCY_SOURCE,
        semconv.STEP_CONFIDENCE_METHOD,
    )
    attributes: dict[str, Any] = dict.fromkeys(named, long)
    attributes |= {f"{semconv.LABEL_PREFIX}{number:03}{long}": long for number in range(100)}
    attributes[semconv.STEP_CONFIDENCE] = 0.5
    attributes[semconv.STEP_VALIDITY_REASON] = "a" * 100_000
    sender.step(0, attributes, parent=b"p" * 1000)
    assert live.post(sender.body()).status == 200
    (step,) = live.items("/api/steps")
    texts = ("kind", "name", "model", "tool", "service", "run_id", "latency_source", "confidence_method")
    assert {len(step[name]) for name in texts} == {256}
    assert len(step["labels"]) == 64
    assert {(len(key), len(value)) for key, value in step["labels"].items()} == {(256, 256)}
    assert step["call_span_id"] is None  # an id has 8 bytes
    assert [len(reason["check"]) for reason in step["reasons"]] == [8192]
    assert live.items(f"/api/steps?service={'x' * 256}") == [step]


def test_attributes_beyond_1024_are_stored_and_not_looked_at() -> None:
    sender = Sender()
    sender.span({**{f"a{number}": 1 for number in range(1024)}, semconv.STEP_INDEX: 0})
    batch = Batch()
    list(read_spans(sender.request, batch))
    assert (batch.spans, batch.steps) == (1, [])


def test_a_counter_with_long_labels_is_not_taken(live: Client) -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name=semconv.STEPS.name)
    metric.sum.aggregation_temporality = 2
    point = metric.sum.data_points.add(as_int=1)
    point.attributes.add(key="label").value.string_value = "x" * 5000
    assert live.post(request.SerializeToString(), "/v1/metrics").status == 200
    assert live.items("/api/counters") == []


async def test_the_ring_is_bounded_in_bytes_too() -> None:
    hub = Hub("e", ring=100, ring_bytes=1000)
    stream = hub.subscribe()
    await anext(stream)
    for number in range(10):
        hub.publish("step", {"n": number, "text": "x" * 400})  # some 450 bytes each: two fit
    lag, rest = await anext(stream), await anext(stream)
    assert lag == b'event: lag\ndata: {"count":8}\n\n'
    assert rest.count(b"event: step") == 2
    hub.publish("step", {"text": "x" * 5000})  # larger than the ring: still given to who listens
    assert b"x" * 5000 in await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]


async def test_the_ring_forgets_by_number_as_before() -> None:
    hub = Hub("e", ring=4)
    for number in range(10):
        hub.publish("step", number)
    stream = hub.subscribe("e-0")
    await anext(stream)
    assert await anext(stream) == b'event: lag\ndata: {"count":5}\n\n'  # 1 to 5; 6 to 9 are there
    assert (await anext(stream)).count(b"event: step") == 4
    await stream.aclose()  # type: ignore[attr-defined]


def test_bodies_at_once_are_bounded(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_MAX_HELD", 1000)
    held = http.client.HTTPConnection(live.address, timeout=30)
    held.putrequest("POST", "/v1/traces")
    held.putheader("Content-Type", PROTOBUF)
    held.putheader("Content-Length", "2000")
    held.endheaders(bytes(900))
    answer = live.post(bytes(500))
    while answer.status == 400:  # until the 900 bytes have been read, this one is alone
        answer = live.post(bytes(500))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    held.close()
    while answer.status == 503:
        answer = live.post(bytes(500))
    assert answer.status == 400  # read to its end, and no request


def test_a_trace_of_many_bytes_is_truncated(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_BYTES", 5000)
    for _ in range(3):
        sender = Sender()
        sender.span({"text": "x" * 3000})
        live.send(sender)
    found = live.get(f"/api/traces/{'01' * 16}").json
    assert (len(found["spans"]), found["truncated"]) == (1, True)


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "https://evil.example", "null", "//"])
def test_an_origin_of_any_form_is_refused(live: Client, origin: str) -> None:
    answer = live.post(b"", Origin=origin)
    assert (answer.status, answer.json["error"]["code"]) == (403, "wrong_origin")


@pytest.mark.parametrize("whole_before", [0, 2])
@pytest.mark.parametrize(
    "part",
    [
        b"GET /healthz HT",
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_come_whole_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: bytes, whole_before: int
) -> None:
    monkeypatch.setattr(connection, "_REQUEST_TIME", 0.5)
    with running(tmp_path / "data") as live:
        opened = http.client.HTTPConnection(live.address, timeout=30)
        opened.connect()
        for _ in range(whole_before):
            opened.request("GET", "/healthz")
            assert opened.getresponse().read()
        opened.sock.sendall(part)
        assert opened.sock.recv(1) == b""  # the server closes; it would wait for ever
        opened.close()


def test_a_connection_that_asks_for_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_REQUEST_TIME", 0.1)
    with running(tmp_path / "data") as live:
        opened = http.client.HTTPConnection(live.address, timeout=30)
        opened.connect()
        assert opened.sock.recv(1) == b""
        opened.close()


def test_refused_connections_are_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_CONNECTIONS", 2)
    with running(tmp_path / "data") as live:
        first = http.client.HTTPConnection(live.address, timeout=30)
        first.request("GET", "/healthz")
        assert first.getresponse().read()  # it stays open
        for _ in range(3):
            assert live.get("/healthz").status == 503
        first.close()
    assert caplog.messages == []


def test_answers_may_take_longer_than_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_REQUEST_TIME", 0.1)
    with running(tmp_path / "data") as live:
        stream = Stream(live.url)
        try:
            for _ in range(2):  # figures come once a second
                assert stream.next("stats")[0] == "stats"
        finally:
            stream.close()


# ---------------------------------------------------------------------------------------------- folders


def make_database(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE t (a)",),
        ("CREATE TABLE runs (a)",),
        ("CREATE TABLE t (a)", "PRAGMA user_version = 1"),
        ("CREATE TABLE t (a)", "PRAGMA user_version = -3"),
        ("CREATE TABLE t (a)", "PRAGMA application_id = 7"),
    ],
)
def test_another_programs_database_is_left_alone(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = tmp_path / FILE_NAME
    make_database(path, *statements)
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="the database of another program"):
        connect(tmp_path)
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    connect(tmp_path).close()


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    with running(tmp_path) as live:
        sender = Sender()
        sender.step(0)
        live.send(sender)
    path = tmp_path / FILE_NAME
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)  # the first page, with the schema, stays
        file.write(os.urandom(size - 4096))
    with pytest.raises(UsageError, match="damaged"):
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path}))
    DataFolder(tmp_path).close()  # it was given back


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)  # as /tmp
    with running(shared):
        assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
        assert {stat.S_IMODE(file.stat().st_mode) for file in shared.iterdir()} == {0o600}


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.os, "pwrite", full)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path}))


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(folder.Path, "home", homeless)
    with pytest.raises(UsageError, match="--data"):
        default_folder()
