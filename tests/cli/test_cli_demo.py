from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

from claudescope.cli.demo_apps import EXAMPLES
from claudescope.cli.demo_script import DemoScript
from claudescope.cli.summary import Summary
from claudescope.live.probe import probe
from claudescope.testing.standin import StandIn

ORDINARY = ("support_agent", "maths_tutor", "batch_summariser")


def checks(step: dict) -> list[str]:
    """The checks that a step failed."""
    return [reason["check"] for reason in step["reasons"]]


def steps_at(url: str) -> list[dict]:
    with urllib.request.urlopen(f"{url}/api/steps?limit=1000", timeout=30) as answer:
        return json.load(answer)["items"]


# What a user may have set for apps of their own, and what would keep the demo from showing anything.
USERS = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
    "OTEL_SDK_DISABLED": "1",
    "HTTP_PROXY": "http://127.0.0.1:9",
}


def start_demo(tmp_path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("demo", "--no-open", *more),
        env=plain_environment(TMPDIR=str(tmp_path), **USERS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )


def test_demo_shows_every_planted_fault_and_sums_up(tmp_path):
    process = start_demo(tmp_path, "--port", "0")
    wanted = {
        "a tool input that does not fit": lambda step: step["tool"] == "refund" and "tool_input" in checks(step),
        "an answer that is cut off": lambda step: step["kind"] == "text" and "stop_reason" in checks(step),
        "a tool that fails": lambda step: step["kind"] == "tool_run" and "tool_result" in checks(step),
        "low confidence": lambda step: step["kind"] == "text" and step["confidence"] == 0.35,
        "a verdict by hand": lambda step: step["kind"] == "manual" and "manual" in checks(step),
        "thinking": lambda step: step["kind"] == "thinking" and step["latency_source"] == "measured",
        "a slow reader": lambda step: step["latency_source"] == "consumer",
    }
    with process:
        url = re.match(r"claudescope: (http://127\.0\.0\.1:\d+)\n$", process.stdout.readline()).group(1)
        until = time.monotonic() + 90
        while missing := [name for name, test in wanted.items() if not any(map(test, steps_at(url)))]:
            assert process.poll() is None
            assert time.monotonic() < until, missing
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        first, *summary = process.stdout.read().splitlines()
        assert process.stderr.read() == ""
        assert process.wait(30) == 0
    assert first == "The examples ask a stand-in of the API on this machine; some answers are wrong on purpose."
    assert [line.split()[0] for line in summary] == ["runs", "steps", "invalid", "slowest"]
    runs, steps, invalid = (int(line.split()[1]) for line in summary[:3])
    assert steps >= runs > 0
    assert invalid > 0
    assert list(tmp_path.iterdir()) == []
    assert probe(url) is None


def test_demo_ends_by_itself_and_takes_a_free_port(tmp_path):
    other = subprocess.Popen(
        command("up", "--port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data")),
        env=plain_environment(),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with other:
        port = other.stdout.readline().split()[1].rpartition(":")[2]
        process = start_demo(tmp_path, "--port", port, "--seconds", "0.5")
        out, _ = process.communicate(timeout=60)
        other.terminate()
    assert process.returncode == 0
    assert re.match(rf"claudescope: http://127\.0\.0\.1:\d+ \(something else has port {port}\)\n", out)
    assert "runs " in out


def test_demo_that_is_killed_leaves_no_process(tmp_path):
    process = start_demo(tmp_path, "--port", "0")
    with process:
        url = process.stdout.readline().split()[1]
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
        process.kill()
    until = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() and is_alive(child) for child in children):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert probe(url) is None


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_demo_whose_apps_fail_says_why(claudescope, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "anthropic.py").write_text("raise ImportError('broken on purpose')\n")
    environment = {"PYTHONPATH": str(tmp_path / "broken")}
    done = claudescope("demo", "--no-open", "--port", "0", environment=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("claudescope: the example apps ended:\n")
    assert "ImportError: broken on purpose" in done.stderr


def test_demo_without_a_server_sends_to_where_the_environment_says(tmp_path):
    collector = subprocess.Popen(
        command("up", "--port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data"), "--token", "s3cret"),
        env=plain_environment(),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with collector:
        url = collector.stdout.readline().split()[1]
        process = subprocess.Popen(
            command("demo", "--no-server"),
            env=plain_environment(
                OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20s3cret"
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        with process:
            request = urllib.request.Request(f"{url}/api/steps", headers={"Authorization": "Bearer s3cret"})
            until = time.monotonic() + 60
            steps: list[dict] = []
            while not steps:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.2)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    steps = json.load(answer)["items"]
            process.send_signal(signal.SIGTERM)  # as a container is ended
            out, err = process.communicate(timeout=30)
        collector.terminate()
    assert {step["service"] for step in steps} == {"claudescope-demo"}
    assert out.splitlines()[0] == f"claudescope: {url}"
    assert (len(out.splitlines()), err, process.returncode) == (2, "", 0)


def test_demo_without_a_server_needs_an_endpoint(claudescope):
    done = claudescope("demo", "--no-server")
    assert done.returncode == 2
    assert done.stderr == (
        "claudescope: --no-server sends the steps elsewhere, and OTEL_EXPORTER_OTLP_ENDPOINT is not set."
        " Set it to the address of a collector, or leave --no-server out.\n"
    )


def test_demo_says_that_a_collector_with_tls_takes_nothing_without(claudescope):
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "CS_RECEIVER": "otlp/tls"}
    done = claudescope("demo", "--no-server", environment=environment)
    assert done.returncode == 2
    assert done.stderr == (
        "claudescope: The stack's collector takes TLS only (CS_RECEIVER=otlp/tls), and the demo sends to"
        " http://collector:4318. Look at the demo without CS_RECEIVER, or set OTEL_EXPORTER_OTLP_ENDPOINT to an"
        " https:// address and OTEL_EXPORTER_OTLP_CERTIFICATE to the authority of its certificate.\n"
    )


def test_live_needs_a_key(claudescope):
    done = claudescope("demo", "--live", "--no-open")
    assert done.returncode == 2
    assert done.stderr == (
        "claudescope: --live asks the real API and ANTHROPIC_API_KEY is not set. Set it, or leave --live out.\n"
    )


def test_seconds_must_be_a_number(claudescope):
    done = claudescope("demo", "--seconds", "soon")
    assert done.returncode == 2
    assert done.stderr == "claudescope: --seconds is 'soon'. It takes a number of at least 0.\n"


def test_summary_without_steps():
    assert str(Summary(0, 0, 0, None)) == "runs     0\nsteps    0\ninvalid  0"


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_examples_have_no_line_of_claudescope(name):
    code = [line for line in (EXAMPLES / f"{name}.py").read_text("utf-8").splitlines() if not line.startswith(" ")]
    assert not [line for line in code if "claudescope" in line]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("support_agent", ["39.90 EUR of order A-1044 are on their way back", "The carrier does not answer"]),
        ("maths_tutor", ["**84 km/h**", "**1600**", "The answer is **3/28**"]),
        ("batch_summariser", ["A late da\n[cut off]", "- Batch 7731 is called back."]),
        ("handmade_steps", ["89.00 EUR (the policy says 84.00)", "50 days: 0.00 EUR"]),
    ],
)
def test_examples_are_ordinary_programs(tmp_path, name, said):
    with StandIn(DemoScript(), seed=1) as standin:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py")],
            env=plain_environment(ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="any"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert standin.errors == []
    assert (done.returncode, done.stderr) == (0, "")
    assert [text for text in said if text not in done.stdout] == []


def ask(script: DemoScript, system: str, *contents: str | list) -> tuple:
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]
    reply = script({"system": system, "messages": messages})
    return [block.type for block in reply.content], reply.reason, reply.fault and reply.fault.status


