from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Client, Sender, running

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.live.records import Batch, read_spans
from claudescope.live.store import writer as writer_module
from claudescope.live.store.folder import DataFolder, default_folder
from claudescope.live.store.jobs import CounterPoint, Job
from claudescope.live.store.schema import FILE_NAME, VERSION, connect
from claudescope.live.store.writer import BacklogError, StoreError, Writer

CALL = b"\x0c" * 8


def job(sender: Sender) -> Job:
    batch = Batch()
    for _ in read_spans(sender.request, batch):
        pass
    return Job(batch=batch, size=batch.size)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(connect(tmp_path), lambda finish: finish())
    yield made
    made.close()


def test_a_span_counts_once(store: Writer, tmp_path: Path) -> None:
    sender = Sender()
    for index in range(3):
        sender.step(index, span=bytes([index + 1] * 8))
    first = store.submit(job(sender)).result(10)
    again = store.submit(job(sender)).result(10)
    assert (len(first.steps), first.duplicates) == (3, 0)
    assert (len(again.steps), again.duplicates) == (0, 3)
    store._tables.forget()  # as after a restart: the ids are asked of the store
    sender.step(3, {semconv.STEP_VALID: False}, span=b"\x09" * 8)
    sender.step(0, {semconv.STEP_KIND: "text"}, span=b"\x01" * 8)
    third = store.submit(job(sender)).result(10)
    assert ([stored.step["step_index"] for stored in third.steps], third.duplicates) == ([3], 4)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    assert db.execute(
        "SELECT count(*), sum(kind = 'thinking') FROM steps JOIN series ON series.id = series"
    ).fetchone() == (4, 4)  # the first one stays
    assert db.execute("SELECT steps, invalid FROM runs").fetchall() == [(4, 1)]
    assert db.execute("SELECT sum(length(span_ids)) FROM spans").fetchone() == (32,)
    db.close()


def test_many_jobs_at_once(store: Writer, tmp_path: Path) -> None:
    senders = [Sender() for _ in range(40)]
    for sender in senders:
        for index in range(100):
            sender.step(index, trace=os.urandom(16))
    futures = [store.submit(job(sender)) for sender in senders]
    assert [len(future.result(20).steps) for future in futures] == [100] * 40
    db = sqlite3.connect(tmp_path / FILE_NAME)
    assert db.execute("SELECT count(*), count(DISTINCT trace_id), count(DISTINCT run) FROM steps").fetchone() == (
        4000,
        4000,
        4000,
    )
    db.close()


