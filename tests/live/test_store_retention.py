"""What is too old or too much goes, in pieces, while the rest stays whole."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Sender
from store_kit import Store, job, open_store

from claudescope import semconv
from claudescope.live.store import retention as retention_module
from claudescope.live.store import writer as writer_module
from claudescope.live.store.jobs import Job, LogEvent
from claudescope.live.store.retention import Retention
from claudescope.live.store.run_detail import find_run
from claudescope.live.store.run_list import RunQuery, find_runs
from claudescope.live.store.schema import bytes_in_use, connect, connect_reader
from claudescope.live.store.writer import Writer

NOW = 1_800_000_000_000
DAY = 86_400_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data") as made:
        yield made


def run(name: str, end_ms: int, padding: int = 0, service: str = "app") -> Sender:
    """A run of two steps and a call that ends at ``end_ms``."""
    sender = Sender(service)
    trace, parent = os.urandom(16), os.urandom(8)
    chain = {semconv.CHAIN_ID: name}
    filler = {"padding": random.Random(name).randbytes(padding // 2).hex()} if padding else {}
    sender.step(0, {**chain, semconv.STEP_TEXT: f"text of {name}"}, trace=trace, parent=parent, end_ms=end_ms - 10)
    sender.step(1, {**chain, **filler}, trace=trace, parent=parent, end_ms=end_ms - 5)
    sender.span({**chain, semconv.OPERATION_NAME: "chat"}, trace=trace, span=parent, end_ms=end_ms)
    return sender


def work(retention: Retention, now: int = NOW) -> int:
    """Works until nothing is left to do; returns the number of pieces."""
    pieces = 1
    while retention.work(now):
        pieces += 1
        assert pieces < 5000
    return pieces


def counts(store: Store) -> dict[str, object]:
    tables = ("spans", "steps", "calls", "texts", "events", "runs")
    return {table: store.one(f"SELECT count(*) FROM {table}")[0] for table in tables}


def test_what_ended_too_long_ago_goes_with_all_that_is_of_it(store: Store) -> None:
    store.write(run("old", NOW - 8 * DAY), run("new", NOW - 6 * DAY))
    events = [LogEvent(bytes([n] * 16), b"\1" * 16, b"", NOW - n * DAY, "e", "app", b"") for n in (9, 5)]
    store.db.execute("BEGIN")
    store.tables.write([Job(events=events)])
    store.db.execute("COMMIT")
    work(Retention(store.db, 7 * DAY, None))
    assert counts(store) == {"spans": 1, "steps": 2, "calls": 1, "texts": 1, "events": 1, "runs": 1}
    assert [found["run_id"] for found in find_runs(store.reader, RunQuery())["items"]] == ["new"]
    assert find_runs(store.reader, RunQuery(q="text of old"))["items"] == []
    assert len(find_runs(store.reader, RunQuery(q="text of new"))["items"]) == 1
    assert store.one("SELECT count(*) FROM texts_index WHERE texts_index MATCH 'text'") == (1,)
    found = find_run(store.reader, "new")
    assert found is not None
    assert (len(found["steps"]), len(found["calls"]), len(found["spans"])) == (2, 1, 3)
    assert store.one("PRAGMA integrity_check") == ("ok",)
    store.db.execute("INSERT INTO texts_index (texts_index, rank) VALUES ('integrity-check', 1)")


def test_a_run_stays_while_a_step_of_it_does(store: Store) -> None:
    store.write(run("long", NOW - 8 * DAY), run("long", NOW - DAY))
    work(Retention(store.db, 7 * DAY, None))
    (found,) = find_runs(store.reader, RunQuery())["items"]
    assert (found["run_id"], found["steps"]) == ("long", 4)  # of the steps that there were
    work(Retention(store.db, DAY // 2, None))
    assert set(counts(store).values()) == {0}


def test_steps_that_are_not_counted_yet_stay(store: Store) -> None:
    store.write(run("a", NOW - 8 * DAY), run("b", NOW - 8 * DAY))
    store.db.execute("INSERT INTO meta VALUES ('rollup_watermark', 3)")
    retention = Retention(store.db, 7 * DAY, None)
    work(retention)
    assert store.one("SELECT group_concat(id) FROM steps") == ("4",)
    assert store.one("SELECT group_concat(run_id) FROM runs") == ("b",)
    store.db.execute("UPDATE meta SET value = 4 WHERE key = 'rollup_watermark'")
    work(retention)
    assert set(counts(store).values()) == {0}
    assert store.one("SELECT value FROM meta WHERE key = 'last_run'") == (2,)


def test_a_root_without_steps_and_calls_goes_too(store: Store) -> None:
    for name, end_ms in (("old", NOW - 8 * DAY), ("new", NOW - DAY)):
        sender = Sender()
        root = {semconv.CHAIN_ID: name, semconv.OPERATION_NAME: "invoke_workflow"}
        sender.span(root, trace=os.urandom(16), end_ms=end_ms)
        store.write(sender)
    work(Retention(store.db, 7 * DAY, None))
    assert [found["run_id"] for found in find_runs(store.reader, RunQuery())["items"]] == ["new"]
    late = Sender()  # the root of a run whose steps have gone
    late.span({semconv.CHAIN_ID: "late", semconv.OPERATION_NAME: "invoke_workflow"}, end_ms=NOW - 8 * DAY + 1)
    store.write(run("late", NOW - 8 * DAY))
    work(Retention(store.db, 7 * DAY, None))
    store.write(late)
    work(Retention(store.db, 7 * DAY, None))
    assert [found["run_id"] for found in find_runs(store.reader, RunQuery())["items"]] == ["new"]


def test_a_clock_that_is_ahead_does_not_take_the_room_of_others(store: Store) -> None:
    far = 4_102_444_800_000  # 2100-01-01
    store.write(*(run(f"now-{number}", NOW - number, 40_000) for number in range(10)))
    least = bytes_in_use(store.db)
    store.write(*(run(f"far-{number}", far + number, 40_000) for number in range(10)))
    retention = Retention(store.db, 7 * DAY, int(least / 0.95) + 20_000)  # below 95 % of it nothing goes
    work(retention)
    left = [found["run_id"] for found in find_runs(store.reader, RunQuery())["items"]]
    assert sorted(left) == sorted(f"now-{number}" for number in range(10))
    store.write(run("later", NOW + 1))
    work(retention)
    assert store.one("SELECT count(*) FROM runs WHERE run_id = 'later'") == (1,)


def test_a_clock_of_the_server_that_was_ahead_deletes_nothing_that_comes_after(store: Store) -> None:
    ahead = NOW + 365 * DAY
    store.write(*(run(f"run-{number}", ahead - number, 40_000) for number in range(10)))
    retention = Retention(store.db, 7 * DAY, bytes_in_use(store.db) - 100_000)
    work(retention, ahead)
    assert 0 < int(str(store.one("SELECT count(*) FROM runs")[0])) < 10
    store.write(run("later", NOW))
    work(retention, NOW)
    assert store.one("SELECT count(*) FROM runs WHERE run_id = 'later'") == (1,)


def test_an_index_of_texts_that_are_gone_takes_no_room(store: Store) -> None:
    before = bytes_in_use(store.db)
    dice = random.Random(5)
    for batch in range(20):
        sender = Sender()
        for index in range(50):
            text = dice.randbytes(200).hex()
            sender.step(index, {semconv.STEP_TEXT: text}, trace=bytes([batch + 1] * 16), end_ms=NOW - 8 * DAY)
        store.write(sender)
    work(Retention(store.db, 7 * DAY, None))
    assert bytes_in_use(store.db) - before < 100_000
    store.write(run("new", NOW))
    assert len(find_runs(store.reader, RunQuery(q="text of new"))["items"]) == 1
    store.db.execute("INSERT INTO texts_index (texts_index, rank) VALUES ('integrity-check', 1)")


def test_it_goes_in_pieces(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_SPANS", 2), ("_STEPS", 3), ("_CALLS", 1), ("_EVENTS", 1)):
        monkeypatch.setattr(retention_module, name, size)
    store.write(*(run(f"run-{number}", NOW - 8 * DAY + number) for number in range(10)))
    retention = Retention(store.db, 7 * DAY, None)
    assert retention.work(NOW) is True
    assert counts(store) == {"spans": 8, "steps": 17, "calls": 9, "texts": 7, "events": 0, "runs": 10}
    assert work(retention) == 10  # a call a piece, and one that finds nothing
    assert set(counts(store).values()) == {0}


def test_the_oldest_make_room(store: Store) -> None:
    names = [f"run-{number:03}" for number in range(300)]
    shuffled = random.Random(1).sample(names, len(names))  # they come in any order
    for at in range(0, len(names), 50):
        store.write(*(run(name, NOW - DAY + 1000 * int(name[4:]), padding=8000) for name in shuffled[at : at + 50]))
    retention = Retention(store.db, None, 1_200_000)
    assert retention.used > 2_400_000
    work(retention)
    assert 600_000 < retention.used <= 1_200_000
    left = [found["run_id"] for found in find_runs(store.reader, RunQuery(limit=1000, descending=False))["items"]]
    assert left == names[-len(left) :]
    assert 50 < len(left) < 150
    assert store.one("SELECT count(DISTINCT run) FROM steps") == (len(left),)
    file = store.folder / "store.sqlite"
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    free = 256 * 4096  # that many pages are kept for what comes
    assert file.stat().st_size <= retention.used + free + 4096
    before = retention.used
    assert work(retention) == 1  # once there is room, nothing more goes
    assert retention.used == before


def test_what_cannot_be_made_smaller_is_left(store: Store) -> None:
    store.write(run("one", NOW))
    retention = Retention(store.db, None, 10_000)
    work(retention)
    assert set(counts(store).values()) == {0}


def test_sources_and_series_that_nothing_names_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from claudescope.live.store import series

    monkeypatch.setattr(series, "MAX_COUNTED", 1)
    store.write(run("a", NOW - 8 * DAY, service="first"))
    store.write(run("b", NOW - 8 * DAY, service="second"), run("c", NOW, service="third"))
    assert store.one("SELECT count(*) FROM sources") == (3,)
    assert store.one("SELECT count(*), sum(counted = id) FROM series") == (5, 3)
    retention = Retention(store.db, 7 * DAY, None)
    work(retention)
    assert retention.swept
    assert store.one("SELECT count(*) FROM sources") == (1,)
    # the counted ones stay, since the figures name them: the first, and the stand-ins of the two others
    assert store.one("SELECT count(*), sum(counted = id) FROM series") == (4, 3)
    store.tables.forget()
    store.write(run("d", NOW, service="second"))
    assert store.one("SELECT count(*) FROM sources") == (2,)
    work(retention, NOW + 1000)
    assert store.one("SELECT count(*) FROM sources") == (2,)


def test_the_writer_deletes_between_what_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_FIRST_PASS", 0.0)
    monkeypatch.setattr(writer_module, "_PASS", 0.01)
    monkeypatch.setattr(retention_module, "_SPANS", 1)
    db = connect(tmp_path)
    writer = Writer(db, lambda finish: finish(), None, Retention(db, 7 * DAY, None))
    reader = connect_reader(tmp_path)
    now = int(time.time() * 1000)
    try:
        for number in range(20):
            writer.submit(job(run(f"old-{number}", now - 8 * DAY)))
            writer.submit(job(run(f"new-{number}", now))).result(10)
        until = time.monotonic() + 20
        while reader.execute("SELECT count(*) FROM spans").fetchone()[0] > 20 and time.monotonic() < until:
            time.sleep(0.01)
        found = find_runs(reader, RunQuery(limit=1000))["items"]
        assert {run["run_id"] for run in found} == {f"new-{number}" for number in range(20)}
        assert writer.failing is None
    finally:
        reader.close()
        writer.close()
