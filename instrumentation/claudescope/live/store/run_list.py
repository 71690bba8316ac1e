"""Runs as records, and the table of them: filtered, searched, sorted, page by page."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from ..filters import StepFilter
from ..records import label_json
from .select import Cursor, Where, add_run_hints, add_step_filter
from .texts import add_text_search
from .traces import run_numbers

__all__ = ["RUNNING_MS", "SORTS", "STATUSES", "RunQuery", "find_runs", "run_record", "runs_by_id"]

RUNNING_MS: Final = 30_000
"""A run without an end counts as running for so long after its latest span came."""
SORTS: Final = {
    "started": "r.started_ms",
    "steps": "r.steps",
    "duration": "max(0, r.ended_ms - r.started_ms)",
    "tokens": "r.input_tokens + r.output_tokens",
    "cost": "coalesce(r.cost_usd, -1.0)",
    "worst": "r.worst_rank",
}
"""What a list can be sorted by; ties by the order in which runs came, an unknown cost below all known ones."""
STATUSES: Final = ("ok", "failed", "running")
_NEAR: Final = (500, 5000)
"""Runs at the beginning of a list that are looked at one by one, before the steps of all runs are read."""
_MAX_FOUND: Final = 10_000
_HEX: Final = re.compile("[0-9a-f]{4,32}")


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs, by when they started: from inclusive, to exclusive. ``where``: with a step that matches all of it,
    and that ended in the time of ``steps_from_ms`` and ``steps_to_ms`` where they are given.

    ``q`` is a run id, a trace id, at least 4 hex digits that one begins with, a label as ``KEY:VALUE``, or else a part
    of a step's captured text.
    """

    where: StepFilter = field(default_factory=StepFilter)
    q: str = ""
    run: str | None = None
    status: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    steps_from_ms: int | None = None
    steps_to_ms: int | None = None
    sort: str = "started"
    descending: bool = True
    cursor: Cursor | None = None
    limit: int = 100


def find_runs(db: sqlite3.Connection, query: RunQuery) -> dict[str, Any]:
    """A page of runs: ``{"items", "next"}``. ``sort`` and ``status`` are of ``SORTS`` and ``STATUSES``."""
    now = int(time.time() * 1000)
    key = SORTS[query.sort]
    way = "DESC" if query.descending else "ASC"
    tail = f" ORDER BY {key} {way}, r.id {way} LIMIT "
    runs = Where()
    runs.between("r.started_ms", query.from_ms, query.to_ms)
    runs.after(key, "r.id", query.cursor, query.descending)
    if query.run is not None:
        runs.add("r.run_id = ?", query.run)
    if query.status is not None:
        _add_status(runs, query.status, now)
    labelled = _add_search(db, runs, query.q.strip())
    filters = [wanted for wanted in (query.where, labelled) if wanted]
    ended = Where()
    ended.between("s.ts_ms", query.steps_from_ms, query.steps_to_ms)
    if ended:
        add_step_filter(ended, query.where)
        runs.add(f"r.id IN (SELECT s.run FROM steps AS s INDEXED BY steps_time WHERE {ended})", *ended.values)
    for wanted in filters:
        add_run_hints(runs, wanted)
    more = query.limit + 1
    sizes = _NEAR if query.sort == "started" else _NEAR[-1:]  # the others have no index: each time all are sorted
    numbers = _with_steps(db, runs, filters, tail, more, sizes) if filters else _first(db, runs, tail, more)
    rows = db.execute(
        f"SELECT r.*, {key} AS sort_key FROM runs AS r WHERE r.id IN (SELECT value FROM json_each(?)){tail}{more}",
        (orjson.dumps(numbers).decode(),),
    ).fetchall()
    following = None
    if len(rows) > query.limit:
        rows.pop()
        following = str(Cursor(rows[-1]["sort_key"], rows[-1]["id"]))
    return {"items": [run_record(row, now) for row in rows], "next": following}


def _first(db: sqlite3.Connection, runs: Where, tail: str, number: int) -> list[int]:
    """Only numbers: to sort whole rows takes several times as long."""
    return [row[0] for row in db.execute(f"SELECT r.id FROM runs AS r WHERE {runs}{tail}{number}", runs.values)]


