"""`docs/api.md` has the keys, parameters, events and errors of the real answers, and no others."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from live_kit import Client, Sender, Stream, running
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

import claudescope
from claudescope import semconv
from claudescope.live import server, web
from claudescope.live.receiver.otlp import MAX_BODY, MAX_RECORDS
from claudescope.live.store.deadline import ANSWER_S
from claudescope.live.stream import MAX_CLIENTS
from claudescope.live.web import app, connection, endpoint
from claudescope.live.web.events import MAX_PER_ADDRESS
from claudescope.live.web.parameters import FILTER
from claudescope.live.web.security import MAX_PARAMETERS, MAX_QUERY
from claudescope.testing import StandIn, Telemetry, say

DOC = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
LIVE = Path(web.__file__).parents[1]


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", DOC, re.MULTILINE | re.DOTALL)
    return found


def words(text: str) -> set[str]:
    return set(re.findall(r"`([a-z][a-z0-9_]*)`", text))


def column(title: str, number: int = 0) -> set[str]:
    """The names in a column of a section's table."""
    rows = [
        line.strip("|").split("|")
        for line in section(title).splitlines()
        if line.startswith("| `") or re.match(r"\| \d", line)
    ]
    return {word for row in rows for word in words(row[number])}


@pytest.fixture
def filled(live: Client) -> Client:
    sender = Sender()
    call = sender.span({semconv.OPERATION_NAME: "chat", semconv.CHAIN_ID: "r", semconv.USAGE_INPUT: 3}, name="chat")
    sender.step(
        0, {semconv.CHAIN_ID: "r", semconv.STEP_VALID: False, semconv.STEP_VALIDITY_REASON: "a.b@1-2"}, parent=call
    )
    span = sender.spans[0]
    span.events.add(name="e", time_unix_nano=1)
    span.links.add(trace_id=b"\3" * 16, span_id=b"\3" * 8)
    live.send(sender)
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"\1" * 16, span_id=b"\2" * 8)
    record.event_name = semconv.EVALUATION_EVENT
    live.post(logs.SerializeToString(), "/v1/logs")
    metrics = ExportMetricsServiceRequest()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name=semconv.STEPS.name)
    metric.sum.aggregation_temporality = 2
    metric.sum.data_points.add(as_int=1, start_time_unix_nano=5)
    live.post(metrics.SerializeToString(), "/v1/metrics")
    return live


def test_the_record_of_a_step(filled: Client) -> None:
    (step,) = filled.items("/api/steps")
    assert set(step) == column("The record of a step")
    assert set(step["reasons"][0]) == {"check", "code", "start", "end"}
    text = section("The record of a step")
    assert all(f"`{name}`" in text for name in step["reasons"][0])


def test_callbacks_give_the_same_record() -> None:
    records: list[dict[str, Any]] = []
    with StandIn(say("Hello.")) as standin, Telemetry() as telemetry:
        import anthropic

        claudescope.instrument(telemetry.tracer_provider, telemetry.meter_provider, telemetry.logger_provider)
        try:
            claudescope.on_validated(records.append)
            with anthropic.Anthropic(base_url=standin.url, api_key="k") as client:
                client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])
            with claudescope.run("r"), claudescope.step("s"):
                pass
            assert claudescope.flush(30)
        finally:
            claudescope.uninstrument()
        spans = {f"{span.context.span_id:016x}": span for span in telemetry.spans}
    assert {tuple(sorted(record)) for record in records} == {tuple(sorted(column("The record of a step")))}
    assert [record["kind"] for record in records] == ["text", "manual"]
    for record in records:
        assert record["call_span_id"] == f"{spans[record['span_id']].parent.span_id:016x}"


