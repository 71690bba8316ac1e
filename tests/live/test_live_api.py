from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from live_kit import PROTOBUF, Client, Sender, running
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from claudescope import semconv
from claudescope.live.receiver.otlp import MAX_BODY

SCRIPT = "<script>alert(1)</script>\"'&\u2028<img src=x onerror=alert(1)>"


def test_healthz(live: Client) -> None:
    answer = live.get("/healthz").json
    assert set(answer) == {"service", "version", "started"}
    assert answer["service"] == "claudescope"


def test_page_and_headers(live: Client) -> None:
    page = live.get("/")
    assert page.headers["content-type"].startswith("text/html")
    size = len(gzip.compress(page.body))
    for file in files("claudescope.live").joinpath("page").iterdir():
        if file.name != "index.html":
            answer = live.get(f"/{file.name}")
            assert answer.status == 200, file.name
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "script-src 'self'" in answer.headers["content-security-policy"]
            packed = live.get(f"/{file.name}", Accept_Encoding="gzip")
            assert gzip.decompress(packed.body) == answer.body
            size += len(packed.body)
    assert size < 150_000
    for word in (b"http://", b"https://", b"innerHTML", b"<script>"):
        assert word not in page.body.replace(b"http://127.0.0.1:4318", b"")


def test_nothing_in_the_page_makes_markup_from_text() -> None:
    for file in files("claudescope.live").joinpath("page").iterdir():
        if file.name.endswith(".js"):
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
                assert word not in file.read_text("utf-8"), (file.name, word)


def test_scripts_in_every_field_come_back_as_text(live: Client) -> None:
    sender = Sender(SCRIPT)
    attributes = {
        semconv.STEP_KIND: SCRIPT,
        semconv.STEP_NAME: SCRIPT,
        semconv.STEP_LATENCY_SOURCE: SCRIPT,
        semconv.STEP_CONFIDENCE: 0.5,
        semconv.STEP_CONFIDENCE_METHOD: SCRIPT,
        semconv.STEP_VALID: False,
        semconv.STEP_VALIDITY_REASON: SCRIPT,
        semconv.CHAIN_ID: SCRIPT,
        semconv.REQUEST_MODEL: SCRIPT,
        semconv.TOOL_NAME: SCRIPT,
        semconv.LABEL_PREFIX + SCRIPT: SCRIPT,
    }
    sender.step(0, attributes, name=SCRIPT)
    live.send(sender)
    answer = live.get("/api/steps")
    assert answer.headers["content-type"] == "application/json"
    (step,) = answer.json["items"]
    for key in ("kind", "name", "latency_source", "confidence_method", "run_id", "model", "tool", "service"):
        assert step[key] == SCRIPT
    assert step["labels"] == {SCRIPT: SCRIPT}
    assert len(step["reasons"]) == len(SCRIPT.split())
    (run,) = live.items("/api/runs")
    assert (run["run_id"], run["service"], run["model"]) == (SCRIPT, SCRIPT, SCRIPT)
    trace = live.get(f"/api/traces/{'01' * 16}").json
    assert trace["spans"][0]["name"] == SCRIPT
    assert trace["spans"][0]["resource"] == {"service.name": SCRIPT}


def test_spans_of_any_app_are_stored(live: Client) -> None:
    sender = Sender("shop")
    root = sender.span({"http.route": "/pay", "n": 1, "share": 0.5, "ok": True, "list": ["a", "b"]}, name="POST /pay")
    sender.span({}, parent=root, name="child")
    live.send(sender)
    assert live.items("/api/steps") == live.items("/api/runs") == []
    trace = live.get(f"/api/traces/{'01' * 16}").json
    assert [span["name"] for span in trace["spans"]] == ["POST /pay", "child"]
    first = trace["spans"][0]
    assert first["attributes"] == {"http.route": "/pay", "n": 1, "share": 0.5, "ok": True, "list": ["a", "b"]}
    assert (first["duration_us"], first["status"], first["parent_span_id"]) == (100_000, "unset", None)
    assert trace["spans"][1]["parent_span_id"] == root.hex()
    assert (trace["truncated"], trace["events"]) == (False, [])


