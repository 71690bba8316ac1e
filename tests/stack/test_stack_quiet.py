"""A healthy stack with an app that has made a few calls and then none: nothing alerts, and no panel looks broken."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

from stack_apps import app_environment, start_app
from stack_backends import eventually
from stack_native import Stack

from claudescope.grafana.expressions import panels, plain
from claudescope.testing.script import say, thinking, tool_use
from claudescope.testing.standin import StandIn

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(400)]

FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "json"
REST = 75
"""Seconds at rest: longer than the shortest ``for`` of an alert, and than the windows that the queries look at here."""
WINDOW = 60
SERVICE = "quiet"
TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
APP = f"""
import anthropic, sys
client = anthropic.Anthropic()
messages = [{{"role": "user", "content": "go"}}]
for turn in range(2):
    answer = client.messages.create(model="claude-sonnet-5-5", max_tokens=99, tools=[{TOOL!r}], messages=messages)
    messages.append({{"role": "assistant", "content": answer.content}})
    used = [block.id for block in answer.content if block.type == "tool_use"]
    results = [{{"type": "tool_result", "tool_use_id": one, "content": "1"}} for one in used]
    messages.append({{"role": "user", "content": results}})
import claudescope
claudescope.flush()
print("done", flush=True)
sys.stdin.readline()
"""
FIGURES = {
    "otelcol_exporter_queue_size",
    "otelcol_exporter_queue_capacity",
    "otelcol_receiver_refused_spans",
    "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early",
    "prometheus_tsdb_out_of_order_samples_total",
    "prometheus_tsdb_too_old_samples_total",
    "prometheus_tsdb_out_of_bound_samples_total",
}
"""What the alerts look at, and must be there before anything goes wrong."""
EMPTY = {
    "Overview / Step latency, p95": "No steps",
    "Overview / Step latency by service, p95": "No steps in this time",
    "Reasoning steps / Latency, p95": "No steps in this time",
    "Reasoning steps / Mean confidence": "No steps in this time",
    "Reasoning steps / Latency of step $step": "No steps in this time",
    "Reasoning steps / Latency by kind, p95": "No steps in this time",
    "Reasoning steps / Slowest": "No steps in this time",
    "Reasoning steps / Most often invalid": "No invalid step in this time",
    "Reasoning steps / Length of chains": "No run ended in this time",
    "Validity and confidence / Mean confidence": "No confidence",
    "Validity and confidence / Mean confidence by model": "No confidence in this time",
    "Validity and confidence / Reasons": "No failure in this time",
    "Tools and agents / Tool latency, p95": "No tool",
    "Tools and agents / Tool latency by tool, p95": "No tool was run in this time",
    "Tools and agents / Tool runs for each agent run": "No run ended in this time",
    "Tokens, cache and cost / Rate limit used, by model and limit": "No response told a rate limit",
    "Tokens, cache and cost / Call duration by model, p95": "No such call in this time",
    "Tokens, cache and cost / Time to first content by model, p95": "No such call in this time",
    "Tokens, cache and cost / Time between chunks by model, p95": "No such call in this time",
}
"""Means and quantiles of nothing, and lists of what did not happen: what these panels say instead of a figure."""


@pytest.fixture(scope="module")
def quiet(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, and the app still there and at rest."""
    script = tmp_path_factory.mktemp("app") / f"{SERVICE}.py"
    script.write_text(APP, "utf-8")
    with StandIn([say(thinking("I add it."), tool_use("add", {"a": 1})), say("It is 1.\nConfidence: 0.9")]) as standin:
        app = start_app(script, env=app_environment(stack, standin, OTEL_SERVICE_NAME=SERVICE))
        assert app.stdout is not None
        assert app.stdout.readline() == "done\n", app.communicate(timeout=20)[1]
        assert eventually(lambda: set(stack.prometheus.names()) >= FIGURES, 60), set(stack.prometheus.names())
        assert eventually(lambda: stack.prometheus.value("count(up == 1)") == 4, 60)
        time.sleep(REST)
        yield stack
        app.communicate(timeout=120)


def test_nothing_alerts(quiet: Stack) -> None:
    assert quiet.prometheus.alerts() == {}


def has_a_number(stack: Stack, target: dict[str, Any]) -> bool:
    expression = plain(target["expr"].replace("$__rate_interval", f"{WINDOW}s"), WINDOW)
    found = stack.prometheus.query(expression)
    return any(math.isfinite(float(series["value"][1])) for series in found)


def test_no_panel_is_empty_without_saying_why(quiet: Stack) -> None:
    steps = quiet.prometheus.value(f'sum(claudescope_steps_total{{service_name="{SERVICE}"}})')
    assert steps == 4  # thinking, the tool's use and its run, and the text
    shown, empty = 0, {}
    for path in sorted(FOLDER.iterdir()):
        board = json.loads(path.read_text("utf-8"))
        for panel in panels(board):
            targets = [target for target in panel["targets"] if "expr" in target]
            if any(has_a_number(quiet, target) for target in targets):
                shown += 1
            elif targets:
                empty[f"{board['title']} / {panel['title']}"] = panel["fieldConfig"]["defaults"]["noValue"]
    print(f"{shown} panels with a figure, {len(empty)} with a sentence")
    assert empty == EMPTY
