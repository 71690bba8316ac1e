"""The worker's promises: what is lost is said, and no fault of anybody ends its thread or reaches the app."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import claudescope
from claudescope import control
from claudescope.guard import guard
from claudescope.testing.exporters import Telemetry
from claudescope.testing.script import say
from claudescope.testing.standin import StandIn

ASK: dict[str, Any] = {"model": "claude-test", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with StandIn(say("one", "two")) as running:
        yield running


@pytest.fixture
def client(standin: StandIn) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=standin.url, api_key="key", max_retries=0) as made:
        yield made


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    with Telemetry() as made:
        yield made
        claudescope.uninstrument()
        control._waiting.clear()


@pytest.fixture
def nothing_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    for signal in ("TRACES", "METRICS", "LOGS"):
        monkeypatch.setenv(f"OTEL_{signal}_EXPORTER", "none")


def instrument(telemetry: Telemetry, **settings: Any) -> None:
    claudescope.instrument(telemetry.tracer_provider, telemetry.meter_provider, telemetry.logger_provider, **settings)


def counted(telemetry: Telemetry) -> dict[tuple[str, str], float]:
    return {
        (point.attributes["claudescope.dropped.reason"], point.attributes["claudescope.dropped.kind"]): point.value
        for point in telemetry.metric("claudescope.dropped")
    }


def test_steps_that_found_no_room_make_flush_false_once_and_are_counted(telemetry: Telemetry, client: Any) -> None:
    instrument(telemetry, queue=16)
    go = threading.Event()
    claudescope.on_validated(lambda step: go.wait(20))
    for _ in range(40):
        client.messages.create(**ASK)
    go.set()
    assert claudescope.flush(20) is False
    assert claudescope.flush(20) is True
    # each call puts its end with its message (2 steps); a message is dropped once 16 items wait, an end never
    dropped = counted(telemetry)["queue_full", "step"]
    assert dropped > 0
    assert len(telemetry.steps) == 2 * (40 - dropped)
    assert len(telemetry.calls) == 40


def test_what_is_not_worked_on_at_the_end_is_said(
    telemetry: Telemetry, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    instrument(telemetry, exit_wait=0.1)
    go = threading.Event()
    claudescope.on_validated(lambda step: go.wait(20))
    for _ in range(5):
        client.messages.create(**ASK)
    claudescope.uninstrument()
    go.set()
    # each call is one item; the first is in work
    assert capsys.readouterr().err == "claudescope: the process ended before 4 blocks and calls were worked on\n"


def test_a_subscriber_that_raises_anything_ends_no_thread(
    telemetry: Telemetry, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "reraise", False)
    instrument(telemetry)

    def leave(step: dict[str, Any]) -> None:
        raise SystemExit

    claudescope.on_validated(leave)
    client.messages.create(**ASK)
    claudescope.flush(10)
    worker = control.worker()
    assert worker is not None
    worker.pipeline.subscribers.clear()
    client.messages.create(**ASK)
    claudescope.flush(10)
    assert len(telemetry.calls) == 2


def test_a_provider_that_raises_ends_no_thread_and_no_call(
    client: Any, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, nothing_exported: None
) -> None:
    monkeypatch.setattr(guard, "reraise", False)

    class Broken(TracerProvider):
        def add_span_processor(self, span_processor: Any) -> None:
            raise RuntimeError("no")

    instrument(telemetry, export="both")
    broken = Broken(shutdown_on_exit=False)
    own = client.with_options(open_telemetry={"tracer_provider": broken})
    assert own.messages.create(**ASK).content[0].text == "one"
    assert client.messages.create(**ASK).content[0].text == "one"
    assert claudescope.flush(10) is True
    assert len(telemetry.steps) == 2


def test_flush_contains_the_faults_of_the_apps_own_exporters(telemetry: Telemetry, client: Any) -> None:
    class Broken(MeterProvider):
        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            raise RuntimeError("no")

    meters = Broken(shutdown_on_exit=False)
    claudescope.instrument(telemetry.tracer_provider, meters, telemetry.logger_provider)
    client.messages.create(**ASK)
    assert claudescope.flush(10) is True
    meters.shutdown()


def test_nothing_is_held_for_spans_that_are_not_sampled(
    telemetry: Telemetry, client: Any, nothing_exported: None
) -> None:
    instrument(telemetry, export="both", content="full")
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    own = client.with_options(open_telemetry={"tracer_provider": provider})
    for _ in range(3):
        own.messages.create(**ASK)
    assert claudescope.flush(10)
    worker = control.worker()
    assert worker is not None
    pipeline = worker.providers._pipeline
    assert pipeline is not None
    assert (len(pipeline._held), len(pipeline._released)) == (0, 0)


@pytest.mark.parametrize(("value", "on"), [("true", False), ("TRUE", False), ("maybe", True), ("1", True), ("", True)])
def test_only_true_disables_the_sdk(
    value: str, on: bool, monkeypatch: pytest.MonkeyPatch, nothing_exported: None
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", value)
    claudescope.instrument()
    assert (control.worker() is not None) is on
    claudescope.uninstrument()


def test_flush_beside_a_first_call_does_not_hang(telemetry: Telemetry, client: Any) -> None:
    for _ in range(20):
        instrument(telemetry)
        calls = [threading.Thread(target=client.messages.create, kwargs=ASK) for _ in range(2)]
        for call in calls:
            call.start()
        started = time.monotonic()
        claudescope.flush(5)
        assert time.monotonic() - started < 5
        for call in calls:
            call.join()
        claudescope.uninstrument()


RACE = """
import sys, threading
import anthropic, claudescope
claudescope.instrument()
sys.setswitchinterval(1e-6)
client = anthropic.Anthropic(max_retries=0)
barrier = threading.Barrier(16)
def call():
    barrier.wait()
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
threads = [threading.Thread(target=call) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
claudescope.flush(20)
"""


def test_first_calls_of_many_threads_share_one_pipeline(standin: StandIn) -> None:
    """Without a lock each thread made a private provider, and all but the last one's spans were lost."""
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": standin.url,
        "ANTHROPIC_API_KEY": "key",
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    done = subprocess.run([sys.executable, "-c", RACE], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"name": "chat m"') == 16
    assert done.stdout.count('"name": "reasoning_step text"') == 32


def test_no_global_provider_is_set() -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