def test_no_such_trace(live: Client) -> None:
    assert live.get(f"/api/traces/{'ab' * 16}").status == 404
    answer = live.get("/api/traces/xyz")
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_parameter")
    assert "trace_id" in answer.json["error"]["message"]


def test_bad_bodies(live: Client) -> None:
    good = Sender()
    good.step(0)
    body = good.body()
    for answer, status, code in [
        (live.post(body, content_type="text/plain"), 415, "unsupported_content_type"),
        (live.post(b"{", content_type="application/json"), 400, "bad_json"),
        (live.post(b"[]", content_type="application/json"), 400, "bad_json"),
        (live.post(b"{}", content_type="application/json", Content_Encoding="br"), 415, "unsupported_encoding"),
        (live.post(bytes(MAX_BODY + 1), content_type="application/json"), 413, "body_too_large"),
    ]:
        assert answer.status == status
        assert answer.json["error"]["code"] == code
        assert answer.json["error"]["fix"]
    assert live.post(b"\xff\xff").status == 400
    assert live.post(b"not gzip", Content_Encoding="gzip").status == 400
    bomb = gzip.compress(bytes(200 * 2**20), 1)
    assert len(bomb) < MAX_BODY
    assert live.post(bomb, Content_Encoding="gzip").status == 413
    assert live.post(gzip.compress(body), Content_Encoding="gzip").status == 200
    assert len(live.items("/api/steps")) == 1
    assert live.get("/v1/traces").status == 405
    assert live.get("/nothing").json["error"]["code"] == "not_found"


def test_partial_success(live: Client) -> None:
    sender = Sender()
    sender.step(0, span=bytes(8))
    sender.step(1)
    answer = live.post(sender.body())
    assert answer.status == 200
    assert ExportTraceServiceResponse.FromString(answer.body).partial_success.rejected_spans == 1


def test_json_traces(live: Client) -> None:
    attributes = [
        {"key": semconv.STEP_INDEX, "value": {"intValue": "2"}},
        {"key": semconv.STEP_KIND, "value": {"stringValue": "text"}},
    ]
    span = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "EEE19B7EC3C1B174",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000000250000000",
        "attributes": attributes,
        "unknownField": 1,
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    answer = live.post(body, content_type="application/json")
    assert (answer.status, answer.json) == (200, {})
    (step,) = live.items("/api/steps")
    assert (step["trace_id"], step["latency_us"]) == ("5b8efff798038103d269b633813fc60c", 250_000)
    assert step["service"] == "unknown_service"


def test_lists_page_by_cursor(live: Client) -> None:
    sender = Sender()
    now = 1_700_000_000_000
    for index in range(25):
        sender.step(index, end_ms=now + index // 5)  # five share each time
    live.send(sender)
    for order, expected in (("asc", list(range(25))), ("desc", list(range(24, -1, -1)))):
        seen: list[int] = []
        cursor: str | None = ""
        while cursor is not None:
            page = live.get(f"/api/steps?limit=10&order={order}" + (f"&cursor={cursor}" if cursor else "")).json
            seen += [step["step_index"] for step in page["items"]]
            cursor = page["next"]
        assert seen == expected
    assert [s["step_index"] for s in live.items(f"/api/steps?from={now + 4}&order=asc")] == [20, 21, 22, 23, 24]
    at = (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=now + 1)).isoformat()
    assert len(live.items(f"/api/steps?to={at.replace('+', '%2B')}")) == 5
    assert [s["step_index"] for s in live.items("/api/steps?index=7")] == [7]
    assert live.items("/api/steps?valid=true") == []
    assert len(live.items(f"/api/steps?valid=unknown&run={'01' * 16}&kind=thinking&service=app&limit=1000")) == 25
    assert len(live.items(f"/api/steps?trace={'01' * 16}")) == 25
    assert live.items("/api/runs?service=other") == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/steps?limit=0", "limit"),
        ("/api/steps?limit=1001", "limit"),
        ("/api/steps?limit=x", "limit"),
        ("/api/steps?from=yesterday", "from"),
        ("/api/steps?to=2026-13-01T00:00:00Z", "to"),
        ("/api/steps?cursor=x", "cursor"),
        ("/api/steps?order=up", "order"),
        ("/api/steps?valid=maybe", "valid"),
        ("/api/steps?index=-1", "index"),
        ("/api/steps?trace=zz", "trace"),
        ("/api/steps?colour=red", "colour"),
        ("/api/runs?run=", "run"),
        ("/api/heatmap?bucket=1", "bucket"),
        ("/api/heatmap?from=2&to=1", "from"),
        ("/api/counters?x=1", "x"),
    ],
)
def test_a_bad_parameter_is_named(live: Client, path: str, name: str) -> None:
    answer = live.get(path)
    assert answer.status == 400
    error = answer.json["error"]
    assert error["code"] == "bad_parameter"
    assert name in error["message"]
    assert error["fix"]


