"""Programs that are away for a while: nothing of the app is lost, and the counters have no gap."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from stack_apps import app_environment, finish, start_app
from stack_backends import eventually

from claudescope.testing.script import say, tool_use

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(400)]

TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
STEPS = 5
# STEPS steps a call, 20 calls a second; the last line is what flush() says
APP = f"""
import sys, time
import anthropic, claudescope
client = anthropic.Anthropic()
calls, began = int(sys.argv[1]), time.monotonic()
for number in range(calls):
    client.messages.create(model="claude-test", max_tokens=99, tools=[{TOOL!r}],
                           messages=[{{"role": "user", "content": "go"}}])
    time.sleep(max(0, began + (number + 1) / 20 - time.monotonic()))
print(claudescope.flush(60))
"""


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "steady.py"
    file.write_text(APP, "utf-8")
    return file


def test_collector_away_for_60_s(new_stack, standin, script) -> None:
    """100 steps a second before, while and after the collector is away: none is lost."""
    stack = new_stack()
    standin.use(say(*[tool_use("add", {"a": 1})] * STEPS))
    calls = 20 * 75
    app = start_app(script, str(calls), env=app_environment(stack, standin))
    eventually(lambda: stack.telemetry_value("otelcol_receiver_accepted_spans") > 0)
    time.sleep(5)
    stack["collector"].stop()
    time.sleep(60)
    stack["collector"].start()
    output, errors = finish(app, 120)
    assert "not delivered" not in errors
    assert "dropped" not in errors
    assert output.splitlines()[-1] == "True"
    total = eventually(lambda: stack.prometheus.value("sum(claudescope_steps_total)") == calls * STEPS)
    assert total, stack.prometheus.value("sum(claudescope_steps_total)")
    stored = eventually(lambda: len(stack.jaeger.trace_ids("steady")) == calls, 60)
    assert stored, len(stack.jaeger.trace_ids("steady"))
    steps = sum(
        span["operationName"].startswith("reasoning_step")
        for trace in stack.jaeger.raw("steady")
        for span in trace["spans"]
    )
    print(f"{steps} of {calls * STEPS} steps in Jaeger")
    assert steps == calls * STEPS


def test_prometheus_restarted(new_stack, standin, script) -> None:
    """What came while it was away is filled in afterwards: the samples of a counter have no hole."""
    stack = new_stack()
    standin.use(say(*[tool_use("add", {"a": 1})] * STEPS))
    calls = 20 * 50
    env = app_environment(stack, standin, OTEL_METRIC_EXPORT_INTERVAL="1000")
    app = start_app(script, str(calls), env=env)
    time.sleep(15)
    began = time.time()
    stack["prometheus"].stop()
    time.sleep(10)
    stack["prometheus"].start()
    outage = time.time() - began
    finish(app, 120)
    assert eventually(lambda: stack.prometheus.value("sum(claudescope_steps_total)") == calls * STEPS)
    samples = stack.prometheus.samples('claudescope_steps_total{claudescope_step_valid="true"}')
    longest = max(after[0] - before[0] for points in samples.values() for before, after in pairwise(points))
    print(f"outage {outage:.1f} s; longest gap between two samples {longest:.1f} s")
    assert longest <= outage
    for labels, points in samples.items():
        values = [value for _, value in points]
        assert values == sorted(values), labels
    identities = [tuple((key, value) for key, value in labels if key != "instance") for labels in samples]
    assert len(set(identities)) == len(identities), "no series is there twice"
    assert stack.prometheus.value("sum(prometheus_tsdb_out_of_order_samples_total)") in (0, None)
