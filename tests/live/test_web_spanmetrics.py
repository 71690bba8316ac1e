"""The step metrics of services that send spans only: exact at every bound, and never besides metrics of their own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from live_kit import Client, Sender, running
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from claudescope import semconv
from claudescope.live.web import spanmetrics

MODEL = "m"
BASE = (
    'claudescope_step_index="0",claudescope_step_kind="thinking",claudescope_step_latency_source="measured",'
    'gen_ai_request_model="m",job="app",'
)


def send(live: Client, service: str = "app", **steps: list[dict[str, object]]) -> None:
    sender = Sender(service)
    for attributes in steps["steps"]:
        latency = float(str(attributes.pop("latency_us", 100_000)))
        index = int(str(attributes.pop("index", 0)))
        span = sender.step(index, {semconv.REQUEST_MODEL: MODEL, **attributes})
        made = sender.spans[-1]
        assert made.span_id == span
        made.start_time_unix_nano = made.end_time_unix_nano - int(latency * 1000)
    live.send(sender)


def scrape(live: Client, start: str) -> list[str]:
    lines = live.get("/metrics").body.decode().splitlines()
    return [line for line in lines if line.startswith(start)]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanmetrics, "GRACE_S", 0.0)


@pytest.mark.usefixtures("at_once")
def test_durations_are_exact_at_every_bound(live: Client) -> None:
    """On each bound, and a microsecond above it: 2 in the first bucket's reach, and 2 more with each further bound."""
    bounds = [round(bound * 1_000_000) for bound in semconv.STEP_DURATION.boundaries]
    measured = {semconv.STEP_LATENCY_SOURCE: "measured"}
    send(live, steps=[{**measured, "latency_us": us} for bound in bounds for us in (bound, bound + 1)])
    counts = [
        float(line.rsplit(" ", 1)[1]) for line in scrape(live, f"claudescope_step_duration_seconds_bucket{{{BASE}")
    ]
    assert counts == [*(2.0 * place + 1 for place in range(len(bounds))), 2.0 * len(bounds)]
    (total,) = scrape(live, f"claudescope_step_duration_seconds_sum{{{BASE}")
    assert float(total.rsplit(" ", 1)[1]) == pytest.approx(sum(2 * bound + 1 for bound in bounds) / 1e6)


@pytest.mark.usefixtures("at_once")
def test_confidences_are_exact_at_every_bound(live: Client) -> None:
    bounds = semconv.STEP_CONFIDENCE_METRIC.boundaries
    send(live, steps=[{semconv.STEP_CONFIDENCE: value} for bound in bounds for value in (bound - 1e-9, bound)])
    counts = [float(line.rsplit(" ", 1)[1]) for line in scrape(live, "claudescope_step_confidence_bucket")]
    assert counts == [*(2.0 * place + 2 for place in range(len(bounds))), 2.0 * len(bounds)]


def test_steps_are_counted_by_verdict_tool_check_and_chosen_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spanmetrics, "GRACE_S", 0.0)
    with running(tmp_path / "data", metric_labels=("team",)) as live:
        invalid = {semconv.STEP_VALID: False, semconv.STEP_VALIDITY_REASON: "stop_reason.refusal"}
        team = {semconv.LABEL_PREFIX + "team": "x", semconv.LABEL_PREFIX + "other": "y"}
        send(live, steps=[{}, {}, {semconv.STEP_VALID: True, semconv.TOOL_NAME: "t"}, {**invalid, **team, "index": 99}])
        step = 'claudescope_step_index="{}",claudescope_step_kind="thinking",claudescope_step_valid="{}",'
        who = 'job="app",service_name="app"'
        expected = [
            f'{step.format(0, valid)}gen_ai_request_model="m",{tool}{who}}} {count}'
            for valid, tool, count in [
                ("true", "", "0.0"),
                ("false", "", "0.0"),
                ("unknown", "", "2.0"),
                ("true", 'gen_ai_tool_name="t",', "1.0"),
                ("false", 'gen_ai_tool_name="t",', "0.0"),
                ("unknown", 'gen_ai_tool_name="t",', "0.0"),
            ]
        ]
        failed = f'claudescope_check="stop_reason",claudescope_label_team="x",{step.format("16+", "false")}'
        expected.append(f'{failed}gen_ai_request_model="m",{who}}} 1.0')
        lines = scrape(live, "claudescope_steps_total")
        assert sorted(lines) == sorted(f"claudescope_steps_total{{{line}" for line in expected)


@pytest.mark.usefixtures("at_once")
def test_a_service_with_metrics_of_its_own_has_only_those_also_after_a_restart(tmp_path: Path) -> None:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add()
    metrics.resource.attributes.add(key=semconv.SERVICE_NAME).value.string_value = "app"
    metric = metrics.scope_metrics.add().metrics.add(name=semconv.STEPS.name)
    metric.sum.aggregation_temporality = 2
    metric.sum.data_points.add(as_int=5)
    with running(tmp_path / "data") as live:
        send(live, "app", steps=[{}])
        send(live, "spans-only", steps=[{}])
        assert len(scrape(live, "claudescope_steps_total")) == 6
        assert live.post(request.SerializeToString(), "/v1/metrics").status == 200
        lines = scrape(live, "claudescope_steps_total")
        assert [line for line in lines if 'job="app"' in line] == [
            'claudescope_steps_total{job="app",service_name="app"} 5.0'
        ]
        assert len(lines) == 4
    with running(tmp_path / "data") as live:
        send(live, "app", steps=[{}])
        send(live, "spans-only", steps=[{}])
        lines = scrape(live, "claudescope_steps_total")
        assert len(lines) == 3  # counted from the start of the server on
        assert all('job="spans-only"' in line for line in lines)


def test_a_service_is_given_the_time_to_send_its_metrics(live: Client) -> None:
    send(live, steps=[{}])
    assert scrape(live, "claudescope_steps_total") == []


@pytest.mark.usefixtures("at_once")
def test_too_many_tools_become_other(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanmetrics, "MAX_SETS", 2)
    for tool in "abcd":
        send(live, steps=[{semconv.TOOL_NAME: tool}])
        scrape(live, "claudescope_steps_total")
    found = {line.split('gen_ai_tool_name="')[1].partition('"')[0] for line in scrape(live, "claudescope_steps_total")}
    assert found == {"a", "b", "other"}


@pytest.mark.usefixtures("at_once")
def test_a_step_is_counted_once_however_often_it_comes(live: Client) -> None:
    sender = Sender()
    sender.step(0, end_ms=int(time.time() * 1000))
    for _ in range(3):
        live.send(sender)
        lines = scrape(live, "claudescope_steps_total")
    assert sum(float(line.rsplit(" ", 1)[1]) for line in lines) == 1
