"""An example app, unmodified: its steps as they are in the real Jaeger, and its metrics as in the real Prometheus."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from stack_apps import app_environment, finish, start_app
from stack_backends import eventually, get

from claudescope import semconv
from claudescope.testing.script import Usage, say, thinking, tool_use
from claudescope.testing.standin import StandIn

pytestmark = pytest.mark.stack

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL = "claude-test"
ANSWER = "Order A-1042 has shipped.\nConfidence: 0.92"
REPLIES = (
    say(
        thinking("Two orders are asked for."),
        tool_use("get_order", {"order_id": "A-1042"}),
        tool_use("refund", {"order_id": "A-1042", "amount": "all", "reason": "late"}),
        usage=Usage(100, 50, cache_read_input_tokens=20),
    ),
    say(ANSWER, usage=Usage(200, 10)),
)


@pytest.fixture(scope="module")
def seen(stack, tmp_path_factory):
    script = Path(shutil.copy(EXAMPLES / "support_agent.py", tmp_path_factory.mktemp("app")))
    with StandIn(REPLIES) as standin:
        env = app_environment(stack, standin, ANTHROPIC_MODEL=MODEL)
        output, errors = finish(start_app(script, "Where is A-1042?", env=env))
        assert ANSWER in output
        assert [line for line in errors.splitlines() if not line.startswith("claudescope: sends to ")] == []
        requests = standin.requests
    eventually(lambda: len(stack.jaeger.spans("support_agent")) >= 8)
    return stack, requests


def steps_of(spans):
    steps = [span for span in spans if span["name"].startswith("reasoning_step ")]
    for step in steps:
        step["attributes"].pop("@jaeger@warnings", None)  # a tool runs after the call that asked for it has ended
    return sorted(steps, key=lambda span: span["attributes"]["claudescope.step.index"])


def test_every_step_is_in_jaeger_with_its_exact_attributes(seen) -> None:
    stack, requests = seen
    spans = stack.jaeger.spans("support_agent")
    steps = steps_of(spans)
    calls = [span for span in spans if span["attributes"].get("gen_ai.operation.name") == "chat"]
    assert len(spans) == len(steps) + len(calls) == 6 + 2
    assert len({span["traceId"] for span in spans}) == 1, "one agent run is one trace"

    sent = [hashlib.sha256(request.body).hexdigest() for request in requests]
    results = json.loads(requests[1].body)["messages"][-1]["content"]
    ids = dict(zip(("get_order", "refund"), (result["tool_use_id"] for result in results), strict=True))
    assert [result.get("is_error", False) for result in results] == [False, True]
    [chain] = {span["attributes"]["claudescope.chain.id"] for span in spans}
    assert re.fullmatch("[0-9a-f]{32}", chain)

    common = {
        "claudescope.chain.id": chain,
        "claudescope.keep": True,
        "gen_ai.request.model": MODEL,
    }

    def expected(index, kind, call, source="apportioned", tool=None, **step):
        found = {**common, semconv.STEP_INDEX: index, semconv.STEP_KIND: kind, semconv.STEP_LATENCY_SOURCE: source}
        if call is not None:
            found[semconv.REQUEST_SHA256] = f"sha256:{sent[call]}"
        if tool is not None:
            found |= {semconv.TOOL_NAME: tool, semconv.TOOL_CALL_ID: ids[tool]}
        return found | {f"claudescope.step.{name.replace('_', '.')}": value for name, value in step.items()}

    # Jaeger's badger store has no lists: they come back as JSON
    asked, ran = '["tool_input","tool_name"]', '["tool_result"]'
    arguments = '{"order_id":"A-1042","amount":"all","reason":"late"}'
    at = arguments.index('"all"')
    assert [step["attributes"] for step in steps] == [
        expected(0, "thinking", 0),
        expected(1, "tool_use", 0, tool="get_order", valid=True, validity_checks=asked),
        expected(
            2,
            "tool_use",
            0,
            tool="refund",
            valid=False,
            validity_checks=asked,
            validity_reason=f"tool_input.schema_mismatch@{at}-{at + 5}",
        ),
        expected(3, "tool_run", None, "measured", "get_order", valid=True, validity_checks=ran),
        expected(
            4,
            "tool_run",
            None,
            "measured",
            "refund",
            valid=False,
            validity_checks=ran,
            validity_reason="tool_result.is_error",
        ),
        expected(5, "text", 1, confidence=0.92, confidence_method="verbalised", confidence_calibrated=False)
        | {semconv.CHAIN_CONFIDENCE: 0.92},
    ]
    assert {span["scope"] for span in steps} == {semconv.SCOPE}
    assert {span["resource"]["service.name"] for span in spans} == {"support_agent"}


def test_every_metric_is_in_prometheus(seen) -> None:
    stack, _ = seen
    ask = stack.prometheus.value
    mine = 'service_name="support_agent"'
    assert eventually(lambda: ask(f"sum(claudescope_steps_total{{{mine}}})") == 6)
    verdicts = stack.prometheus.query(f"sum by (claudescope_step_valid) (claudescope_steps_total{{{mine}}})")
    counted = {one["metric"]["claudescope_step_valid"]: float(one["value"][1]) for one in verdicts}
    print(counted)
    assert counted == {"true": 2, "false": 2, "unknown": 2}
    assert ask(f"sum(claudescope_step_duration_seconds_count{{{mine}}})") == 6
    assert ask(f"sum(claudescope_step_confidence_count{{{mine}}})") == 1
    assert ask(f"sum(claudescope_step_confidence_sum{{{mine}}})") == pytest.approx(0.92)
    assert ask(f"sum(claudescope_chain_steps_sum{{{mine}}})") == 6
    assert ask(f"sum(gen_ai_client_operation_duration_seconds_count{{{mine}}})") == 2
    tokens = stack.prometheus.query(f"sum by (gen_ai_token_type) (gen_ai_client_token_usage_sum{{{mine}}})")
    # the conventions count cached tokens as input: 100 + 20 + 200
    assert {one["metric"]["gen_ai_token_type"]: float(one["value"][1]) for one in tokens} == {
        "input": 320,
        "output": 60,
    }


def test_every_exemplar_names_a_trace_that_jaeger_has(seen) -> None:
    stack, _ = seen
    known = set(stack.jaeger.trace_ids("support_agent"))
    found = Counter()
    for metric in stack.prometheus.names():
        if metric.endswith("_bucket"):
            for exemplar in stack.prometheus.exemplars(metric):
                assert exemplar["labels"]["trace_id"] in known, f"{metric}: {exemplar}"
                found[metric.removesuffix("_bucket")] += 1
    print(found)
    assert set(found) >= {
        "claudescope_step_duration_seconds",
        "claudescope_step_confidence",
        "gen_ai_client_operation_duration_seconds",
        "gen_ai_client_token_usage",
    }


def test_the_monitor_tab_has_values(seen) -> None:
    stack, _ = seen
    ask = 'sum(traces_span_metrics_calls_total{service_name="support_agent"})'
    assert eventually(lambda: stack.prometheus.value(ask) == 8, 60), "the span metrics are sent every 15 s"
    assert not [labels for labels in stack.prometheus.series("traces_span_metrics_calls_total") if "instance" in labels]
    now = int(time.time() * 1000)
    window = {"endTs": now + 60_000, "lookback": 600_000, "step": 5000, "ratePer": 600_000}
    query = {"service": "support_agent", "spanKind": "internal", "groupByOperation": "true", **window}

    def operations() -> set[str]:  # once there are two samples: a rate needs them
        found = get(f"{stack.jaeger.url}/api/metrics/calls", **query)["metrics"] or []
        return {label["value"] for metric in found for label in metric["labels"] if label["name"] == "operation"}

    kinds = ("thinking", "tool_use", "tool_run", "text")
    assert eventually(operations, 60) == {f"reasoning_step {kind}" for kind in kinds}
