"""Alerts about the stack: live through Alertmanager into a webhook, and the shipped rule files under promtool."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stack_backends import eventually
from stack_native import COLLECTOR, ROOT
from stack_webhook import Webhook

pytestmark = pytest.mark.stack

RULE_TESTS = sorted(Path(COLLECTOR / "rules" / "tests").glob("*.yml"))
RULES = sorted(Path(COLLECTOR / "rules").glob("*.yml"))


def _run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.stem)
def test_rules_by_promtool(programs, file) -> None:
    print(_run(programs / "promtool", "test", "rules", file))


def test_every_rule_file_and_configuration_is_right(programs) -> None:
    _run(programs / "promtool", "check", "rules", "--lint=all", "--lint-fatal", *RULES)
    _run(programs / "promtool", "check", "config", "--syntax-only", COLLECTOR / "prometheus.yml")
    _run(programs / "amtool", "check-config", COLLECTOR / "alertmanager.yml")


def uncommented(text: str) -> str:
    """Every example in alertmanager.yml, as a person would take the "#" off."""
    lines = text.splitlines()
    return "\n".join(line.replace("# ", "", 1) if line.startswith("    # ") else line for line in lines)


def test_the_examples_of_receivers_are_right(programs, tmp_path) -> None:
    file = tmp_path / "alertmanager.yml"
    text = uncommented((COLLECTOR / "alertmanager.yml").read_text("utf-8"))
    for kind in ("webhook", "slack", "email", "pagerduty"):
        assert f"\n    {kind}_configs:" in text
    file.write_text(text, "utf-8")
    assert "SUCCESS" in _run(programs / "amtool", "check-config", file)


def to(webhook: Webhook):
    """Takes the "#" off the example of a webhook, and has tickets go the same way as pages."""

    def edit(text: str) -> str:
        example = "    # webhook_configs:\n    #   - {url: 'http://127.0.0.1:8080/alert', send_resolved: true}\n"
        assert text.count(example) == 1
        taken = example.replace("# ", "").replace("http://127.0.0.1:8080/alert", webhook.url)
        return text.replace(example, taken).replace("receiver: ticket", "receiver: page")

    return edit


def flood(stack, spans: int) -> None:
    """Sends spans until the collector has been given so many; what it refuses is part of the test."""
    request = ExportTraceServiceRequest()
    part = request.resource_spans.add().scope_spans.add()
    for _ in range(500):
        part.spans.add(trace_id=os.urandom(16), span_id=os.urandom(8), name="flood", end_time_unix_nano=time.time_ns())
    headers = {"content-type": "application/x-protobuf", "authorization": f"Bearer {stack.token}"}
    for _ in range(0, spans, 500):
        post = urllib.request.Request(f"{stack.endpoint}/v1/traces", request.SerializeToString(), headers)
        try:
            urllib.request.urlopen(post, timeout=10).close()
        except urllib.error.HTTPError as refused:
            refused.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_jaeger_down_queue_filling_and_drops_by_webhook(new_stack) -> None:
    with Webhook() as webhook:
        stack = new_stack(environment={"CS_QUEUE_SPANS": "4096"}, alertmanager=to(webhook))
        assert eventually(lambda: stack.prometheus.value('sum(up{job="jaeger"})') == 1, 60)
        began = time.time()
        stack["jaeger"].kill()
        flood(stack, 8000)
        told: dict[str, float] = {}
        wanted = ("CollectorDropping", "QueueFilling", "JaegerDown")

        def all_told() -> bool:
            for name in wanted:
                if name not in told and webhook.alerts(name):
                    told[name] = time.time() - began
            return len(told) == len(wanted)

        assert eventually(all_told, 300, 1), (told, stack.prometheus.alerts())
        print({name: f"{seconds:.0f} s" for name, seconds in told.items()})
        assert webhook.alerts("QueueFilling")[0]["labels"]["exporter"] == "otlp_grpc/jaeger"
        assert webhook.alerts("CollectorDropping")[0]["labels"]["exporter"] == "otlp_grpc/jaeger"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_collector_down_and_back_by_webhook(new_stack) -> None:
    with Webhook() as webhook:
        stack = new_stack(alertmanager=to(webhook))
        assert eventually(lambda: stack.prometheus.value('sum(up{job="collector"})') == 1, 60)
        killed = time.time()
        stack["collector"].kill()
        told = eventually(lambda: webhook.alerts("CollectorDown"), 180, 1)
        assert told, stack.prometheus.alerts()
        print(f"told {time.time() - killed:.0f} s after the collector was killed")
        assert told[0]["labels"]["severity"] == "page"
        assert told[0]["annotations"]["summary"] == "The collector does not answer"
        assert told[0]["annotations"]["dashboard"] == "/d/claudescope-pipeline"


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_healthy_quiet_stack_has_no_alert_and_every_figure_that_alerts_use(new_stack) -> None:
    stack = new_stack()
    flood(stack, 500)
    names = {
        "otelcol_exporter_queue_size",
        "otelcol_exporter_queue_capacity",
        "otelcol_receiver_refused_spans",
        "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early",
        "prometheus_tsdb_out_of_order_samples_total",
        "prometheus_tsdb_too_old_samples_total",
        "prometheus_tsdb_out_of_bound_samples_total",
    }
    assert eventually(lambda: names <= set(stack.prometheus.names()), 60), names - set(stack.prometheus.names())
    assert eventually(lambda: stack.prometheus.value("count(up == 1)") == 4, 60)
    time.sleep(75)  # longer than the shortest "for"
    assert stack.prometheus.alerts() == {}
