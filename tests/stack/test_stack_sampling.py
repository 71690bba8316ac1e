"""At 10 %: what the app marked is kept however late it comes, once each, and exemplars name what is kept."""

from __future__ import annotations

from collections import Counter

import pytest
from stack_apps import app_environment, finish, start_app
from stack_backends import eventually

from claudescope.testing.script import say, tool_use

pytestmark = pytest.mark.stack

RUNS, CALLS, BAD_CALL = 20, 9, 4  # the fifth call
SECONDS = 180
TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
# An ordinary agent loop: the answer asks for a tool, the next request brings its result. One thread a run.
APP = f"""
import sys, threading, time
import anthropic
client = anthropic.Anthropic()
def agent(name):
    messages = [{{"role": "user", "content": f"go {{name}}"}}]
    for number in range({CALLS}):
        reply = client.messages.create(model="claude-test", max_tokens=99, tools=[{TOOL!r}], messages=messages)
        uses = [block for block in reply.content if block.type == "tool_use"]
        messages.append({{"role": "assistant", "content": reply.content}})
        messages.append({{"role": "user", "content": [
            {{"type": "tool_result", "tool_use_id": use.id, "content": "1"}} for use in uses]}})
        time.sleep({SECONDS / CALLS})
threads = [threading.Thread(target=agent, args=(number,)) for number in range({RUNS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def answer(request):
    """Each call asks for the tool; the fifth call of a run with a wrong input."""
    number = sum(message["role"] == "assistant" for message in request["messages"])
    return say(f"call {number}", tool_use("add", {"a": "one" if number == BAD_CALL else 1}))


@pytest.fixture(scope="module")
def sampled(new_stack, tmp_path_factory):
    from claudescope.testing.standin import StandIn

    stack = new_stack(environment={"CS_SAMPLE_PERCENT": "10"})
    script = tmp_path_factory.mktemp("app") / "agent.py"
    script.write_text(APP, "utf-8")
    with StandIn(answer) as standin:
        env = app_environment(stack, standin, CLAUDESCOPE_KEEP_SHARE="0.1", CLAUDESCOPE_KEEP_SLOWER="60")
        finish(start_app(script, env=env), SECONDS + 60)
    assert eventually(lambda: stack.prometheus.value("sum(claudescope_steps_total)") == RUNS * (CALLS * 3 - 1))
    eventually(lambda: len(stack.jaeger.trace_ids("agent")) == RUNS, 20)
    return stack


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_of_three_minutes_is_kept_from_its_invalid_fifth_call_on(sampled) -> None:
    traces = [sampled.jaeger.trace(trace_id) for trace_id in sampled.jaeger.trace_ids("agent")]
    assert len(traces) == RUNS, "each run is one trace, and has an invalid step"
    whole = 0
    for spans in traces:
        assert len({span["spanId"] for span in spans}) == len(spans), "no span is stored twice"
        steps = {span["attributes"]["claudescope.step.index"]: span for span in spans if "reasoning" in span["name"]}
        # A call is a text and a tool use, and the run of the tool comes with the next call: steps 3 n, 3 n + 1, 3 n + 2
        bad = 3 * BAD_CALL + 1
        assert steps[bad]["attributes"]["claudescope.step.valid"] is False
        missing = set(range(bad, CALLS * 3 - 1)) - set(steps)
        assert not missing, f"of the steps from {bad} on, {missing} are not in Jaeger"
        calls = [span for span in spans if span["name"].startswith("chat ")]
        assert len(calls) >= CALLS - BAD_CALL
        whole += len(steps) == CALLS * 3 - 1
    print(f"{whole} of {RUNS} runs are there in whole")
    assert whole < RUNS / 2, "the rest was not sampled: about 10 % by the app's base share and 10 % by the collector's"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_exemplars_name_what_jaeger_has(sampled) -> None:
    """All that Prometheus holds, the stack's own included."""
    named: Counter[tuple[str, bool]] = Counter()
    for metric in sampled.prometheus.names():
        for exemplar in sampled.prometheus.exemplars(metric):
            spans = {_hex(span["spanId"]) for span in sampled.jaeger.trace(exemplar["labels"]["trace_id"])}
            named[metric, exemplar["labels"]["span_id"] in spans] += 1
    print("exemplars by metric and whether Jaeger has the very span:", dict(named))
    found = sum(count for (_, there), count in named.items() if there)
    assert found >= 0.99 * named.total()
    assert found > 50
    assert ("claudescope_step_duration_seconds_bucket", True) in named


def _hex(span_id: str) -> str:
    import base64

    return span_id if len(span_id) == 16 else base64.b64decode(span_id).hex()
