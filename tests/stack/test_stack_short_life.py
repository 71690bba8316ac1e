"""A process that lives for three seconds is counted by Prometheus' own functions."""

from __future__ import annotations

import time

import pytest
from stack_apps import app_environment, finish, start_app
from stack_backends import eventually

from claudescope.testing.script import say, tool_use

pytestmark = pytest.mark.stack

TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
GOOD, BAD = tool_use("add", {"a": 1}), tool_use("add", {"a": "one"})
APP = f"""
import anthropic, time
client = anthropic.Anthropic()
started = time.monotonic()
for number in range(19):
    messages = [{{"role": "user", "content": "go"}}]
    client.messages.create(model="claude-test", max_tokens=99, tools=[{TOOL!r}], messages=messages)
    time.sleep(0.05)
time.sleep(max(0, 3 - (time.monotonic() - started)))
"""
INVALID = 'sum(increase(claudescope_steps_total{claudescope_step_valid="false"}[5m]))'


def test_seven_invalid_of_57_steps(stack, standin, tmp_path) -> None:
    # 19 calls of 3 steps are 57; calls 0, 3, ... 18 have one bad tool input: 7
    standin.use(*(say(GOOD, GOOD, BAD if number % 3 == 0 else GOOD) for number in range(19)))
    script = tmp_path / "short.py"
    script.write_text(APP, "utf-8")
    finish(start_app(script, env=app_environment(stack, standin)))
    assert eventually(lambda: stack.prometheus.value("sum(claudescope_steps_total)") == 57)
    time.sleep(5)  # increase() takes the time up to the query as part of a series that was heard of just now
    increase = stack.prometheus.value(INVALID)
    print(f"increase {increase:.2f}")
    # 7 and what increase() adds at the end: half of the mean time between samples, here a tenth of the process's life
    assert increase == pytest.approx(7, abs=1)
    assert stack.prometheus.value('sum(claudescope_steps_total{claudescope_step_valid="false"})') == 7