def test_a_failed_transaction_acknowledges_nothing_and_the_next_one_works(store: Writer, tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    db.execute("CREATE TRIGGER full BEFORE INSERT ON steps BEGIN SELECT raise(ABORT, 'disk is full'); END")
    sender = Sender()
    sender.step(0)
    with pytest.raises(StoreError, match="disk is full"):
        store.submit(job(sender)).result(10)
    assert store.failing == "disk is full"
    assert db.execute("SELECT count(*) FROM spans").fetchone() == (0,)
    db.execute("DROP TRIGGER full")
    assert len(store.submit(job(sender)).result(10).steps) == 1
    assert store.failing is None
    assert db.execute("SELECT count(*) FROM spans").fetchone() == (1,)
    db.close()


def test_a_job_that_cannot_be_written_takes_no_other_with_it(store: Writer, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # so that the three become one transaction
    first, last = Sender(), Sender()
    first.step(0)
    last.step(1)
    poison = Job(counters=[CounterPoint("[]", object(), 0)])  # type: ignore[arg-type]
    store.submit(Job(size=1))
    jobs = [store.submit(one) for one in (job(first), poison, job(last))]
    other.execute("ROLLBACK")
    other.close()
    assert [len(jobs[at].result(10).steps) for at in (0, 2)] == [1, 1]
    with pytest.raises(StoreError):
        jobs[1].result(10)
    assert store.backlog == 0


def test_too_much_waiting_is_refused(store: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_BACKLOG", 100)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # the writer waits for this one
    sender = Sender()
    sender.step(0)
    waiting = store.submit(job(sender))
    with pytest.raises(BacklogError):
        store.submit(Job(size=100))
    other.execute("ROLLBACK")
    other.close()
    assert len(waiting.result(20).steps) == 1
    assert store.backlog == 0


def test_the_backlog_is_a_503_with_retry_after(live: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_BACKLOG", 1)
    other = sqlite3.connect(tmp_path / "data" / FILE_NAME, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    first = Sender()
    first.step(0)
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(live.post(first.body()).status))
    thread.start()
    second = Sender()
    second.step(1)
    refused = None
    while refused is None or refused.status != 503:
        refused = live.post(second.body()) if statuses or _waits(live) else None
    assert refused.headers["retry-after"] == "1"
    other.execute("ROLLBACK")
    other.close()
    thread.join(20)
    assert statuses == [200]
    assert [step["step_index"] for step in live.items("/api/steps")] == [0]


def _waits(live: Client) -> bool:
    # nothing stored yet, and the first request has been read: a second one must be refused from then on
    from live_kit import Stream

    stream = Stream(live.url)
    _, stats, _ = stream.next("stats")
    stream.close()
    return bool(stats["backlog_bytes"])


def test_runs_add_up(live: Client) -> None:
    sender = Sender("agent")
    now = 1_700_000_000_000
    chain = {semconv.CHAIN_ID: "chain-1", semconv.REQUEST_MODEL: "claude"}
    sender.step(0, {**chain, semconv.STEP_CONFIDENCE: 0.9}, parent=CALL, end_ms=now + 100)
    live.send(sender)
    (run,) = live.items("/api/runs")
    assert (run["status"], run["calls"], run["input_tokens"]) == ("running", 0, None)
    sender = Sender("agent")
    low = sender.step(1, {**chain, semconv.STEP_CONFIDENCE: 0.4}, parent=CALL, end_ms=now + 300)
    call = {semconv.OPERATION_NAME: "chat", semconv.USAGE_INPUT: 50, semconv.USAGE_OUTPUT: 7}
    # the call's span says no chain: its steps did
    sender.span({**call, semconv.FINISH_REASONS: ["end_turn"]}, span=CALL, end_ms=now + 310, latency_ms=310)
    live.send(sender)
    (run,) = live.items("/api/runs")
    assert run == {
        "run_id": "chain-1",
        "trace_id": "01" * 16,
        "service": "agent",
        "model": "claude",
        "started_ms": now,
        "ended_ms": now + 310,
        "duration_ms": 310,
        "seen_ms": run["seen_ms"],
        "steps": 2,
        "calls": 1,
        "invalid": 0,
        "min_confidence": 0.4,
        "worst": {"step_index": 1, "span_id": low.hex()},
        "input_tokens": 50,
        "output_tokens": 7,
        "cost_usd": None,
        "unpriced_calls": 1,
        "max_latency_us": 100_000,
        "name": None,
        "labels": {},
        "status": "ok",
    }
    sender = Sender("agent")
    bad = sender.step(2, {**chain, semconv.STEP_VALID: False}, end_ms=now + 400, latency_ms=1)
    sender.step(3, {**chain, semconv.STEP_CONFIDENCE: 0.1}, end_ms=now + 500, latency_ms=1)
    failing = {**call, **chain, semconv.ERROR_TYPE: "overloaded_error"}
    sender.span(failing, end_ms=now + 600, latency_ms=1)
    live.send(sender)
    (run,) = live.items("/api/runs")
    assert (run["worst"], run["invalid"]) == ({"step_index": 2, "span_id": bad.hex()}, 1)  # invalid comes first
    assert (run["min_confidence"], run["calls"], run["input_tokens"], run["status"]) == (0.1, 2, 100, "failed")


def test_without_confidence_the_slowest_is_the_worst(live: Client) -> None:
    sender = Sender()
    spans = [sender.step(index, latency_ms=ms) for index, ms in enumerate((10, 900, 30))]
    live.send(sender)
    (run,) = live.items("/api/runs")
    assert run["worst"] == {"step_index": 1, "span_id": spans[1].hex()}


def test_two_spans_around_one_call_are_one_call(live: Client) -> None:
    sender = Sender()
    usage = {semconv.OPERATION_NAME: "chat", semconv.USAGE_INPUT: 10, semconv.USAGE_OUTPUT: 1}
    outer = b"\x0d" * 8
    sender.step(0, parent=CALL)
    sender.span(usage, span=CALL, parent=outer)
    sender.span(usage, span=outer)
    live.send(sender)
    (run,) = live.items("/api/runs")
    assert (run["calls"], run["input_tokens"], run["output_tokens"]) == (1, 10, 1)


def test_the_store_outlives_a_restart(tmp_path: Path) -> None:
    sender = Sender()
    for index, valid in enumerate((True, False)):
        sender.step(index, {semconv.STEP_VALID: valid})
    with running(tmp_path / "data") as live:
        live.send(sender)
        before = live.get("/api/steps").json, live.get("/api/runs").json["items"][0]["steps"]
    with running(tmp_path / "data") as live:
        assert (live.get("/api/steps").json, live.get("/api/runs").json["items"][0]["steps"]) == before
        stored = {"steps": 0}
        while stored["steps"] != 2:  # filled in the background
            stored = live.get("/api/counters").json["stored"]
        assert stored == {"steps": 2, "valid": 1, "invalid": 1, "unknown": 0}
        cells = []
        while len(cells) != 2:
            cells = live.items("/api/heatmap")
        assert [cell["count"] for cell in cells] == [1, 1]
        live.send(sender)  # sent again after the restart: counted once
        assert live.get("/api/counters").json["stored"]["steps"] == 2
        assert len(live.items("/api/steps")) == 2


def test_the_folder_is_private_and_has_one_owner(tmp_path: Path) -> None:
    with running(tmp_path / "data") as live:
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "data" / FILE_NAME).stat().st_mode) == 0o600
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()} at {live.url}"):
            DataFolder(tmp_path / "data")
    DataFolder(tmp_path / "data").close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file/data cannot be used"):
        DataFolder(tmp_path / "file" / "data")


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "claudescope"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "share" / "claudescope"


def test_a_newer_store_and_another_file_are_refused(tmp_path: Path) -> None:
    db = connect(tmp_path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(UsageError, match="newer claudescope"):
        connect(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE_NAME).write_bytes(b"not a database" * 100)
    with pytest.raises(UsageError, match="cannot be opened"):
        connect(tmp_path / "b")
