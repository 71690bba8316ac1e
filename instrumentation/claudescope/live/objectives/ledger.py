"""How many events each objective had in each bucket of time, and how many of them were bad.

The writer counts what it stores in the same transaction, so the ledger and the store never differ, also after a kill.
What was stored before an objective was known, or while no server counted, is counted from the store's rows
afterwards, in pieces between other transactions. A count goes into a bucket of each of the roll-ups' tiers, so that a
long window is few rows; the buckets of the finest are ``BUCKET_MS`` long.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ... import semconv
from ...slo.objective import Objective
from ..records import CallRecord, Dims, StepFigures, StepRecord, dims_of, label_json
from ..rollups.tiers import AHEAD_MS, BUCKET_MS, TIERS
from .judge import Judge
from .load import Load

__all__ = ["KEPT_MS", "MAX_GROUPS", "OTHER", "Ledger", "Todo", "expire"]

KEPT_MS: Final = 100 * 86_400_000
"""Of the longest buckets: more than the longest period, a quarter. The others are kept as the roll-ups' are."""
MAX_GROUPS: Final = 200
"""Label sets of one objective that are counted apart."""
OTHER: Final = "other"
"""The value of each label for events of further sets."""
_REMEMBERED: Final = 50_000
_PIECE: Final = 5000
"""Rows that are counted afterwards in one transaction."""

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS objectives (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,   -- service and name
        fingerprint TEXT NOT NULL,   -- what decides the counts
        since_ms INTEGER,            -- the oldest event that was there to be counted
        steps INTEGER NOT NULL,      -- the last row of steps that is counted, but for those in todo
        calls INTEGER NOT NULL,
        todo TEXT NOT NULL           -- JSON: [table, after this row, up to this row], to be counted afterwards
    )""",
    """CREATE TABLE IF NOT EXISTS objective_groups (
        id INTEGER PRIMARY KEY,
        objective INTEGER NOT NULL,
        labels TEXT NOT NULL,        -- JSON object
        UNIQUE (objective, labels)
    )""",
    """CREATE TABLE IF NOT EXISTS objective_counts (
        grp INTEGER NOT NULL,
        tier INTEGER NOT NULL,       -- length of the bucket in s
        bucket_ms INTEGER NOT NULL,
        bad INTEGER NOT NULL,
        total INTEGER NOT NULL,
        PRIMARY KEY (grp, tier, bucket_ms)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS objective_alerts (
        objective TEXT NOT NULL,
        rule TEXT NOT NULL,          -- the tier's name, or absent, or canary
        labels TEXT NOT NULL,        -- JSON object
        state TEXT NOT NULL,         -- JSON object
        PRIMARY KEY (objective, rule, labels)
    ) WITHOUT ROWID""",
)
_ADD: Final = (
    "INSERT INTO objective_counts VALUES (?, ?, ?, ?, ?) ON CONFLICT (grp, tier, bucket_ms)"
    " DO UPDATE SET bad = bad + excluded.bad, total = total + excluded.total"
)


class _Counter(NamedTuple):
    """An objective that is counted."""

    id: int
    name: str
    judge: Judge
    load: Load


class Todo(NamedTuple):
    """Rows of a table that are yet to be counted for an objective."""

    table: str
    after: int
    up_to: int


_Plan = tuple[tuple[_Counter, int], ...]
_Counts = dict[tuple[int, int], list[int]]
"""Bad and all events, by group and bucket."""


class Ledger:
    """Counts for the objectives that are installed. Lives on the writer's thread, inside its transactions."""

    def __init__(self) -> None:
        self._counters: tuple[_Counter, ...] = ()
        self._plans: dict[tuple[int, str], _Plan] = {}
        self._call_plans: dict[tuple[str, str, str], _Plan] = {}
        self._groups: dict[tuple[int, str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._counters)

    def install(self, db: sqlite3.Connection, judges: Sequence[tuple[Objective, Judge]]) -> None:
        """Counts for these objectives from now on, and for no others.

        An objective that is new, or is counted in another way, loses its counts and gets those of all stored rows.
        """
        for statement in TABLES:
            db.execute(statement)
        ends = {table: _last(db, table) for table in ("steps", "calls")}
        self._drop_memory()
        self._counters = tuple(
            _Counter(_enter(db, objective.id, judge, ends), objective.id, judge, Load(db))
            for objective, judge in judges
        )

    def forget(self, db: sqlite3.Connection) -> None:
        """Drops what is remembered of rows, since some of them may not be there, after a rollback."""
        self._drop_memory()
        if self._counters:
            there = {}
            if _exists(db):
                there = {row[0]: (row[1], row[2]) for row in db.execute("SELECT id, name, fingerprint FROM objectives")}
            self._counters = tuple(
                counter._replace(load=Load(db))
                for counter in self._counters
                if there.get(counter.id) == (counter.name, counter.judge.fingerprint)
            )

    def _drop_memory(self) -> None:
        self._plans.clear()
        self._call_plans.clear()
        self._groups.clear()

    def count(
        self,
        db: sqlite3.Connection,
        steps: Iterable[tuple[StepRecord, int]],
        calls: Iterable[CallRecord],
        rows: tuple[int, int],
        now_ms: int,
    ) -> None:
        """Counts what the transaction stores: steps with their series, and calls. ``rows`` are the last of each table,
        which are the new marks.
        """
        counts: _Counts = {}
        for step, series in steps:
            key = series, semconv.index_label(step["step_index"])
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plan_of_step(db, key, dims_of(step))
            if plan:
                _count_step(plan, step, counts)
        for call in calls:
            plan = self._plan_of_call(db, call)
            if plan:
                _count_call(plan, call, counts)
        _add(db, counts, now_ms)
        ids = ", ".join(str(counter.id) for counter in self._counters)
        db.execute(f"UPDATE objectives SET steps = ?, calls = ? WHERE id IN ({ids})", rows)

    def _plan_of_step(self, db: sqlite3.Connection, key: tuple[int, str], dims: Dims) -> _Plan:
        if len(self._plans) >= _REMEMBERED:
            self._plans.clear()
        labels = orjson.loads(dims.labels) if dims.labels else {}
        plan = self._plans[key] = self._plan(db, True, dims, key[1], labels)
        return plan

    def _plan_of_call(self, db: sqlite3.Connection, call: CallRecord) -> _Plan:
        labels = label_json(call.labels) if call.labels else ""
        key = call.service, call.model or "", labels
        plan = self._call_plans.get(key)
        if plan is None:
            if len(self._call_plans) >= _REMEMBERED:
                self._call_plans.clear()
            dims = Dims(call.service, call.model or "", "", "", "", labels)
            plan = self._call_plans[key] = self._plan(db, False, dims, "", call.labels)
        return plan

    def _plan(self, db: sqlite3.Connection, steps: bool, dims: Dims, index: str, labels: dict[str, str]) -> _Plan:
        found = []
        for counter in self._counters:
            if counter.judge.on_steps == steps:
                group = counter.judge.group(dims, index, labels)
                if group is not None:
                    found.append((counter, self._group(db, counter, group)))
        return tuple(found)

    def _group(self, db: sqlite3.Connection, counter: _Counter, labels: dict[str, str]) -> int:
        text = label_json(labels)
        number = self._groups.get((counter.id, text))
        if number is None:
            number = self._groups[counter.id, text] = _group_row(db, counter.id, text)
        return number

    def work(self, db: sqlite3.Connection, now_ms: int) -> bool:
        """Counts a piece of what is to be counted afterwards; whether there was some."""
        for counter in self._counters:
            (text,) = db.execute("SELECT todo FROM objectives WHERE id = ?", (counter.id,)).fetchone()
            todo = [Todo(*item) for item in orjson.loads(text)]
            if not todo:
                continue
            first = todo[0]
            alone = Ledger()
            alone._counters = (counter._replace(load=Load(db)),)
            read = _read_steps if first.table == "steps" else _read_calls
            reached = read(db, alone, first, now_ms)
            rest = [] if reached is None else [first._replace(after=reached)]
            db.execute(
                "UPDATE objectives SET todo = ? WHERE id = ?",
                (orjson.dumps([list(one) for one in (*rest, *todo[1:])]).decode(), counter.id),
            )
            return True
        return False


def _exists(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'objectives'").fetchone() is not None


def _last(db: sqlite3.Connection, table: str) -> int:
    (last,) = db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(last)


def _enter(db: sqlite3.Connection, name: str, judge: Judge, ends: dict[str, int]) -> int:
    """The row of an objective, with what is to be counted afterwards."""
    row = db.execute("SELECT id, fingerprint, steps, calls, todo FROM objectives WHERE name = ?", (name,)).fetchone()
    if row is not None and row[1] == judge.fingerprint:
        number, _, steps, calls, text = row
        todo = orjson.loads(text)
        marks = {"steps": steps, "calls": calls}
    else:
        if row is not None:
            groups = "SELECT id FROM objective_groups WHERE objective = ?"
            db.execute(f"DELETE FROM objective_counts WHERE grp IN ({groups})", (row[0],))
            db.execute("DELETE FROM objective_groups WHERE objective = ?", (row[0],))
            db.execute("DELETE FROM objectives WHERE id = ?", (row[0],))
        table, time = ("steps", "ts_ms") if judge.on_steps else ("calls", "ended_ms")
        (since,) = db.execute(f"SELECT min({time}) FROM {table}").fetchone()
        number = db.execute(
            "INSERT INTO objectives (name, fingerprint, since_ms, steps, calls, todo) VALUES (?, ?, ?, 0, 0, '[]')",
            (name, judge.fingerprint, since),
        ).lastrowid
        todo, marks = [], {"steps": 0, "calls": 0}
    table = "steps" if judge.on_steps else "calls"
    if ends[table] > marks[table]:
        todo.append([table, marks[table], ends[table]])
    db.execute(
        "UPDATE objectives SET steps = ?, calls = ?, todo = ? WHERE id = ?",
        (ends["steps"], ends["calls"], orjson.dumps(todo).decode(), number),
    )
    return int(number or 0)


def _group_row(db: sqlite3.Connection, objective: int, labels: str) -> int:
    find = "SELECT id FROM objective_groups WHERE objective = ? AND labels = ?"
    row = db.execute(find, (objective, labels)).fetchone()
    if row is None:
        (known,) = db.execute("SELECT count(*) FROM objective_groups WHERE objective = ?", (objective,)).fetchone()
        if known >= MAX_GROUPS:
            labels = label_json(dict.fromkeys(orjson.loads(labels), OTHER))
        db.execute("INSERT OR IGNORE INTO objective_groups (objective, labels) VALUES (?, ?)", (objective, labels))
        row = db.execute(find, (objective, labels)).fetchone()
    return int(row[0])


def _count_step(plan: _Plan, step: StepFigures, counts: _Counts) -> None:
    bucket = step["ts_ms"] - step["ts_ms"] % BUCKET_MS
    for counter, group in plan:
        judge = counter.judge
        bound = judge.bound_at(counter.load.rate(group, bucket)) if judge.loads else judge.bound
        _note(counter, group, bucket, judge.step(step, bound), counts)


def _count_call(plan: _Plan, call: CallRecord, counts: _Counts) -> None:
    bucket = call.ended_ms - call.ended_ms % BUCKET_MS
    for counter, group in plan:
        judge = counter.judge
        bound = judge.bound_at(counter.load.rate(group, bucket)) if judge.loads else judge.bound
        _note(counter, group, bucket, judge.call(call, bound), counts)


def _note(counter: _Counter, group: int, bucket: int, bad: bool | None, counts: _Counts) -> None:
    if bad is None:
        return
    row = counts.get((group, bucket))
    if row is None:
        row = counts[group, bucket] = [0, 0]
    row[0] += bad
    row[1] += 1
    if counter.judge.loads:
        counter.load.add(group, bucket)


def _add(db: sqlite3.Connection, counts: _Counts, now_ms: int) -> None:
    sums: dict[tuple[int, int, int], list[int]] = {}
    for (group, bucket), (bad, total) in counts.items():
        if bucket > now_ms + AHEAD_MS:
            continue
        for tier in TIERS:
            kept = KEPT_MS if tier is TIERS[-1] else tier.kept_ms
            if bucket >= now_ms - kept:
                key = group, tier.bucket_ms // 1000, bucket - bucket % tier.bucket_ms
                row = sums.setdefault(key, [0, 0])
                row[0] += bad
                row[1] += total
    db.executemany(_ADD, [(*key, *row) for key, row in sums.items()])


def expire(db: sqlite3.Connection, now_ms: int) -> None:
    """Deletes buckets that are over their tier's time."""
    if not _exists(db):
        return
    for tier in TIERS:
        kept = KEPT_MS if tier is TIERS[-1] else tier.kept_ms
        db.execute(
            "DELETE FROM objective_counts WHERE grp IN (SELECT id FROM objective_groups) AND tier = ?"
            " AND bucket_ms < ?",
            (tier.bucket_ms // 1000, now_ms - kept - tier.bucket_ms),
        )


def _read_steps(db: sqlite3.Connection, ledger: Ledger, todo: Todo, now_ms: int) -> int | None:
    """Counts a piece of stored steps; the last row, or None when there are no more."""
    rows = db.execute(
        "SELECT steps.id, series, service, model, kind, tool, failed_check, labels, step_index, ts_ms, latency_us,"
        " latency_source, confidence, is_valid FROM steps JOIN series ON series.id = steps.series"
        " WHERE steps.id > ? AND steps.id <= ? ORDER BY steps.id LIMIT ?",
        (todo.after, todo.up_to, _PIECE),
    ).fetchall()
    counts: _Counts = {}
    for row in rows:
        _, series, *dims, index, ts_ms, latency_us, source, confidence, valid = tuple(row)
        step: StepFigures = {
            "step_index": index,
            "ts_ms": ts_ms,
            "latency_us": latency_us,
            "latency_source": source,
            "confidence": confidence,
            "is_valid": None if valid is None else bool(valid),
        }
        key = series, semconv.index_label(index)
        plan = ledger._plans.get(key)
        if plan is None:
            plan = ledger._plan_of_step(db, key, Dims(*dims))
        _count_step(plan, step, counts)
    _add(db, counts, now_ms)
    return int(rows[-1][0]) if len(rows) == _PIECE else None


def _read_calls(db: sqlite3.Connection, ledger: Ledger, todo: Todo, now_ms: int) -> int | None:
    rows = db.execute(
        "SELECT id, service, model, ended_ms, error_type, first_chunk_ms, labels, limit_used FROM calls"
        " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        (todo.after, todo.up_to, _PIECE),
    ).fetchall()
    counts: _Counts = {}
    for row in rows:
        call = _call_of(*tuple(row)[1:])
        _count_call(ledger._plan_of_call(db, call), call, counts)
    _add(db, counts, now_ms)
    return int(rows[-1][0]) if len(rows) == _PIECE else None


def _call_of(
    service: str,
    model: str | None,
    ended_ms: int,
    error: str | None,
    first_chunk_ms: int | None,
    labels: str | None,
    used: float | None,
) -> CallRecord:
    """A stored call, with what judging it needs."""
    nothing: Any = None
    return CallRecord(
        b"", b"", nothing, "", service, False, nothing, model, nothing, ended_ms, ended_ms, 0, 0, 0, 0, error, nothing,
        0, first_chunk_ms, nothing, orjson.loads(labels) if labels else {}, False, False, used,
    )  # fmt: skip
