from __future__ import annotations

import asyncio
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from live_kit import PROTOBUF, Client, Sender, ServerProcess, running

from claudescope import semconv
from claudescope.live.receiver.counters import Counters
from claudescope.live.receiver.ingest import Ingest
from claudescope.live.rollups.board import Rollups
from claudescope.live.rollups.persist import State
from claudescope.live.store.schema import FILE_NAME, connect
from claudescope.live.store.writer import Writer
from claudescope.live.stream import Hub

HOUR = 3_600_000


def _send(live: Client, number: int, end_ms: int = 0, valid: bool = True) -> None:
    sender = Sender()
    for index in range(number):
        sender.step(index % 8, {semconv.STEP_VALID: valid}, end_ms=end_ms)
    live.send(sender)


def _total(live: Client, path: str) -> int:
    return sum(cell["count"] for cell in live.items(path))


def _wait_for(live: Client, steps: int) -> None:
    deadline = time.monotonic() + 30
    while live.get("/api/counters").json["stored"]["steps"] != steps:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_kill_between_flushes_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    sent = invalid = 0
    now = int(time.time() * 1000)
    for number in range(3):
        server = ServerProcess(tmp_path)
        live = Client(server.url)
        _wait_for(live, sent)
        _send(live, 40)
        _send(live, 10, now - 3 * HOUR, valid=False)
        sent, invalid = sent + 50, invalid + 10
        _wait_for(live, sent)
        if number == 1:
            assert live.get("/metrics").status == 200  # has a flush written; more comes after it
            _send(live, 7)
            sent += 7
        server.end(signal.SIGTERM if number == 2 else signal.SIGKILL)
    server = ServerProcess(tmp_path)
    live = Client(server.url)
    _wait_for(live, sent)
    stored = live.get("/api/counters").json["stored"]
    assert stored == {"steps": sent, "valid": sent - invalid, "invalid": invalid, "unknown": 0}
    now = int(time.time() * 1000)
    assert _total(live, f"/api/heatmap?from={now - HOUR}&to={now + 60_000}&bucket=10") == sent - invalid
    assert _total(live, f"/api/heatmap?from={now - 6 * HOUR}&to={now + 60_000}&bucket=60") == sent
    assert _total(live, f"/api/heatmap?from={now - 24 * HOUR}&to={now + 60_000}&bucket=300") == sent
    assert server.end() == 0
    db = sqlite3.connect(tmp_path / FILE_NAME)
    marks = dict(db.execute("SELECT key, value FROM meta WHERE key LIKE 'rollup%'"))
    assert marks["rollup_watermark"] == sent
    assert marks["rollup_totals"] == f"[0,{sent - invalid},{invalid}]"
    db.close()


def test_late_steps_are_counted_where_they_ended(tmp_path: Path) -> None:
    with running(tmp_path) as live:
        now = int(time.time() * 1000)
        ages = (5_000, 40 * 60_000, 2 * HOUR, 20 * HOUR)
        for age in ages:
            _send(live, 3, now - age)
        for age in ages[1:]:
            bucket = 10_000 if age < HOUR else 60_000
            start = (now - age) // bucket * bucket
            cells = live.items(f"/api/heatmap?from={start}&to={start + bucket}&bucket={bucket // 1000}")
            assert [(cell["ts_ms"], cell["step_index"], cell["count"]) for cell in cells] == [
                (start, str(index), 1) for index in range(3)
            ]


def test_a_store_whose_rollups_are_gone_is_counted_anew(tmp_path: Path) -> None:
    with running(tmp_path) as live:
        _send(live, 500)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    db.execute("DELETE FROM rollups")
    db.execute("DELETE FROM meta WHERE key LIKE 'rollup%'")  # as after a migration from the first version
    db.commit()
    db.close()
    with running(tmp_path) as live:
        _wait_for(live, 500)
        assert _total(live, "/api/heatmap") == 500


async def test_a_request_that_is_given_up_counts_when_it_is_committed(tmp_path: Path) -> None:
    async def nobody(*_: Any) -> Any:
        raise AssertionError

    writer = Writer(connect(tmp_path), asyncio.get_running_loop().call_soon_threadsafe)
    rollups = Rollups(State(0, (0, 0, 0), {}), [], nobody, nobody)
    ingest = Ingest(writer, Hub("x"), rollups, Counters())
    sender = Sender()
    sender.step(0)
    request = asyncio.create_task(ingest.take("traces", sender.body(), PROTOBUF))
    await asyncio.sleep(0)  # it waits for the commit now
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    deadline = time.monotonic() + 20
    while rollups.totals()["steps"] != 1:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await asyncio.to_thread(writer.close)