def test_heatmap(live: Client) -> None:
    sender = Sender()
    for index in (0, 0, 1):
        sender.step(index, {semconv.STEP_VALID: True})
    live.send(sender)
    answer = live.get("/api/heatmap").json
    assert answer["bucket_ms"] == 10_000
    counts: dict[str, int] = {}
    for cell in answer["items"]:
        counts[cell["step_index"]] = counts.get(cell["step_index"], 0) + cell["count"]
        assert cell["p95_us"] == pytest.approx(100_000, rel=0.05)
        assert cell["invalid_share"] == 0
    assert counts == {"0": 2, "1": 1}
    assert live.get("/api/heatmap?bucket=70").json["bucket_ms"] == 70_000


def _logs() -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    logs = request.resource_logs.add()
    logs.resource.attributes.add(key="service.name").value.string_value = "app"
    record = logs.scope_logs.add().log_records.add(
        trace_id=b"\1" * 16, span_id=b"\2" * 8, time_unix_nano=1_700_000_000_000_000_000
    )
    record.event_name = semconv.EVALUATION_EVENT
    record.attributes.add(key=semconv.EVALUATION_NAME).value.string_value = "validity"
    return request


def test_evaluation_events_are_kept_once(live: Client) -> None:
    for _ in range(2):
        assert live.post(_logs().SerializeToString(), "/v1/logs").status == 200
    (event,) = live.get(f"/api/traces/{'01' * 16}").json["events"]
    assert (event["name"], event["span_id"], event["ts_ms"]) == (
        "gen_ai.evaluation.result",
        "02" * 8,
        1_700_000_000_000,
    )
    assert event["attributes"] == {"gen_ai.evaluation.name": "validity"}


def _counter(value: int, valid: str = "true", sender: str = "1", delta: bool = False, start: int = 5) -> bytes:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add()
    metrics.resource.attributes.add(key="service.name").value.string_value = "app"
    metrics.resource.attributes.add(key="service.instance.id").value.string_value = sender
    metric = metrics.scope_metrics.add().metrics.add(name=semconv.STEPS.name)
    metric.sum.aggregation_temporality = 1 if delta else 2
    point = metric.sum.data_points.add(as_int=value, start_time_unix_nano=start)
    point.attributes.add(key=semconv.STEP_VALID).value.string_value = valid
    return request.SerializeToString()


