"""The shipped dashboards on the real stack: every query has data, and panels show what the spans in Jaeger add up to.

Both come from one app, by different ways: the spans through Jaeger, the figures through Prometheus.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

from stack_apps import app_environment, start_app
from stack_backends import eventually, get

from claudescope.grafana.cost import PRICE
from claudescope.grafana.expressions import expressions, panels, plain
from claudescope.prices import Prices
from claudescope.testing.script import Usage, error, say, thinking, tool_use
from claudescope.testing.standin import StandIn

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(400)]

FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "json"
RANGE = 600
"""Seconds that the panels look back: all of the app's life."""
RUNS = 60
REFUSED = RUNS // 10
STEPS, CALLS = 4 * (RUNS - REFUSED), 2 * (RUNS - REFUSED) + REFUSED
"""A run thinks, uses the tool, runs it and answers, in two calls; one that is refused has one call and no step."""
SERVICE = "panels"
TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
SETTINGS = {
    "CLAUDESCOPE_METRIC_LABELS": "tier",
    "CLAUDESCOPE_STEP_BOUNDS": "1.5ms,20s",
    "CLAUDESCOPE_CONFIDENCE_BOUNDS": "0.75",
}
APP = f"""
import anthropic, sys
import claudescope
client = anthropic.Anthropic(max_retries=0)
def ask(model, messages):
    return client.messages.create(model=model, max_tokens=2000, tools=[{TOOL!r}], messages=messages)
for number in range({RUNS}):
    model = "claude-sonnet-5-5" if number % 3 else "claude-unlisted-1"
    messages = [{{"role": "user", "content": f"go {{number}}"}}]
    with claudescope.run("addition", tier="gold" if number % 2 else "free"):
        try:
            answer = ask(model, messages)
        except anthropic.APIStatusError:
            continue
        messages.append({{"role": "assistant", "content": answer.content}})
        used = next(block for block in answer.content if block.type == "tool_use")
        result = {{"type": "tool_result", "tool_use_id": used.id, "content": "1", "is_error": number % 5 == 0}}
        messages.append({{"role": "user", "content": [result]}})
        ask(model, messages)
claudescope.flush()
print("done", flush=True)
sys.stdin.readline()
"""
USAGE = Usage(100, 50, cache_creation_input_tokens=20, cache_read_input_tokens=400, ephemeral_1h_input_tokens=12)


def replies():
    """One in nine tool uses does not fit its schema, one in ten runs is refused; confidence goes from .3 to .95."""
    for number in range(RUNS):
        if number % 10 == 9:
            yield error(529)
            continue
        sure = 0.3 + 0.65 * number / (RUNS - 1)
        bad = number % 9 == 0
        used = {"tokens": (1000, 150 if number % 4 == 0 else 900)}
        yield say(
            thinking(f"I add it.\nConfidence: {sure:.2f}"),
            tool_use("add", {"a": "x" if bad else 1}),
            usage=USAGE,
            limits=used,
        )
        yield say(f"It is 1.\nConfidence: {1.25 - sure:.2f}", usage=USAGE)


@pytest.fixture(scope="module")
def shown(stack, tmp_path_factory):
    """The stack with the app still there and at rest, and all its spans."""
    script = tmp_path_factory.mktemp("app") / f"{SERVICE}.py"
    script.write_text(APP, "utf-8")
    with StandIn(replies()) as standin:
        env = app_environment(stack, standin, OTEL_SERVICE_NAME=SERVICE, **SETTINGS)
        app = start_app(script, env=env)
        assert app.stdout is not None
        assert app.stdout.readline() == "done\n", app.communicate(timeout=20)[1]
        spans = []

        def complete():
            spans[:] = stack.jaeger.spans(SERVICE)
            return (len(named(spans, "claudescope.step.kind")), len(chats(spans))) == (STEPS, CALLS)

        assert eventually(complete, 120, 1), len(spans)
        yield stack, spans
        app.communicate(timeout=120)


def named(spans, attribute):
    return [span["attributes"] for span in spans if attribute in span["attributes"]]


def chats(spans):
    return [call for call in named(spans, "gen_ai.operation.name") if call["gen_ai.operation.name"] == "chat"]


def dashboard(uid):
    return json.loads((FOLDER / f"claudescope-{uid}.json").read_text("utf-8"))


COUNTED = f'claudescope_steps_total{{service_name="{SERVICE}"}}'


def last_sample(stack):
    """The time of the last sample of the app's counter, in seconds."""
    return stack.prometheus.value(f"max(timestamp({COUNTED}))")


