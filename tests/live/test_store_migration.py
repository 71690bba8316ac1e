"""A store of version 1 becomes one of this version, or stays as it was."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from live_kit import Sender, running
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from store_kit import job, open_store

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.live.store import migration
from claudescope.live.store.migration import BACKUP_NAME, upgrade
from claudescope.live.store.run_list import RunQuery, find_runs
from claudescope.live.store.schema import FILE_NAME, VERSION, connect, connect_reader
from claudescope.live.store.step_list import StepQuery, find_steps

V1 = Path(__file__).with_name("store_v1.sql").read_text()
RUNS = 40
COUNTER = '["sender","5","claudescope.steps","app",[]]'
KILLED = """
import os, signal, sys
from pathlib import Path
from claudescope.live.store import migration
wait, number = migration.Tables.write, 0
def write(self, jobs):
    global number
    number += 1
    if number == 3:
        print("now", flush=True)
        signal.pause()
    return wait(self, jobs)
migration.Tables.write = write
migration._GROUP = 2000
migration.upgrade(Path(sys.argv[1]))
"""


def sent(run: int) -> Sender:
    """Two steps, a call and a span of the app's own."""
    sender = Sender("app" if run % 2 else "other")
    chain = {semconv.CHAIN_ID: f"run-{run}", semconv.REQUEST_MODEL: "claude"}
    trace, end = bytes([run + 1] * 16), 1_700_000_000_000 + run * 1000
    parent, own, first, second = (bytes([run + 1, number] * 4) for number in range(4))
    sender.step(0, {**chain, semconv.STEP_VALID: bool(run % 3)}, trace=trace, span=first, parent=parent, end_ms=end)
    labelled = {semconv.STEP_TEXT: f"text {run}", semconv.LABEL_PREFIX + "a": "b"}
    sender.step(1, {**chain, **labelled}, trace=trace, span=second, end_ms=end)
    usage = {semconv.OPERATION_NAME: "chat", semconv.USAGE_INPUT: 10, semconv.USAGE_OUTPUT: run}
    sender.span({**usage, semconv.FINISH_REASONS: ["end_turn"]}, trace=trace, span=parent, end_ms=end + 5)
    sender.span({"http.route": "/"}, trace=trace, span=own, end_ms=end + 9)
    return sender


