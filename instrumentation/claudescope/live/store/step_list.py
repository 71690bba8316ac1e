"""Steps as records, and lists of them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from ..filters import StepFilter
from ..records import StepRecord
from .select import Cursor, Where, add_step_filter
from .traces import runs_of_trace

__all__ = ["StepQuery", "find_steps", "step_record", "steps_of_run"]

_NEAR: Final = 5000
"""Steps at the beginning of a list that are looked at one by one before the whole index is read."""
_FROM: Final = (
    "SELECT s.*, x.service, x.model, x.kind, x.tool, x.labels, r.run_id FROM steps AS s INDEXED BY {}"
    " CROSS JOIN series AS x ON x.id = s.series CROSS JOIN runs AS r ON r.id = s.run"
)


@dataclass(frozen=True, slots=True)
class StepQuery:
    """Which steps, by when they ended: from inclusive, to exclusive, newest first unless not ``descending``."""

    where: StepFilter = field(default_factory=StepFilter)
    run: str | None = None
    trace: bytes | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    descending: bool = True
    cursor: Cursor | None = None
    limit: int = 100


def find_steps(db: sqlite3.Connection, query: StepQuery) -> dict[str, Any]:
    """A page of steps: ``{"items", "next"}``."""
    where = Where()
    where.between("s.ts_ms", query.from_ms, query.to_ms)
    where.after("s.ts_ms", "s.id", query.cursor, query.descending)
    way = "DESC" if query.descending else "ASC"
    tail = f" ORDER BY s.ts_ms {way}, s.id {way} LIMIT {query.limit + 1}"
    edge = None
    if query.run is not None:
        where.add("s.run = (SELECT id FROM runs WHERE run_id = ?)", query.run)
    if query.trace is not None:
        where.add("s.trace_id = ?", query.trace)
        where.add("s.run IN (SELECT value FROM json_each(?))", orjson.dumps(runs_of_trace(db, query.trace)).decode())
    if query.run is None and query.trace is None and query.where:
        edge = db.execute(
            f"SELECT s.ts_ms, s.id FROM steps AS s INDEXED BY steps_time WHERE {where}"
            f" ORDER BY s.ts_ms {way}, s.id {way} LIMIT 1 OFFSET {_NEAR}",
            where.values,
        ).fetchone()
    add_step_filter(where, query.where)
    index = "steps_time" if query.run is None and query.trace is None else "steps_run"
    if edge is None:
        return _page(db.execute(f"{_FROM.format(index)} WHERE {where}{tail}", where.values).fetchall(), query.limit)
    sign = ">=" if query.descending else "<="
    near = f"{_FROM.format(index)} WHERE (s.ts_ms, s.id) {sign} (?, ?) AND {where}{tail}"
    rows = db.execute(near, [*edge, *where.values]).fetchall()
    if len(rows) <= query.limit:  # they are rare: found sooner in the index that has all that filters ask for
        found = f"SELECT s.id FROM steps AS s INDEXED BY steps_run WHERE {where}{tail}"
        whole = _FROM.replace(" INDEXED BY {}", "")
        rows = db.execute(f"{whole} WHERE s.id IN ({found}){tail}", where.values).fetchall()
    return _page(rows, query.limit)


def _page(rows: list[sqlite3.Row], limit: int) -> dict[str, Any]:
    following = str(Cursor(rows[limit - 1]["ts_ms"], rows[limit - 1]["id"])) if len(rows) > limit else None
    return {"items": [step_record(row) for row in rows[:limit]], "next": following}


def steps_of_run(db: sqlite3.Connection, run: int, limit: int) -> list[StepRecord]:
    """The steps of the run of that number, by step number and time."""
    rows = db.execute(
        f"{_FROM.format('steps_run')} WHERE s.run = ? ORDER BY s.step_index, s.ts_ms, s.id LIMIT ?", (run, limit)
    )
    return [step_record(row) for row in rows]


def _flag(value: int | None) -> bool | None:
    """A bool from its column."""
    return None if value is None else bool(value)


def step_record(row: sqlite3.Row) -> StepRecord:
    """The record of a step from its row with those of its series and run."""
    return {
        "trace_id": row["trace_id"].hex(),
        "span_id": row["span_id"].hex(),
        "call_span_id": row["call_span_id"].hex() if row["call_span_id"] else None,
        "run_id": row["run_id"],
        "step_index": row["step_index"],
        "kind": row["kind"],
        "name": row["name"],
        "service": row["service"],
        "model": row["model"] or None,
        "tool": row["tool"] or None,
        "ts_ms": row["ts_ms"],
        "latency_us": row["latency_us"],
        "latency_source": row["latency_source"],
        "confidence": row["confidence"],
        "confidence_method": row["confidence_method"],
        "calibrated": _flag(row["calibrated"]),
        "is_valid": _flag(row["is_valid"]),
        "reasons": orjson.loads(row["reasons"]) if row["reasons"] else [],
        "labels": orjson.loads(row["labels"]) if row["labels"] else {},
    }
