"""The page under a thousand steps a second for a minute: it shows them all and keeps none of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(400)]
SENDER = Path(__file__).parents[2] / "bench" / "step_stream.py"
RATE = 1000
WARM_UP, LASTS = 20, 60
RUN = "b" * 32
MAX_GROWTH = 3 * 2**20
"""Bytes of JavaScript's heap: 60,000 steps of which as little as a hundred bytes each stayed would be twice that."""


def send(url: str, seconds: int, *more: str) -> int:
    """Sends for so long, in a process of its own; returns how many steps."""
    command = [sys.executable, str(SENDER), url, f"--rate={RATE}", f"--seconds={seconds}", *more]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return report["steps"] + report["probes"]


def weigh(tools: Any) -> tuple[int, int, int]:
    """Bytes of heap, DOM nodes and listeners that are left after the garbage is collected."""
    for _ in range(3):
        tools.send("HeapProfiler.collectGarbage")
    counts = tools.send("Memory.getDOMCounters")
    return tools.send("Runtime.getHeapUsage")["usedSize"], counts["nodes"], counts["jsEventListeners"]


@pytest.mark.parametrize("address", ["/?range=5m", f"/?run={RUN}"], ids=["strip", "run"])
def test_a_thousand_steps_a_second_leave_nothing_behind(pages: Any, server: Any, tmp_path: Path, address: str) -> None:
    # steps of the run that is looked at, too; it has as many of them before as after
    sent = send(server.url, WARM_UP, f"--probes={tmp_path / 'probes'}", "--of=nodes", f"--run={RUN}")
    page = pages.open(server.url + address)
    page.get_by_text("Live", exact=True).wait_for()
    sent += send(server.url, WARM_UP)
    tools = page.context.new_cdp_session(page)
    before = weigh(tools)
    sent += send(server.url, LASTS)
    after = weigh(tools)
    grown = [new - old for new, old in zip(after, before, strict=True)]
    assert grown[0] < MAX_GROWTH, f"the heap grew by {grown[0]:,} bytes"
    assert grown[1] < 1500, f"there are {grown[1]} more DOM nodes"
    assert grown[2] < 300, f"there are {grown[2]} more listeners"
    expected = f"{sent:,}"
    until = time.monotonic() + 20
    while expected not in page.locator("body").inner_text():  # the total of the header
        assert time.monotonic() < until, f"the page does not say {expected} steps"
        time.sleep(0.2)
    assert server.get("/api/counters")["stored"]["steps"] == sent


def test_a_step_that_the_servers_figures_do_not_count_yet_stays(pages: Any, server: Any) -> None:
    page = pages.open(server.url)
    counts = page.evaluate(
        """async () => {
          const { Cells } = await import("/cells.js");
          const cells = new Cells(10000);
          const step = { ts_ms: 25000, step_index: 2, latency_us: 1000, latency_source: "measured" };
          Object.assign(step, { confidence: null, is_valid: null });
          const server = { ts_ms: 20000, step_index: "2", p50_us: 900, p95_us: 900, checked: 0, invalid: 0 };
          Object.assign(server, { confidence: null, confidence_count: 0, invalid_share: null });
          const seen = [];
          const read = () => seen.push(cells.read(20000, 2).count);
          cells.add(step, 7); read();                           // ours alone
          cells.put({ ...server, count: 3 }, 6); read();        // three others, and ours
          cells.add(step, 8); read();
          cells.put({ ...server, count: 4 }, 7); read();        // four with the first of ours, and the second
          cells.put({ ...server, count: 5 }, 8); read();        // all
          cells.put({ ...server, count: 5 }, 8); read();        // none of ours is there twice
          seen.push(cells.later(0).length);
          return seen;
        }"""
    )
    assert counts == [1, 4, 5, 5, 5, 5, 0]