def make_v1(folder: Path) -> None:
    """A store as the first release wrote it: its tables, its columns."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / FILE_NAME)) as db, open_store(folder / "made") as new:
        db.executescript(V1)
        db.execute("PRAGMA journal_mode = WAL")
        for run in range(RUNS):
            new.write(sent(run))
        new.db.execute("INSERT INTO events VALUES (?, ?, ?, 5, 'event', 'app', ?)", (b"d" * 16, b"\1" * 16, b"", b""))
        new.db.execute("INSERT INTO counters VALUES (?, 7.0, 5)", (COUNTER,))
        db.execute("ATTACH ? AS new", (str(folder / "made" / FILE_NAME),))
        for table, shown in (
            ("sources", "SELECT {} FROM new.sources"),
            ("spans", "SELECT {} FROM new.spans"),
            ("runs", "SELECT {} FROM (SELECT *, end_rank / 2 AS call_ms FROM new.runs)"),
            ("events", "SELECT {} FROM new.events"),
            ("counters", "SELECT {} FROM new.counters"),
            (
                "steps",
                """SELECT {} FROM (SELECT s.*, service, kind, nullif(model, '') AS model, nullif(tool, '') AS tool,
                nullif(labels, '') AS labels FROM new.steps AS s JOIN new.series AS d ON d.id = s.series)""",
            ),
        ):
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"INSERT INTO main.{table} ({columns}) {shown.format(columns)}")
        db.execute("UPDATE runs SET seen_ms = 1700000000000 + id")
        db.commit()
        db.execute("DETACH new")


def rows(folder: Path, sql: str, name: str = FILE_NAME) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / name)) as db:
        return db.execute(sql).fetchall()


RUN = (
    "run_id, trace_id, service, model, started_ms, ended_ms, seen_ms, steps, calls, invalid, min_confidence,"
    " worst_rank, worst_index, worst_span, input_tokens, output_tokens, failed, final"
)
STEP = "run_id, s.trace_id, span_id, call_span_id, step_index, {}, name, ts_ms, latency_us, is_valid, reasons"


def contents(folder: Path, name: str = FILE_NAME) -> dict[str, list[tuple[Any, ...]]]:
    """What both versions have."""
    ((version,),) = rows(folder, "PRAGMA user_version", name)
    join = "" if version == 1 else " JOIN series AS d ON d.id = s.series"
    dims = (
        "kind, s.service, s.model, tool, labels"
        if version == 1
        else "kind, d.service, nullif(d.model, ''), nullif(tool, ''), nullif(d.labels, '')"
    )
    step = STEP.format(dims).replace("name", "s.name", 1)
    spans = sorted(
        (trace, span.span_id, span.SerializeToString())
        for trace, data in rows(folder, "SELECT trace_id, data FROM spans", name)
        for span in ScopeSpans.FromString(data).spans
    )
    return {
        "runs": rows(folder, f"SELECT {RUN} FROM runs ORDER BY run_id", name),
        "steps": rows(
            folder, f"SELECT {step} FROM steps AS s JOIN runs AS r ON r.id = s.run{join} ORDER BY s.id", name
        ),
        "spans": spans,
        "events": rows(folder, "SELECT * FROM events", name),
        "counters": rows(folder, "SELECT * FROM counters", name),
    }


def test_an_old_store_keeps_all_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_v1(tmp_path)
    before = contents(tmp_path)
    assert {name: len(found) for name, found in before.items()} == {
        "runs": RUNS,
        "steps": 2 * RUNS,
        "spans": 4 * RUNS,
        "events": 1,
        "counters": 1,
    }
    assert upgrade(tmp_path) is True
    assert rows(tmp_path, "PRAGMA user_version") == [(VERSION,)]
    assert contents(tmp_path) == before
    assert contents(tmp_path, BACKUP_NAME) == before
    assert rows(tmp_path, "SELECT count(*), sum(output_tokens) FROM calls") == [(RUNS, sum(range(RUNS)))]
    assert rows(tmp_path, "SELECT count(*) FROM spans WHERE count <> 4 OR length(runs) <> 8") == [(0,)]
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(tmp_path, "PRAGMA auto_vacuum") == [(2,)]
    assert capsys.readouterr().err == ""  # it took less than a second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", FILE_NAME, BACKUP_NAME]
    for name in (FILE_NAME, BACKUP_NAME):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0 or name == BACKUP_NAME
    db = connect(tmp_path)
    with closing(connect_reader(tmp_path)) as reader:
        assert len(find_steps(reader, StepQuery(limit=1000))["items"]) == 2 * RUNS
        assert [run["run_id"] for run in find_runs(reader, RunQuery(q="text 17"))["items"]] == ["run-17"]
    db.close()
    assert upgrade(tmp_path) is False


def test_a_server_does_it_at_its_start(tmp_path: Path) -> None:
    make_v1(tmp_path / "data")
    with running(tmp_path / "data") as live:
        assert len(live.items("/api/runs")) == RUNS
        live.send(sent(3))  # known already, each span of it
        assert len(live.items("/api/steps?limit=1000")) == 2 * RUNS


def test_what_the_log_still_held_is_in_the_backup(tmp_path: Path) -> None:
    make_v1(tmp_path)
    open_one = sqlite3.connect(tmp_path / FILE_NAME)
    open_one.execute("UPDATE counters SET value = 8.0")
    open_one.commit()
    assert (tmp_path / f"{FILE_NAME}-wal").stat().st_size > 0
    with pytest.raises(UsageError, match=r"another process|locked"):  # somebody reads it
        upgrade(tmp_path)
    open_one.close()
    assert upgrade(tmp_path)
    for name in (FILE_NAME, BACKUP_NAME):
        assert rows(tmp_path, "SELECT value FROM counters", name) == [(8.0,)]


def test_a_kill_on_the_way_leaves_a_store_that_is_converted_at_the_next_start(tmp_path: Path) -> None:
    make_v1(tmp_path)
    before = contents(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    assert (tmp_path / f"{FILE_NAME}.new").exists()
    assert rows(tmp_path, "PRAGMA user_version") == [(1,)]
    assert contents(tmp_path) == before
    assert upgrade(tmp_path)
    assert contents(tmp_path) == before
    assert not (tmp_path / f"{FILE_NAME}.new").exists()


def test_a_kill_before_the_last_step_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_v1(tmp_path)
    before = contents(tmp_path)

    def killed(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            upgrade(tmp_path)
    assert (tmp_path / BACKUP_NAME).exists()
    assert contents(tmp_path) == before
    assert upgrade(tmp_path)
    assert contents(tmp_path) == contents(tmp_path, BACKUP_NAME) == before


def test_without_room_the_old_store_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_v1(tmp_path)
    before = contents(tmp_path)
    created = migration._made

    def small(new: Path) -> sqlite3.Connection:
        db = created(new)
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 3}")
        return db

    with monkeypatch.context() as patch:
        patch.setattr(migration, "_made", small)
        with pytest.raises(UsageError, match="full") as caught:
            upgrade(tmp_path)
    assert "It is as it was. Make room" in str(caught.value.fix)
    assert contents(tmp_path) == before
    assert not (tmp_path / f"{FILE_NAME}.new").exists()


def test_a_file_system_without_links_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_v1(tmp_path)
    before = contents(tmp_path)

    def refused(source: Path, target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    assert upgrade(tmp_path)
    assert contents(tmp_path, BACKUP_NAME) == before


def test_a_long_one_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_v1(tmp_path)
    monkeypatch.setattr(migration, "_QUIET", 0.0)
    monkeypatch.setattr(migration, "_GROUP", 3000)
    assert upgrade(tmp_path)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"claudescope: the store {tmp_path / FILE_NAME} is brought to this release's form, once: ")
    assert last.endswith(": 100%")


def test_older_and_newer_stores_are_named(tmp_path: Path) -> None:
    make_v1(tmp_path)
    with pytest.raises(UsageError, match="older claudescope"):
        connect(tmp_path)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    db.execute("PRAGMA user_version = 99")
    db.close()
    stamp = (tmp_path / FILE_NAME).read_bytes()
    assert upgrade(tmp_path) is False
    with pytest.raises(UsageError, match="newer claudescope") as caught:
        connect(tmp_path)
    assert "Upgrade claudescope" in str(caught.value.fix)
    assert (tmp_path / FILE_NAME).read_bytes() == stamp


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    assert upgrade(tmp_path) is False
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 100)
    assert upgrade(tmp_path) is False
    assert (tmp_path / FILE_NAME).read_bytes() == b"not a database" * 100


def test_the_same_jobs_give_the_same_store(tmp_path: Path) -> None:
    """What ``make_v1`` copies is what the writer made, so that the test above compares with the real thing."""
    with open_store(tmp_path) as store:
        store.db.execute("BEGIN")
        store.tables.write([job(sent(run)) for run in range(3)])
        store.db.execute("COMMIT")
        assert time.time() * 1000 - float(str(store.one("SELECT min(seen_ms) FROM runs")[0])) < 60_000
        assert store.one("SELECT count(*) FROM steps") == (6,)