def test_counters_are_the_latest_by_sender_summed_and_kept(tmp_path: Path) -> None:
    expected = [
        {"name": "claudescope.steps", "labels": {"service": "app", "claudescope.step.valid": "false"}, "value": 7.0},
        {"name": "claudescope.steps", "labels": {"service": "app", "claudescope.step.valid": "true"}, "value": 60.0},
    ]
    with running(tmp_path / "data") as live:
        bodies = [
            _counter(0, "false"),
            _counter(7, "false"),
            _counter(3),
            _counter(50),
            _counter(6, sender="2"),
            _counter(2, start=9),  # the same sender after a new start: added
            _counter(1, delta=True),
            _counter(1, delta=True),
        ]
        for body in bodies:
            assert live.post(body, "/v1/metrics").status == 200
        assert live.items("/api/counters") == expected
    with running(tmp_path / "data") as live:
        assert live.items("/api/counters") == expected


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4318", "127.0.0.1.evil.example", "10.0.0.1", "", "[::"])
def test_another_host_name_is_refused(live: Client, host: str) -> None:
    answer = live.get("/api/steps", Host=host)
    assert (answer.status, answer.json["error"]["code"]) == (421, "wrong_host")
    assert live.post(b"", Host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:4318", "127.1.2.3"])
def test_loopback_host_names_are_taken(live: Client, host: str) -> None:
    assert live.get("/api/steps", Host=host).status == 200


def test_another_sites_page_cannot_write(live: Client) -> None:
    assert live.post(b"", Origin="https://evil.example").status == 403
    assert live.post(b"", Origin="null").status == 403
    assert live.post(b"", Origin=live.url).status == 200
    answer = live.ask("OPTIONS", "/v1/traces", Origin="https://evil.example")
    assert answer.status == 403
    assert not [
        name for name in live.get("/api/steps", Origin="https://evil.example").headers if "allow-origin" in name
    ]


def test_token(tmp_path: Path) -> None:
    with running(tmp_path / "data", token="s3cret") as live:
        assert live.get("/healthz").status == 200
        for answer in (live.get("/"), live.get("/api/runs"), live.post(b""), live.get("/?token=wrong")):
            assert answer.status == 401
            assert answer.json["error"]["code"] == "token_needed"
        assert live.get("/api/runs", Authorization="Bearer s3cret").status == 200
        assert live.get("/api/runs", Authorization="Bearer wrong").status == 401
        assert live.post(b"", Authorization="bearer s3cret").status == 200
        answer = live.get("/?token=s3cret")
        assert (answer.status, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "s3cret" not in cookie
        pair = cookie.partition(";")[0]
        assert live.get("/", Cookie=pair).status == 200
        assert live.get("/api/stream", Cookie="claudescope=wrong").status == 401


def test_real_http_exporter_delivers(live: Client) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    _export(OTLPSpanExporter(f"{live.url}/v1/traces", compression=Compression.Gzip), live)


def test_real_grpc_exporter_delivers(tmp_path: Path) -> None:
    import socket

    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running(tmp_path / "data", grpc_port=port, token="t") as live:
        import grpc

        refused = OTLPSpanExporter(f"http://127.0.0.1:{port}", insecure=True, timeout=2)
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            with pytest.raises(grpc.RpcError) as caught:
                call(b"", timeout=20)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            with pytest.raises(grpc.RpcError) as caught:
                call(b"\xff", timeout=20, metadata=[("authorization", "Bearer t")])
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        refused.shutdown()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}", insecure=True, headers=(("authorization", "Bearer t"),))
        _export(exporter, live, Authorization="Bearer t")


def _export(exporter: Any, live: Client, **headers: str) -> None:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource({"service.name": "real"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("call") as call:
        for index in range(5):
            attributes = {semconv.STEP_INDEX: index, semconv.STEP_KIND: "text", semconv.STEP_CONFIDENCE: index / 10}
            with provider.get_tracer("t").start_as_current_span("reasoning_step text", attributes=attributes):
                pass
    assert provider.force_flush()
    provider.shutdown()
    steps = live.get("/api/steps?order=asc", **headers).json["items"]
    assert [(step["step_index"], step["confidence"]) for step in steps] == [(i, i / 10) for i in range(5)]
    assert {step["service"] for step in steps} == {"real"}
    trace = live.get(f"/api/traces/{call.get_span_context().trace_id:032x}", **headers).json
    assert len(trace["spans"]) == 6


def test_protobuf_error_body_is_a_status(live: Client) -> None:
    from google.rpc.status_pb2 import Status

    answer = live.post(b"\xff")
    assert (answer.status, answer.headers["content-type"]) == (400, PROTOBUF)
    assert Status.FromString(answer.body).code == 3  # INVALID_ARGUMENT