def test_lists_and_their_parameters(filled: Client) -> None:
    rows = [line.strip("|").split("|") for line in section("Lists").splitlines() if line.startswith("| `")]
    documented = {(of, name) for row in rows for of in row[1].strip().split(", ") for name in words(row[0])}
    paths = filled.get("/api/openapi.json").json["paths"]
    real = {
        (_written(path).removeprefix("/api/"), parameter["name"])
        for path, item in paths.items()
        for parameter in item["get"]["parameters"]
        if parameter["in"] == "query" and parameter["name"] not in FILTER
    }
    assert documented == real
    for path in ("steps", "runs"):
        assert set(filled.get(f"/api/{path}").json) == {"items", "next"}
        assert filled.get(f"/api/{path}?limit=1000").status == 200
        assert filled.get(f"/api/{path}?limit=1001").status == 400


def test_filters(filled: Client) -> None:
    assert column("Filters") == set(FILTER)
    rows = {name: line for line in section("Filters").splitlines() for name in words(line.partition("|")[2][:60])}
    for name, parameter in FILTER.items():
        assert ("| yes |" in rows[name]) == parameter.many
    paths = filled.get("/api/openapi.json").json["paths"]
    for path in ("steps", "runs", "heatmap", "distribution", "facets"):
        assert set(FILTER) <= {parameter["name"] for parameter in paths[f"/api/{path}"]["get"]["parameters"]}


def test_every_path_has_a_section(filled: Client) -> None:
    paths = {_written(path) for path in _paths(filled)}
    assert paths - {"/api/openapi.json"} == set(re.findall(r"^## `GET (.*)`$", DOC, re.MULTILINE))
    assert "`GET /api/openapi.json`" in DOC


def _written(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), path)


def _paths(live: Client) -> set[str]:
    return set(live.get("/api/openapi.json").json["paths"])


def test_a_run(filled: Client) -> None:
    (run,) = filled.items("/api/runs")
    assert set(run) == column("`GET /api/runs`")
    assert set(run["worst"]) == {"step_index", "span_id"}


def test_a_whole_run(filled: Client) -> None:
    title = "`GET /api/runs/RUN_ID`"
    whole = filled.get("/api/runs/r").json
    (call,) = whole["calls"]
    assert set(call) == column(title)
    assert set(whole) <= words(section(title))
    assert {"trace_id"} == set(whole["spans"][0]) - set(filled.get(f"/api/traces/{'01' * 16}").json["spans"][0])


def test_a_trace(filled: Client) -> None:
    trace = filled.get(f"/api/traces/{'01' * 16}").json
    text = words(section("`GET /api/traces/TRACE_ID`"))
    span = next(span for span in trace["spans"] if span["events"])
    real = {*trace, *span, *span["events"][0], *span["links"][0], *trace["events"][0]}
    assert real | {"unset", "ok", "error", "no_such_trace"} == text


def test_figures(filled: Client) -> None:
    heat = filled.get("/api/heatmap").json
    assert set(heat["items"][0]) == column("`GET /api/heatmap`")
    assert set(heat) <= words(section("`GET /api/heatmap`"))
    distribution = filled.get("/api/distribution").json
    (item,) = distribution["items"]
    real = {*distribution, *item, *item["latency"], *item["confidence"]}
    assert real == words(section("`GET /api/distribution`"))
    facets = filled.get("/api/facets").json
    assert {*facets, *facets["service"][0]} == words(section("`GET /api/facets`"))


def test_objectives(tmp_path: Path) -> None:
    spec = tmp_path / "slo.yml"
    spec.write_text(
        "version: prometheus/v1\nservice: app\nslos:\n"
        "  - {name: good, objective: 99, indicator: {step_validity: {}}, group_by: [kind], for: 0s}\n"
    )
    with running(tmp_path / "data", slo=(spec,)) as live:
        sender = Sender()
        for _ in range(40):
            sender.step(0, {semconv.STEP_VALID: False}, end_ms=int(time.time() * 1000) - 30_000)
        live.send(sender)
        until = time.monotonic() + 60
        while not (listed := live.get("/api/slos").json)["alerts"]:
            assert time.monotonic() < until
            time.sleep(0.2)
        (item,) = listed["items"]
        of_list = words(section("`GET /api/slos`"))
        assert {*listed, *listed["alerts"][0], *listed["channels"][0]} == of_list
        title = "`GET /api/slos/SLO_ID`"
        assert live.get("/api/slos/app-good").json.keys() == item.keys() == column(title)
        group = item["groups"][0]
        inner = {*group, *group["windows"][0], *group["tiers"][0]}
        assert inner <= words(section(title)) | {"name"}
        answer = live.get("/api/slos/app-good/explain").json
        assert {*answer, *answer["explanation"]} <= words(section("`GET /api/slos/SLO_ID/explain`"))


