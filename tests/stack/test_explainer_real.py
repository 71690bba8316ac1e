"""The shipped rules burn on a real Prometheus, a real Alertmanager tells the explainer, and the ticket names the slice.

Prometheus has ten hours of counters, written as blocks by promtool; Jaeger has spans of the same app. Only addresses,
the token's file and Alertmanager's waiting times differ from what ships. Grafana, Jira and GitHub are stand-ins.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import set_span_in_context
from stack_backends import eventually, get
from stack_native import COLLECTOR, Stack

from claudescope import semconv
from claudescope.stack.explainer import routed

sys.path.insert(0, str(Path(__file__).parents[1] / "explainer"))

from explainer_kit import TOKEN, Recorder, ask, process

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]

STEP = 30
HOURS = 10
TOOLS = ("search", "lookup", "pay")


def to_explainer(url: str, secret: Path):
    """The shipped file with the way to the explainer in force; waiting times of seconds."""

    def edit(text: str) -> str:
        text = routed(text.encode()).decode()
        for old, new in (
            ("http://explainer:9096/alerts", f"{url}/alerts"),
            ("/etc/alertmanager/secrets/explainer", str(secret)),
            ("group_wait: 5s", "group_wait: 1s"),
            ("group_interval: 1m", "group_interval: 2s"),
            ("repeat_interval: 4h", "repeat_interval: 3s"),
        ):
            assert old in text
            text = text.replace(old, new)
        return text

    return edit


def write_counters(promtool: Path, folder: Path, until: int) -> None:
    """One step a second and tool; in the last 40 minutes half of those of ``search`` are invalid, before 1 in 200."""
    series = []
    lines = ["# TYPE claudescope_steps counter"]
    base = {"service_name": "shop", "gen_ai_request_model": "claude-sonnet-5-5", "claudescope_step_kind": "tool_use"}
    for tool in TOOLS:
        counts = {"true": 0.0, "false": 0.0, "unknown": 0.0}
        for at in range(until - HOURS * 3600, until + 1, STEP):
            share = 0.5 if tool == "search" and at > until - 2400 else 0.005
            counts["true"] += STEP * (1 - share)
            counts["false"] += STEP * share
            for verdict, count in counts.items():
                labels = {**base, "gen_ai_tool_name": tool, "claudescope_step_valid": verdict}
                series.append((tool, verdict, f"claudescope_steps_total{{{_labels(labels)}}} {count:.6g} {at}"))
    lines += [line for _, _, line in sorted(series, key=lambda one: one[:2])]
    file = folder / "counters.txt"
    file.write_text("\n".join([*lines, "# EOF", ""]))
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", file, folder / "prometheus"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=120)


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def send_spans(port: int) -> list[str]:
    """``web`` calls ``shop``, whose step with the tool ``search`` is invalid; ids of the traces."""
    traces = []
    providers = {}
    for service in ("web", "shop"):
        providers[service] = provider = TracerProvider(resource=Resource({"service.name": service}))
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"http://127.0.0.1:{port}", insecure=True)))
    for _ in range(4):
        parent = providers["web"].get_tracer("t").start_span("GET /")
        step = providers["shop"].get_tracer("t").start_span("step", set_span_in_context(parent))
        step.set_attribute(semconv.STEP_VALID, False)
        step.set_attribute(semconv.TOOL_NAME, "search")
        step.set_attribute(semconv.REQUEST_MODEL, "claude-sonnet-5-5")
        step.set_attribute(semconv.STEP_KIND, "tool_use")
        step.end()
        parent.end()
        traces.append(f"{step.get_span_context().trace_id:032x}")
    for provider in providers.values():
        provider.shutdown()
    return traces


@pytest.mark.slow
def test_from_burning_counters_to_a_ticket_with_the_slice(programs, tmp_path) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    folder = tmp_path / "stack"
    folder.mkdir()
    stack = Stack(folder, names=("prometheus", "jaeger"))
    write_counters(programs / "promtool", folder, int(time.time()))
    github = Recorder(lambda asked: (201, {"number": 7}) if asked.method == "POST" else (200, {"state": "open"}))
    variables = {
        "SLO": str(COLLECTOR / "slos"),
        "PROMETHEUS": stack.prometheus.url,
        "JAEGER": stack.jaeger.url,
        "TICKETS": str(tmp_path / "tickets"),
        "GITHUB_REPO": "acme/shop",
        "GITHUB_TOKEN": "ghp_token",
    }
    with github, process(tmp_path, GITHUB=github.url, **variables) as explainer:
        alerting = Stack(
            folder,
            names=("alertmanager",),
            alertmanager=to_explainer(explainer.url, secret),
            ports={"alertmanager": stack.ports["alertmanager"]},
        )
        with stack, alerting:
            traces = send_spans(stack.ports["jaeger_otlp"])
            assert eventually(lambda: len(stack.jaeger.trace_ids("shop")) == 4, 60)

            def tickets():
                return [json.loads(file.read_text()) for file in (tmp_path / "tickets").glob("*.json")]

            def pages():
                return [body for body in tickets() if body["labels"]["severity"] == "page"]

            def issues_are_tickets():  # an alert may begin meanwhile
                made = github.of("POST", "/repos/acme/shop/issues")
                return sorted(one.body["body"].split()[2] for one in made) == sorted(body["key"] for body in tickets())

            began = time.time()
            assert eventually(pages, 180), (stack.prometheus.alerts(), alerting["alertmanager"].tail())
            print(f"ticket {time.time() - began:.0f} s after the start of Prometheus")
            found = pages()[0]
            time.sleep(8)  # told again every few seconds, and still one
            assert eventually(lambda: ask(f"{explainer.url}/healthz")[1]["waiting"] == 0)
            assert eventually(issues_are_tickets)
            keys = [body["key"] for body in tickets()]
            assert len(keys) == len(set(keys))
            assert alerting_failures(alerting) == 0
    assert found["objective"]["id"] == found["labels"]["claudescope_slo"] == "claude-step-validity"
    assert found["labels"]["service_name"] == "shop"
    explanation = found["explanation"]
    assert explanation["verdict"] == "slices"
    first = explanation["slices"][0]
    assert first["labels"]["gen_ai_tool_name"] == "search"
    # 40 minutes at half a bad step a second, and 20 at one in 200
    window = 3600 if found["labels"]["long"] == "1h" else 6 * 3600
    assert first["bad"] == pytest.approx(1200 + (window - 2400) * 0.005, rel=0.1)
    assert first["total"] == pytest.approx(window, rel=0.1)  # the counters end when the programs are started
    assert first["share"] > 0.95
    assert len(found["traces"]) == 3
    assert {trace["id"] for trace in found["traces"]} <= set(traces)
    assert {"from": "web", "to": "shop", "kind": "service", "count": 4.0} in found["topology"]["calls"]
    assert found["links"]["dashboard"].startswith(
        "http://localhost:3000/d/claudescope-slo?var-slo=claude-step-validity&"
    )


def alerting_failures(stack: Stack) -> float:
    with urllib.request.urlopen(f"{stack.alertmanager_url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    failed = 'alertmanager_notifications_failed_total{integration="webhook"'
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(failed))


def tell(stack: Stack, *, ended: bool = False, **labels: str) -> None:
    """Gives Alertmanager an alert, as Prometheus does."""
    now = datetime.now(timezone.utc)
    alert = {
        "labels": {
            "alertname": "StepValidityBudgetBurn",
            "claudescope_slo": "claude-step-validity",
            "severity": "page",
            "long": "1h",
            **labels,
        },
        "annotations": {"summary": "claude-step-validity burns"},
        "startsAt": "2026-11-30T10:00:00Z",
        "endsAt": (now if ended else now + timedelta(hours=1)).isoformat(),
        "generatorURL": "http://localhost:9090/graph",
    }
    headers = {"Content-Type": "application/json"}
    post = urllib.request.Request(f"{stack.alertmanager_url}/api/v2/alerts", json.dumps([alert]).encode(), headers)
    urllib.request.urlopen(post, timeout=10).close()


@pytest.fixture
def alertmanager(programs, tmp_path):
    """Starts an Alertmanager that leads to an address, with a token; it ends with the test."""
    started = []

    def start(url: str, token: str = TOKEN) -> Stack:
        secret = tmp_path / f"token-{len(started)}"
        secret.write_text(token)
        stack = Stack(tmp_path / f"am-{len(started)}", names=("alertmanager",), alertmanager=to_explainer(url, secret))
        started.append(stack)
        return stack.start()

    yield start
    for stack in started:
        stack.stop()


def test_an_alert_and_its_end_by_the_real_alertmanager(alertmanager, tmp_path) -> None:
    hooks: list[dict] = []

    def hook(asked):
        hooks.append(asked.body)
        return 200, {}

    variables = {"SLO": str(COLLECTOR / "slos"), "PROMETHEUS": "http://127.0.0.1:9", "EXPLAIN_WITHIN": "1s"}
    with Recorder(hook) as server, process(tmp_path, WEBHOOK=server.url, **variables) as it:
        stack = alertmanager(it.url)
        tell(stack, service_name="shop")
        tell(stack, service_name="other", claudescope_slo="")  # no objective: not the explainer's
        assert eventually(lambda: hooks, 60)
        time.sleep(7)  # it repeats itself every three seconds here
        assert len(hooks) == 1
        tell(stack, service_name="shop", ended=True)
        assert eventually(lambda: len(hooks) == 2, 60)
        assert [body["status"] for body in hooks] == ["firing", "resolved"]
        assert hooks[0]["key"] == hooks[1]["key"]
        assert ask(f"{it.url}/healthz")[1]["ignored"] == 0
        known = get(f"{stack.alertmanager_url}/api/v2/alerts", active="true", inhibited="true")
        assert hooks[0]["fingerprint"] in {one["fingerprint"] for one in known} | {hooks[0]["fingerprint"]}
        assert alerting_failures(stack) == 0


def test_alertmanager_comes_again_until_the_explainer_is_there(alertmanager, tmp_path) -> None:
    variables = {"SLO": str(COLLECTOR / "slos"), "PROMETHEUS": "http://127.0.0.1:9", "EXPLAIN_WITHIN": "1s"}
    with process(tmp_path, **variables) as first:
        port = first.url.rpartition(":")[2]
        stack = alertmanager(first.url)
        first.kill()
    tell(stack, service_name="shop")
    assert eventually(lambda: alerting_failures(stack) > 0, 60)
    with process(tmp_path, "--port", port, **variables) as second:
        assert eventually(lambda: ask(f"{second.url}/explanations?format=json")[1]["items"], 90)
        (item,) = ask(f"{second.url}/explanations?format=json")[1]["items"]
        assert item["labels"]["service_name"] == "shop"


def test_a_wrong_token_is_a_failed_notification(alertmanager, tmp_path) -> None:
    with process(tmp_path, SLO=str(COLLECTOR / "slos"), PROMETHEUS="http://127.0.0.1:9") as it:
        stack = alertmanager(it.url, "another-token")
        tell(stack, service_name="shop")
        assert eventually(lambda: alerting_failures(stack) > 0, 60)
        assert ask(f"{it.url}/explanations?format=json")[1] == {"items": []}
        assert "401" in stack["alertmanager"].tail()
        assert "another-token" not in stack["alertmanager"].tail(100_000)
