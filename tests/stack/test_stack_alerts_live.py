"""Every alert about the stack, by the shipped rules, through Alertmanager into a webhook; and their ends."""

from __future__ import annotations

import time

import pytest
from stack_apps import app_environment, start_app
from stack_backends import eventually
from stack_native import Stack
from stack_trouble import backfill, flood, sample
from stack_webhook import Webhook, told_at

from claudescope import semconv
from claudescope.testing.script import say
from claudescope.testing.standin import StandIn

pytestmark = [pytest.mark.stack, pytest.mark.slow]

LABELS = {
    "JaegerDown": {"job": "jaeger"},
    "AlertmanagerDown": {"job": "alertmanager"},
    "QueueFilling": {"exporter": "otlp_grpc/jaeger", "data_type": "traces"},
    "CollectorDropping": {"exporter": "otlp_grpc/jaeger"},
    "CollectorRefusing": {"transport": "http"},
    "SamplingTooEarly": {"job": "collector"},
    "PrometheusRefusingSamples": {"reason": "too old"},
    "AppDropping": {"service_name": "hasty", "claudescope_dropped_reason": "queue_full"},
    "NoSteps": {"service_name": "stopped"},
}
"""What one alert of each kind must say it is about."""
ENDED = ("JaegerDown", "QueueFilling", "AlertmanagerDown")
"""Those that are over soon after their cause; the others look at the last minutes."""
APP = """
import anthropic, sys, threading
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
client = anthropic.Anthropic()
question = {"role": "user", "content": "go"}
while not ended.wait(2):
    with client.messages.stream(model="claude-test", max_tokens=9, messages=[question]) as answer:
        for event in answer:
            pass
"""
MANY = say(*(f"Part {number}." for number in range(200)))
"""More blocks at once than the smallest queue takes."""


def steps(service: str, hours_ago: float, until: float):
    """Five steps a minute of a service, as Prometheus would have them, from ``hours_ago`` until ``until`` hours ago."""
    now = time.time()
    series = f'claudescope_steps_total{{service_name="{service}",instance="1"}}'
    for number in range(round((hours_ago - until) * 60)):
        yield series, 5.0 * number, now - hours_ago * 3600 + number * 60


@pytest.mark.timeout(1500)
def test_all_others_at_once_and_their_ends(programs, tmp_path) -> None:
    script = tmp_path / "hasty.py"
    script.write_text(APP, "utf-8")
    small = {"CS_QUEUE_SPANS": "2000", "CS_SAMPLE_PERCENT": "10", "CS_SAMPLING_TRACES": "100"}
    with Webhook() as webhook, StandIn(MANY) as standin:
        stack = Stack(tmp_path / "stack", small, alertmanager=told_at(webhook, at_once=True))
        history = [*steps("stopped", 4, 1.2), *steps("working", 4, 0.2)]
        backfill(stack, "counter", "claudescope_steps_total", history)
        with stack:
            hasty = app_environment(stack, standin, CLAUDESCOPE_QUEUE="16", OTEL_SERVICE_NAME="hasty")
            app = start_app(script, env=hasty)
            assert eventually(lambda: stack.prometheus.value("count(up == 1)") == 4, 60)
            sample(stack, time.time())
            began = time.time()
            stack["jaeger"].kill()
            stack["alertmanager"].kill()

            def trouble() -> None:
                flood(stack, 500)
                flood(stack, 2500, {semconv.KEEP: True})
                sample(stack, time.time() - 7200)

            told: dict[str, float] = {}

            def all_told() -> bool:
                assert app.poll() is None, app.communicate()[1]
                trouble()
                if stack.prometheus.alerts().get("AlertmanagerDown") == "firing" and not stack["alertmanager"].running:
                    stack["alertmanager"].start()
                for name in LABELS:
                    if name not in told and webhook.alerts(name):
                        told[name] = time.time() - began
                return set(told) == set(LABELS)

            # NoSteps is for five minutes, the others are told a minute after Alertmanager is back
            assert eventually(all_told, 600, 5), (told, stack.prometheus.alerts())
            print({name: f"{seconds:.0f} s" for name, seconds in told.items()})
            about = {name: [alert["labels"] for alert in webhook.alerts(name)] for name in LABELS}
            for name, labels in LABELS.items():
                assert any(labels.items() <= one.items() for one in about[name]), about[name]
            assert {one["service_name"] for one in about["NoSteps"]} == {"stopped"}

            stack["jaeger"].start()
            assert eventually(lambda: all(webhook.alerts(name, "resolved") for name in ENDED), 300, 1), (
                webhook.deliveries
            )
            app.communicate(timeout=240)