def test_status(filled: Client) -> None:
    status = filled.get("/api/status").json
    dropped = {"reason", "kind", "value"}
    assert {*status, *status["store"], *dropped} == words(section("`GET /api/status`"))
    counters = filled.get("/api/counters").json
    assert {*counters, *counters["items"][0], *counters["stored"]} == words(section("`GET /api/counters`"))
    assert set(filled.get("/healthz").json) | {"claudescope"} == words(section("`GET /healthz`"))


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
def test_the_examples_run(filled: Client) -> None:
    commands = [
        block.replace("U=http://127.0.0.1:4318", "").replace("curl -N", "curl -N --max-time 2")
        for block in re.findall(r"```sh\n(.*?)```", DOC, re.DOTALL)
    ]
    assert len(commands) == 2
    environ = {**os.environ, "U": filled.url, "RUN": "r", "CLAUDESCOPE_TOKEN": "t"}
    for text in commands:
        done = subprocess.run(["bash", "-c", text], env=environ, capture_output=True, text=True, timeout=60)
        assert '"error":{' not in done.stdout
        assert '"span_id"' in done.stdout
    assert [json.loads(line)["run_id"] for line in done.stdout.splitlines()] == ["r"]


def test_limits() -> None:
    text = section("Limits")
    for part in (
        f"{MAX_BODY // 2**20} MiB; {app._MAX_HELD // 2**20} MiB",
        f"{MAX_RECORDS:,}",
        f"{MAX_QUERY} bytes, {MAX_PARAMETERS} parameters",
        f"{server._CONNECTIONS}; {connection._REQUEST_TIME:g} s",
        f"| {connection._STUCK_TIME:g} s |",
        f"| {ANSWER_S:g} s |",
        f"{MAX_CLIENTS}; {MAX_PER_ADDRESS}",
        f"{endpoint._COMPRESSED // 1024} KiB",
    ):
        assert part in text


def test_the_stream(live: Client) -> None:
    title = "`GET /api/stream`"
    assert column(title) == {"step", "run", "stats", "lag"}
    rows = {line.split("|")[1].strip(" `"): line.split("|")[2] for line in section(title).splitlines() if "|" in line}
    stream = Stream(live.url)
    try:
        sender = Sender()
        sender.step(0)
        live.send(sender)
        seen: dict[str, Any] = {}
        while len(seen) < 3:
            event, data, _ = stream.next("step", "run", "stats")
            seen[event] = data
    finally:
        stream.close()
    assert set(seen["step"]) == column("The record of a step")
    assert set(seen["run"]) == column("`GET /api/runs`")
    assert set(seen["stats"]) == words(rows["stats"])
    late = Stream(live.url, "another-1")
    try:
        _, data, _ = late.next("lag")
    finally:
        late.close()
    assert set(data) == words(rows["lag"])


def test_errors(live: Client) -> None:
    """The codes in the source are those of the table, and one real error has the form that is told."""
    source = "".join(path.read_text("utf-8") for path in LIVE.rglob("*.py"))
    made = re.findall(r'(?:OtlpError|error_response)\(\s*(\d{3}),\s*"([a-z_]+)"', source)
    documented = set()
    for line in section("Errors").splitlines():
        if row := re.match(r"\| (\d{3}) \| ([^|]+)\|", line):
            documented |= {(row[1], code) for code in words(row[2])}
    assert documented == set(made)
    error = live.get("/api/steps?limitt=1").json
    assert (set(error), set(error["error"])) == ({"error"}, {"code", "message", "fix"})
