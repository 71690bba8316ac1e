"""Questions to the store, on threads of their own with connections that only read."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from ..attributes import plain, plain_attributes
from ..records import StepFigures, StepRecord
from .schema import STEP_COLUMNS, connect_reader

__all__ = ["RUNNING_MS", "Page", "Reader", "Select", "run_record", "span_record", "step_record"]

T = TypeVar("T")
Page = dict[str, Any]

RUNNING_MS: Final = 30_000
"""A run without an end counts as running for so long after its latest span came."""
_MAX_TRACE_SPANS: Final = 10_000
_MAX_TRACE_BYTES: Final = 64 * 2**20
"""Of the spans as stored; what is over is left out of one answer."""
_FIGURES: Final = ("step_index", "ts_ms", "latency_us", "latency_source", "confidence", "is_valid")
_STEP_SELECT: Final = ", ".join(f"s.{column}" for column in STEP_COLUMNS)


class Select:
    """Conditions and their values, and the cursor's order over (time, id)."""

    def __init__(self, time_column: str, descending: bool = True) -> None:
        self.column = time_column
        self.descending = descending
        self.conditions: list[str] = []
        self.values: list[Any] = []

    def where(self, condition: str, *values: Any) -> None:
        """Adds a condition with a mark for each value."""
        self.conditions.append(condition)
        self.values += values

    def between(self, from_ms: int | None, to_ms: int | None) -> None:
        """From inclusive, to exclusive."""
        if from_ms is not None:
            self.where(f"{self.column} >= ?", from_ms)
        if to_ms is not None:
            self.where(f"{self.column} < ?", to_ms)

    def after(self, cursor: tuple[int, int] | None, id_column: str) -> None:
        """Only rows after a cursor."""
        if cursor is not None:
            self.where(f"({self.column}, {id_column}) {'<' if self.descending else '>'} (?, ?)", *cursor)

    def tail(self, id_column: str, limit: int) -> str:
        """WHERE, ORDER BY and LIMIT; one row more than asked, which says whether there is a next page."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        order = "DESC" if self.descending else "ASC"
        return f"{where} ORDER BY {self.column} {order}, {id_column} {order} LIMIT {limit + 1}"


class Reader:
    """Two threads that read. Methods are coroutines; ``close`` waits for what runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(2, "claudescope-reader")

    def close(self) -> None:
        """Ends the threads and closes their connections."""
        self._pool.shutdown()
        for db in self._connections:
            db.close()

    def _db(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = connect_reader(self._folder)
            self._connections.append(db)
        return db

    async def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: question(self._db()))

    async def steps(self, select: Select, limit: int, by_run: bool) -> Page:
        """Steps as ``{"items", "next"}``; ``by_run``: a condition names one run."""
        index = "steps_run" if by_run else "steps_time"
        sql = (
            f"SELECT s.id, r.run_id, {_STEP_SELECT} FROM steps AS s INDEXED BY {index}"
            " JOIN runs AS r ON r.id = s.run" + select.tail("s.id", limit)
        )

        def question(db: sqlite3.Connection) -> Page:
            rows = db.execute(sql, select.values).fetchall()
            return _page(rows, limit, "ts_ms", step_record)

        return await self._ask(question)

    async def runs(self, select: Select, limit: int) -> Page:
        """Runs as ``{"items", "next"}``."""
        sql = "SELECT * FROM runs" + select.tail("id", limit)
        now = int(time.time() * 1000)

        def question(db: sqlite3.Connection) -> Page:
            rows = db.execute(sql, select.values).fetchall()
            return _page(rows, limit, "started_ms", lambda row: run_record(row, now))

        return await self._ask(question)

    async def runs_by_id(self, run_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The runs of these ids that are there."""
        marks = ", ".join("?" * len(run_ids))
        now = int(time.time() * 1000)

        def question(db: sqlite3.Connection) -> list[dict[str, Any]]:
            rows = db.execute(f"SELECT * FROM runs WHERE run_id IN ({marks})", list(run_ids))
            return [run_record(row, now) for row in rows]

        return await self._ask(question)

    async def trace(self, trace_id: bytes) -> dict[str, Any] | None:
        """All spans and log events of a trace, or None."""
        return await self._ask(lambda db: _trace(db, trace_id))

    async def totals(self, up_to: int) -> list[tuple[bool | None, int]]:
        """Steps with an id up to ``up_to``, counted by verdict."""
        sql = "SELECT is_valid, count(*) FROM steps WHERE id <= ? GROUP BY is_valid"
        rows = await self._ask(lambda db: db.execute(sql, (up_to,)).fetchall())
        return [(None if valid is None else bool(valid), number) for valid, number in rows]

    async def recent(self, from_ms: int, before: tuple[int, int], limit: int) -> list[tuple[int, StepFigures]]:
        """Ids and figures of stored steps since ``from_ms``, newest first, before a place: for the replay at start."""
        sql = (
            f"SELECT id, {', '.join(_FIGURES)} FROM steps INDEXED BY steps_time"
            " WHERE ts_ms >= ? AND (ts_ms, id) < (?, ?) ORDER BY ts_ms DESC, id DESC LIMIT ?"
        )

        def question(db: sqlite3.Connection) -> list[tuple[int, StepFigures]]:
            cursor = db.cursor()
            cursor.row_factory = None
            return [
                (
                    row[0],
                    {
                        "step_index": row[1],
                        "ts_ms": row[2],
                        "latency_us": row[3],
                        "latency_source": row[4],
                        "confidence": row[5],
                        "is_valid": _flag(row[6]),
                    },
                )
                for row in cursor.execute(sql, (from_ms, *before, limit)).fetchall()
            ]

        return await self._ask(question)


def _page(rows: list[sqlite3.Row], limit: int, time_column: str, record: Callable[[sqlite3.Row], Any]) -> Page:
    more = len(rows) > limit
    rows = rows[:limit]
    following = f"{rows[-1][time_column]}.{rows[-1]['id']}" if more else None
    return {"items": [record(row) for row in rows], "next": following}


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def step_record(row: sqlite3.Row) -> StepRecord:
    """The record of a step from its row."""
    return {
        "trace_id": row["trace_id"].hex(),
        "span_id": row["span_id"].hex(),
        "call_span_id": row["call_span_id"].hex() if row["call_span_id"] else None,
        "run_id": row["run_id"],
        "step_index": row["step_index"],
        "kind": row["kind"],
        "name": row["name"],
        "service": row["service"],
        "model": row["model"],
        "tool": row["tool"],
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
        "started_ms": row["started_ms"],
        "ended_ms": row["ended_ms"],
        "duration_ms": max(0, row["ended_ms"] - row["started_ms"]),
        "seen_ms": row["seen_ms"],
        "steps": row["steps"],
        "calls": row["calls"],
        "invalid": row["invalid"],
        "min_confidence": row["min_confidence"],
        "worst": {"step_index": row["worst_index"], "span_id": worst.hex()} if worst else None,
        "input_tokens": row["input_tokens"] if tokens else None,
        "output_tokens": row["output_tokens"] if tokens else None,
        "status": status,
    }


def _trace(db: sqlite3.Connection, trace_id: bytes) -> dict[str, Any] | None:
    chunks = db.execute(
        "SELECT data, resource, scope FROM spans JOIN sources ON sources.id = spans.source"
        " WHERE trace_id = ? ORDER BY spans.id",
        (trace_id,),
    )
    spans: list[dict[str, Any]] = []
    truncated = False
    size = 0
    for row in chunks:
        size += len(row["data"])
        if size > _MAX_TRACE_BYTES and spans:
            truncated = True
        if truncated:
            break
        resource = plain_attributes(Resource.FromString(row["resource"]).attributes)
        scope = InstrumentationScope.FromString(row["scope"]).name
        for span in ScopeSpans.FromString(row["data"]).spans:
            if len(spans) >= _MAX_TRACE_SPANS:
                truncated = True
                break
            spans.append(span_record(span, resource, scope))
    logs = db.execute("SELECT * FROM events WHERE trace_id = ? ORDER BY ts_ms LIMIT 1000", (trace_id,)).fetchall()
    if not spans and not logs:
        return None
    spans.sort(key=lambda span: int(span["start_us"]))
    return {
        "trace_id": trace_id.hex(),
        "spans": spans,
        "events": [_event_record(row) for row in logs],
        "truncated": truncated,
    }


def span_record(span: Span, resource: dict[str, Any], scope: str) -> dict[str, Any]:
    """A span as the API gives it; times are microseconds since the epoch."""
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    return {
        "span_id": span.span_id.hex(),
        "parent_span_id": span.parent_span_id.hex() or None,
        "name": span.name,
        "kind": Span.SpanKind.Name(span.kind) if span.kind in Span.SpanKind.values() else str(span.kind),
        "start_us": start // 1000,
        "end_us": end // 1000,
        "duration_us": max(0, end - start) // 1000,
        "status": {0: "unset", 1: "ok", 2: "error"}.get(span.status.code, "unset"),
        "status_message": span.status.message or None,
        "scope": scope,
        "resource": resource,
        "attributes": plain_attributes(span.attributes),
        "events": [
            {
                "name": event.name,
                "ts_us": event.time_unix_nano // 1000,
                "attributes": plain_attributes(event.attributes),
            }
            for event in span.events
        ],
        "links": [
            {
                "trace_id": link.trace_id.hex(),
                "span_id": link.span_id.hex(),
                "attributes": plain_attributes(link.attributes),
            }
            for link in span.links
        ],
    }


def _event_record(row: sqlite3.Row) -> dict[str, Any]:
    record = LogRecord.FromString(row["data"])
    return {
        "span_id": row["span_id"].hex() or None,
        "ts_ms": row["ts_ms"],
        "name": row["name"],
        "service": row["service"],
        "severity": record.severity_text or None,
        "body": plain(record.body),
        "attributes": plain_attributes(record.attributes),
    }
