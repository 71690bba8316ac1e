"""An app that knows nothing of claudescope, under ``claudescope run``, and what the server then knows of it."""

import json
import subprocess
import sys
import time

import pytest
from e2e_kit import environment, free_port

from claudescope.testing.script import say, tool_use

TOOL = {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
GOOD, BAD = tool_use("add", {"a": 1}), tool_use("add", {"a": "one"})

APP = """
import anthropic, time
client = anthropic.Anthropic()
tool = {tool!r}
started = time.monotonic()
for number in range({calls}):
    messages = [{{"role": "user", "content": "go"}}]
    client.messages.create(model="claude-test", max_tokens=99, tools=[tool], messages=messages)
    time.sleep({pause})
time.sleep(max(0, {lives} - (time.monotonic() - started)))
"""


def test_a_script_that_lives_three_seconds_is_counted_exactly(start_server, run_script, standin) -> None:
    # 19 calls of 3 steps are 57 steps; every third call but the last two has one bad tool input: calls 0, 3, ... 18
    replies = [say(GOOD, GOOD, BAD if number % 3 == 0 else GOOD) for number in range(19)]
    standin.use(*replies)
    server = start_server()
    app = run_script(APP.format(tool=TOOL, calls=19, pause=0.05, lives=3), int(server.url.rpartition(":")[2]))
    _, errors = app.communicate(timeout=60)
    assert app.returncode == 0, errors
    invalid = sum(number % 3 == 0 for number in range(19))
    assert invalid == 7

    steps = server.every("/api/steps?service=app")
    assert len(steps) == 57
    assert [step["is_valid"] for step in steps].count(False) == 7
    assert [step["is_valid"] for step in steps].count(True) == 50

    counted = {True: 0.0, False: 0.0, None: 0.0}
    for item in server.get("/api/counters")["items"]:
        if item["name"] == "claudescope.steps":
            verdict = {"true": True, "false": False, "unknown": None}[item["labels"]["claudescope.step.valid"]]
            counted[verdict] += item["value"]
    assert counted == {True: 50, False: 7, None: 0}


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_server_that_is_away_for_a_minute_loses_nothing(start_server, run_script, standin) -> None:
    """100 steps a second: 20 calls a second of 5 steps, from before the server is there until after."""
    standin.use(say(*[GOOD] * 5))
    port = free_port()
    calls = 20 * 64
    # ``run`` would start a server on the free port: the endpoint is named, so it starts none
    app = run_script(
        APP.format(tool=TOOL, calls=calls, pause=0.04, lives=64),
        port,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
    )
    time.sleep(60)
    server = start_server(port)
    _, errors = app.communicate(timeout=120)
    assert app.returncode == 0, errors
    assert "not delivered" not in errors
    assert len(server.every("/api/steps")) == calls * 5


def test_what_the_buffer_cannot_hold_is_counted_and_told(run_script, standin) -> None:
    """Nobody listens and the buffer holds little: what was emitted is what the loss says, on stderr, at exit."""
    standin.use(say(*[GOOD] * 5))
    port = free_port()
    app = run_script(
        APP.format(tool=TOOL, calls=40, pause=0, lives=0),
        port,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
        CLAUDESCOPE_EXPORT_BUFFER="20KB",
        CLAUDESCOPE_EXIT_WAIT="1",
    )
    _, errors = app.communicate(timeout=60)
    assert app.returncode == 0
    told = [line for line in errors.splitlines() if "not delivered" in line]
    assert len(told) == 1
    # 40 calls of 5 steps and one call span each
    assert told[0].startswith("claudescope: 240 spans")
    assert f"not delivered to http://127.0.0.1:{port}" in told[0]


def test_run_starts_its_own_server_and_ends_it(tmp_path, standin) -> None:
    standin.use(say("done"))
    script = tmp_path / "app.py"
    script.write_text(APP.format(tool=TOOL, calls=1, pause=0, lives=0), "utf-8")
    port = free_port()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "claudescope", "run", "--port", str(port), "--grpc-port", "0"),
            *("--data", str(tmp_path / "data"), "--no-open", "--", sys.executable, str(script)),
        ],
        env=environment(ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="key"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{port}" in done.stderr.splitlines()[0]
    assert done.stdout == ""
    assert json.loads(standin.requests[0].body)["model"] == "claude-test"
    assert len(standin.requests[0].header("traceparent")) == 1
