"""One run with all that is known of it."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, Final

from .run_list import run_record
from .schema import CALL_COLUMNS
from .step_list import steps_of_run
from .traces import MAX_EVENTS, events_of, spans_of

__all__ = ["find_run"]

MAX_STEPS: Final = 10_000
MAX_CALLS: Final = 2000
MAX_TRACES: Final = 200
_FIGURES: Final = CALL_COLUMNS[4:-2]
"""What follows the ids, without what only objectives ask for."""


def find_run(db: sqlite3.Connection, run_id: str) -> dict[str, Any] | None:
    """``{"run", "steps", "calls", "traces", "spans", "events", "truncated"}``, or None where there is no such run.

    Each list is bounded; ``truncated`` says that something was left out.
    """
    row = db.execute("SELECT * FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return None
    number = row["id"]
    steps = steps_of_run(db, number, MAX_STEPS + 1)
    calls = db.execute(
        "SELECT * FROM calls WHERE run = ? ORDER BY started_ms, id LIMIT ?", (number, MAX_CALLS + 1)
    ).fetchall()
    traces = _traces(db, number)
    spans, cut = spans_of(db, traces[:MAX_TRACES])
    events = events_of(db, traces[:MAX_TRACES])
    cut = cut or len(steps) > MAX_STEPS or len(calls) > MAX_CALLS or len(traces) > MAX_TRACES
    return {
        "run": run_record(row, int(time.time() * 1000)),
        "steps": steps[:MAX_STEPS],
        "calls": [_call_record(call) for call in calls[:MAX_CALLS]],
        "traces": [trace.hex() for trace in traces[:MAX_TRACES]],
        "spans": spans,
        "events": events,
        "truncated": cut or len(events) >= MAX_EVENTS,
    }


def _traces(db: sqlite3.Connection, run: int) -> list[bytes]:
    """The run's traces, the first one first."""
    sql = (
        "SELECT trace_id FROM (SELECT trace_id, ts_ms AS at FROM steps INDEXED BY steps_run WHERE run = ?"
        " UNION ALL SELECT trace_id, ended_ms FROM calls INDEXED BY calls_run WHERE run = ?"
        " UNION ALL SELECT trace_id, started_ms FROM runs WHERE id = ?)"  # a root without a call has neither
        " GROUP BY trace_id ORDER BY min(at), trace_id LIMIT ?"
    )
    return [row[0] for row in db.execute(sql, (run, run, run, MAX_TRACES + 1))]


def _call_record(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "trace_id": row["trace_id"].hex(),
        "span_id": row["span_id"].hex(),
        "parent_span_id": row["parent_id"].hex() if row["parent_id"] else None,
        **{name: row[name] for name in _FIGURES},
    }