def time_of_all(stack, steps):
    """The time of a sample when every figure of the app was final and has arrived, and prices are known."""
    assert eventually(lambda: stack.prometheus.query(PRICE), 120)
    assert eventually(lambda: stack.prometheus.value(f"sum({COUNTED})") == steps, 60)
    ready = time.time()
    assert eventually(lambda: last_sample(stack) > ready, 60)
    at = last_sample(stack)
    assert eventually(lambda: last_sample(stack) > at, 60)  # what was sent together with it came before the next one
    return at


def panel(stack, at, uid, title):
    """The one value, at a time, of a panel that shows one figure."""
    (found,) = [panel for panel in panels(dashboard(uid)) if panel["title"] == title]
    (target,) = found["targets"]
    expression = plain(target["expr"], RANGE).replace('service_name=~".*"', f'service_name="{SERVICE}"')
    (found,) = stack.prometheus.query(expression, time=f"{at:.3f}")
    return float(found["value"][1])


def test_panels_show_what_the_spans_add_up_to(shown) -> None:
    stack, spans = shown
    steps, calls = named(spans, "claudescope.step.kind"), chats(spans)
    invalid = [step for step in steps if step.get("claudescope.step.valid") is False]
    unknown = [step for step in steps if "claudescope.step.valid" not in step]
    sure = [step["claudescope.step.confidence"] for step in steps if "claudescope.step.confidence" in step]
    tools = [step for step in steps if step["claudescope.step.kind"] == "tool_run"]
    uses = [step for step in steps if step["claudescope.step.kind"] == "tool_use"]
    used = [call for call in calls if "gen_ai.usage.input_tokens" in call]
    tokens = {name: sum(call[f"gen_ai.usage.{name}"] for call in used) for name in ("input_tokens", "output_tokens")}
    read = sum(call["gen_ai.usage.cache_read.input_tokens"] for call in used)
    costs = [
        Prices.load().cost(
            call["gen_ai.response.model"],
            call["gen_ai.usage.input_tokens"],
            call["gen_ai.usage.cache_read.input_tokens"],
            call["gen_ai.usage.cache_creation.input_tokens"],
            call["gen_ai.usage.output_tokens"],
            call["claudescope.usage.cache_write_1h.input_tokens"],
        )
        for call in used
    ]
    assert len(invalid) > 5
    assert len(sure) > 50
    assert None in costs

    def wrong(some):
        return sum(step in invalid for step in some) / len(some)

    expected = {
        ("quality", "Invalid steps"): len(invalid),
        ("quality", "Invalid"): len(invalid) / len(steps),
        ("quality", "Unknown"): len(unknown) / len(steps),
        ("quality", "Mean confidence"): sum(sure) / len(sure),
        ("quality", "Low confidence"): sum(value <= 0.7 for value in sure) / len(sure),
        ("quality", "With a confidence"): len(sure) / len(steps),
        ("tools", "Tool runs"): len(tools),
        ("tools", "Failed"): wrong(tools),
        ("tools", "Wrongly asked for"): wrong(uses),
        ("cost", "Tokens"): sum(tokens.values()),
        ("cost", "Read from cache"): read / tokens["input_tokens"],
        ("cost", "Cost"): sum(cost for cost in costs if cost is not None),
        ("cost", "Models without a price"): 1,
    }
    # At the time of the last sample: increase() takes what follows it, up to one interval, as part of a series, so a
    # panel of a live service is up to that share of its time range above the figure.
    at = time_of_all(stack, len(steps))
    found = {place: panel(stack, at, *place) for place in expected}
    for place, value in expected.items():
        off = found[place] / value - 1
        print(f"{' / '.join(place):<40} {found[place]:.4f}  steps: {value:.4f}  off by {off:.3%}")
    assert found == pytest.approx(expected, rel=0.01)


def test_saturation_is_exact(shown) -> None:
    """54 first answers say what is left of 1,000 tokens: 15 times 150, else 900. The other 60 have 999 of 1,000
    requests left. Six calls are refused, and nothing is in flight any more."""
    stack, _ = shown
    of = f'service_name="{SERVICE}"'
    asked = {
        f"claudescope_ratelimit_used_count{{{of}}}": 114,
        f'claudescope_ratelimit_used_count{{{of}, claudescope_ratelimit_kind="tokens"}}': 54,
        f'claudescope_ratelimit_used_bucket{{{of}, le="0.8"}}': 99,
        f'claudescope_ratelimit_used_bucket{{{of}, le="0.9"}}': 114,
        f'claudescope_calls_total{{{of}, error_type=""}}': 108,
        f'claudescope_calls_total{{{of}, error_type="overloaded_error"}}': 6,
        f"claudescope_active_calls{{{of}}}": 0,
    }
    found = {query: stack.prometheus.value(f"sum({query})") for query in asked}
    assert found == asked
    # the first failure is seen: its series was 0 before
    grown = f'sum(increase(claudescope_calls_total{{{of}, error_type="overloaded_error"}}[{RANGE}s]))'
    assert stack.prometheus.value(grown) == pytest.approx(6, rel=0.1)


