"""Programs killed under load: what was to be kept is there afterwards; what is not is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stack_backends import eventually
from stack_load import SPANS

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(400)]

RATE = 1000
Kept = tuple[str, float, bool]
"""Trace id, when it ended (Unix, seconds), and whether it carries the mark."""
QUEUE = ("otelcol_exporter_queue_size", "otlp_grpc/jaeger")


@pytest.fixture(scope="module")
def sampling(new_stack):
    return new_stack(environment={"CS_SAMPLE_PERCENT": "10"})


class Load:
    """The load in a process of its own."""

    def __init__(self, stack, out: Path, seconds: float) -> None:
        from stack_apps import app_environment

        class Nowhere:
            url = ""

        self.out, self.began = out, time.time()
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("stack_load.py")), str(out), str(RATE), str(seconds)],
            env=app_environment(stack, Nowhere()),
        )

    def finish(self, seconds: float) -> tuple[list[Kept], dict]:
        """The traces to be kept and the summary."""
        assert self.process.wait(seconds) == 0
        *kept, summary = map(json.loads, self.out.read_text().splitlines())
        print(f"{len(kept)} traces to keep;", summary)
        return kept, summary


def missing(stack, kept) -> list[Kept]:
    """The traces of which Jaeger does not have every span exactly once."""
    time.sleep(4)  # the last traces wait for their decision: CS_ROOT_WAIT and a tick, each a second
    drained = eventually(lambda: stack.telemetry_value(*QUEUE) == 0, 90)
    assert drained, "the queue did not empty"
    time.sleep(1)
    return [one for one in kept if len(stack.jaeger.trace(one[0])) != SPANS]


def test_jaeger_killed_for_60_s(sampling, tmp_path) -> None:
    load = Load(sampling, tmp_path / "load", 80)
    time.sleep(8)
    sampling["jaeger"].kill()
    highest = 0.0
    for _ in range(60):
        time.sleep(1)
        highest = max(highest, sampling.telemetry_value(*QUEUE))
    sampling["jaeger"].start()
    kept, summary = load.finish(60)
    assert summary["delivered"], "the collector took everything meanwhile"
    assert summary["spans"] == pytest.approx(RATE * 80, rel=0.1)
    lost = missing(sampling, kept)
    print(f"queue at most {highest:.0f} spans; {len(lost)} of {len(kept)} kept traces missing")
    assert highest > 1000
    assert lost == []


def test_collector_killed_with_a_full_queue(sampling, tmp_path) -> None:
    """Jaeger is away, so what is to be kept waits; then the collector dies too."""
    sampling["jaeger"].kill()
    kept, _ = Load(sampling, tmp_path / "load", 15).finish(60)
    time.sleep(13)  # the undecided rest: decision_wait and a tick
    queued = sampling.telemetry_value(*QUEUE)
    sampling["collector"].kill()
    sampling["collector"].start()
    assert queued >= 2000
    assert sampling.telemetry_value(*QUEUE) == queued
    sampling["jaeger"].start()
    lost = missing(sampling, kept)
    print(f"{queued:.0f} spans were queued; {len(lost)} of {len(kept)} kept traces missing")
    assert lost == []


def test_collector_killed_under_load(sampling, tmp_path) -> None:
    load = Load(sampling, tmp_path / "load", 25)
    time.sleep(12)
    killed = time.time()
    sampling["collector"].kill()
    time.sleep(2)
    sampling["collector"].start()
    kept, summary = load.finish(90)
    assert summary["lost"] == {}
    lost = missing(sampling, kept)
    ages = [round(ended - killed, 2) for _, ended, _ in lost]
    print(f"{len(lost)} of {len(kept)} kept traces missing; they ended {ages} s after the kill")
    assert [trace for trace, _, marked in lost if marked] == [], "what is marked waits for no decision"
    assert all(-2.5 < ended - killed < 0.5 for _, ended, _ in lost)