def _with_steps(
    db: sqlite3.Connection, runs: Where, filters: list[StepFilter], tail: str, more: int, sizes: tuple[int, ...]
) -> list[int]:
    """The first ``more`` runs that have a step for each filter: among the first so many of all runs, or of all."""
    one, all_ = Where(), Where()
    for wanted in filters:
        steps = Where()
        add_step_filter(steps, wanted)
        found = f"FROM steps AS s INDEXED BY steps_run WHERE {steps}"
        bare = _without_steps(wanted)
        also = f"SELECT b.id FROM runs AS b WHERE {bare}" if bare else "SELECT NULL WHERE 0"
        values = (*steps.values, *bare.values)
        one.add(f"(EXISTS (SELECT 1 {found} AND s.run = o.value) OR o.value IN ({also}))", *values)
        all_.add(f"(r.id IN (SELECT s.run {found}) OR r.id IN ({also}))", *values)
    for size in sizes:
        near = _first(db, runs, tail, size)
        sql = f"SELECT o.value FROM json_each(?) AS o WHERE {one} LIMIT {more}"
        numbers = [row[0] for row in db.execute(sql, (orjson.dumps(near).decode(), *one.values))]
        if len(numbers) == more or len(near) < size:
            return numbers
    sql = f"SELECT r.id FROM runs AS r WHERE {all_} AND {runs}{tail}{more}"
    return [row[0] for row in db.execute(sql, (*all_.values, *runs.values))]


def _without_steps(wanted: StepFilter) -> Where:
    """What runs without any step must be for a filter of service and model only: of a call that the API refused there
    is nothing else to ask about. Empty for another filter, which they cannot satisfy.
    """
    where = Where()
    if wanted == StepFilter(service=wanted.service, model=wanted.model):
        where.add("b.steps = 0")
        where.among("b.service", wanted.service)
        where.among("b.model", wanted.model)
    return where


def _add_status(where: Where, status: str, now: int) -> None:
    if status == "running":
        where.add("r.final = 0 AND r.seen_ms > ?", now - RUNNING_MS)
    else:
        where.add(f"r.failed = {int(status == 'failed')} AND NOT (r.final = 0 AND r.seen_ms > ?)", now - RUNNING_MS)


def _add_search(db: sqlite3.Connection, where: Where, q: str) -> StepFilter:
    """Adds what a search says of runs; what it says of their steps is returned."""
    if not q:
        return StepFilter()
    if db.execute("SELECT 1 FROM runs WHERE run_id = ?", (q,)).fetchone():
        where.add("r.run_id = ?", q)
        return StepFilter()
    start = q.lower()
    if _HEX.fullmatch(start):
        begin, end = bytes.fromhex(start.ljust(32, "0")), bytes.fromhex(start.ljust(32, "f"))
        packed = db.execute("SELECT runs FROM spans WHERE trace_id BETWEEN ? AND ? LIMIT ?", (begin, end, _MAX_FOUND))
        numbers = run_numbers(row[0] for row in packed)
        found = db.execute("SELECT id FROM runs WHERE run_id BETWEEN ? AND ? LIMIT ?", (start, start + "g", _MAX_FOUND))
        numbers += [row[0] for row in found]
        if numbers:
            where.add("r.id IN (SELECT value FROM json_each(?))", orjson.dumps(numbers).decode())
            return StepFilter()
    name, colon, value = q.partition(":")
    if colon:
        spot = label_json({name: value})[1:-1]
        sql = "SELECT 1 FROM series WHERE instr(labels, ?) AND label_of(labels, ?) = ? LIMIT 1"
        if db.execute(sql, (spot, name, value)).fetchone():
            return StepFilter(labels=frozenset({(name, value)}))
    add_text_search(db, where, q, _MAX_FOUND)
    return StepFilter()


def runs_by_id(db: sqlite3.Connection, run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The runs of these ids that are there."""
    now = int(time.time() * 1000)
    rows = db.execute(f"SELECT * FROM runs WHERE run_id IN ({', '.join('?' * len(run_ids))})", list(run_ids))
    return [run_record(row, now) for row in rows]


def run_record(row: sqlite3.Row, now_ms: int) -> dict[str, Any]:
    """The record of a run from its row. ``worst``: invalid first, else lowest confidence, else slowest."""
    if not row["final"] and now_ms - row["seen_ms"] < RUNNING_MS:
        status = "running"
    else:
        status = "failed" if row["failed"] else "ok"
    tokens = bool(row["input_tokens"] or row["output_tokens"])
    worst = row["worst_span"]
    return {
        "run_id": row["run_id"],
        "trace_id": row["trace_id"].hex(),
        "service": row["service"],
        "model": row["model"],
        "name": row["name"],
        "started_ms": row["started_ms"],
        "ended_ms": row["ended_ms"],
        "duration_ms": max(0, row["ended_ms"] - row["started_ms"]),
        "seen_ms": row["seen_ms"],
        "steps": row["steps"],
        "calls": row["calls"],
        "invalid": row["invalid"],
        "min_confidence": row["min_confidence"],
        "max_latency_us": row["max_latency_us"],
        "worst": {"step_index": row["worst_index"], "span_id": worst.hex()} if worst else None,
        "input_tokens": row["input_tokens"] if tokens else None,
        "output_tokens": row["output_tokens"] if tokens else None,
        "cost_usd": row["cost_usd"],
        "unpriced_calls": row["unpriced"],
        "labels": orjson.loads(row["labels"]) if row["labels"] else {},
        "status": status,
    }