def test_steps_beyond_bounds_that_no_histogram_has_are_exactly_those_of_the_spans(shown) -> None:
    stack, spans = shown
    of = f'service_name="{SERVICE}"'
    timed, sure = [], []
    for span in spans:
        attributes = span["attributes"]
        if attributes.get("claudescope.step.latency.source", "consumer") != "consumer":
            timed.append(int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]))
        if "claudescope.step.confidence" in attributes:
            sure.append(attributes["claudescope.step.confidence"])
    over, below = "claudescope_step_over_total", "claudescope_step_below_total"
    beyond = 'claudescope_step_beyond="true"'
    asked = {
        f'{over}{{{of}, claudescope_step_bound="0.0015"}}': len(timed),
        f'{over}{{{of}, claudescope_step_bound="0.0015", {beyond}}}': sum(ns > 1_500_000 for ns in timed),
        f'{over}{{{of}, claudescope_step_bound="20"}}': len(timed),
        f'{over}{{{of}, claudescope_step_bound="20", {beyond}}}': 0,
        f'{below}{{{of}, claudescope_step_bound="0.75"}}': len(sure),
        f'{below}{{{of}, claudescope_step_bound="0.75", {beyond}}}': sum(value < 0.75 for value in sure),
    }
    found = {query: stack.prometheus.value(f"sum({query})") for query in asked}
    assert found == asked
    assert len(timed) > 100
    by_label = f'sum({below}{{{of}, claudescope_step_bound="0.75", claudescope_label_tier="gold"}})'
    assert 0 < stack.prometheus.value(by_label) < len(sure)


def test_every_query_has_data_in_a_demo_with_planted_faults(shown) -> None:
    stack, _ = shown
    with StandIn() as unused:  # the demo has its own
        environment = app_environment(stack, unused)
    demo = [sys.executable, "-m", "claudescope", "demo", "--no-server", "--seconds", "30"]
    subprocess.run(demo, env=environment, check=True, capture_output=True, timeout=120)
    time.sleep(10)
    check = [sys.executable, "-m", "claudescope", "dashboards", "check", str(FOLDER.parent)]
    more = ["--prometheus", stack.prometheus.url, "--range", "5m", "--fail"]
    done = subprocess.run([*check, *more], capture_output=True, text=True, timeout=120)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    queries = [query for path in FOLDER.iterdir() for query in expressions(json.loads(path.read_text("utf-8")))]
    print(f"{sum(not query.marks for query in queries)} queries with data")


def test_every_search_of_a_panel_finds_traces(shown) -> None:
    stack, _ = shown
    searches = [
        target
        for path in FOLDER.iterdir()
        for shape in panels(json.loads(path.read_text("utf-8")))
        for target in shape["targets"]
        if target.get("queryType") == "search"
    ]
    assert len(searches) == 3
    for search in searches:
        assert search["service"] == "$traced"
        tags = dict(pair.split("=", 1) for pair in search["tags"].split())
        # what Grafana's data source makes of the query
        asked = {"service": SERVICE, "tags": json.dumps(tags), "limit": search["limit"], "lookback": "1h"}
        assert get(f"{stack.jaeger.url}/api/traces", **asked)["data"], search


def test_exemplars_of_the_heat_maps_are_steps_in_jaeger(shown) -> None:
    stack, spans = shown
    known = {span["traceId"] for span in spans}
    now = time.time()
    for title in ("Latency, p95", "Mean confidence", "Invalid share"):
        (target,) = next(shape for shape in panels(dashboard("steps")) if shape["title"] == title)["targets"]
        query = plain(target["expr"]).replace('service_name=~".*"', f'service_name="{SERVICE}"')
        url = f"{stack.prometheus.url}/api/v1/query_exemplars"
        series = get(url, query=query, start=now - RANGE, end=now)["data"]
        exemplars = list(itertools.chain(*(one["exemplars"] for one in series)))
        print(f"{title}: {len(exemplars)} exemplars")
        assert exemplars
        assert {exemplar["labels"]["trace_id"] for exemplar in exemplars} <= known
        if title == "Mean confidence":
            assert max(float(exemplar["value"]) for exemplar in exemplars) <= 0.7
        if title == "Invalid share":
            assert {one["seriesLabels"]["claudescope_step_valid"] for one in series} == {"false"}