def test_script_plants_its_faults_in_turn():
    script = DemoScript()
    support = "You are the support agent of a shop."
    overloaded = [ask(script, support, "Where is A-1042?")[2] for _ in range(8)]
    assert overloaded == [None, 529, None, None, None, None, 529, None]  # each fifth, from the second
    refund = "Please refund A-1044."
    inputs = [
        script({"system": support, "messages": [{"role": r, "content": refund} for r in ("user", "assistant", "user")]})
        .content[1]
        .fields["input"]
        for _ in range(4)
    ]
    assert [set(given) == {"order_id", "amount", "reason"} for given in inputs] == [False, True, False, True]
    tutor = "You are a patient maths tutor."
    ends = [ask(script, tutor, "What is the sum of the first 40 odd numbers?")[1] for _ in range(7)]
    assert ends == ["end_turn"] * 5 + ["max_tokens", "end_turn"]
    summariser = "Summarise the document in three points."
    assert [ask(script, summariser, "<document name='contract'>")[1] for _ in range(3)] == [
        "max_tokens",
        "end_turn",
        "max_tokens",
    ]
    assert ask(script, summariser, "<document name='survey'>")[2] == 529
    assert ask(script, "Something else.", "Hello")[:2] == (["text"], "end_turn")


def test_live_asks_the_api_once_an_example_and_says_what_it_costs(tmp_path):
    with StandIn(DemoScript(), seed=1) as standin:  # in the place of the real API
        process = subprocess.Popen(
            command("demo", "--live", "--no-open", "--port", "0"),
            env=plain_environment(TMPDIR=str(tmp_path), ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="any"),
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        with process:
            url = process.stdout.readline().split()[1]
            # 10 of the agent and a retry, 6 of the tutor, 6 of the summariser and a retry, 3 reviews.
            until = time.monotonic() + 60
            while len(standin.requests) < 27 or not steps_at(url):
                assert time.monotonic() < until
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            said = process.stdout.readline()
            process.stdout.read()
        assert (process.returncode, len(standin.requests)) == (0, 27)
    assert said == "The examples ask the real API once each: some 25 short calls, a few cents.\n"
