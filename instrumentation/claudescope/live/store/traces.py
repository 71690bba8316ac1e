"""Spans and log events of traces, as they were sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from ..attributes import plain, plain_attributes

__all__ = ["events_of", "find_trace", "run_numbers", "runs_of_trace", "span_record", "spans_of"]

MAX_SPANS: Final = 10_000
MAX_BYTES: Final = 64 * 2**20
"""Of the spans as stored; what is over is left out of one answer."""
MAX_EVENTS: Final = 1000


def run_numbers(packed: Iterable[bytes | None]) -> list[int]:
    """The numbers in some values of the column ``spans.runs``."""
    found: set[int] = set()
    for value in packed:
        for at in range(0, len(value or b""), 8):
            found.add(int.from_bytes((value or b"")[at : at + 8], "little"))
    return sorted(found)


def runs_of_trace(db: sqlite3.Connection, trace_id: bytes) -> list[int]:
    """The numbers of the runs that have spans in a trace."""
    return run_numbers(row[0] for row in db.execute("SELECT runs FROM spans WHERE trace_id = ?", (trace_id,)))


def find_trace(db: sqlite3.Connection, trace_id: bytes) -> dict[str, Any] | None:
    """All of a trace: ``{"trace_id", "spans", "events", "truncated"}``, or None where there is nothing of it."""
    spans, cut = spans_of(db, [trace_id])
    events = events_of(db, [trace_id])
    if not spans and not events:
        return None
    for record in (*spans, *events):
        del record["trace_id"]
    return {"trace_id": trace_id.hex(), "spans": spans, "events": events, "truncated": cut}


def spans_of(db: sqlite3.Connection, traces: Iterable[bytes]) -> tuple[list[dict[str, Any]], bool]:
    """The spans of some traces by start, each with its ``trace_id``; and whether some were left out."""
    spans: list[dict[str, Any]] = []
    size = 0
    for trace_id in traces:
        chunks = db.execute(
            "SELECT data, resource, scope FROM spans JOIN sources ON sources.id = spans.source"
            " WHERE trace_id = ? ORDER BY spans.id",
            (trace_id,),
        )
        for row in chunks:
            size += len(row["data"])
            if size > MAX_BYTES and spans:
                return _sorted(spans), True
            resource = plain_attributes(Resource.FromString(row["resource"]).attributes)
            scope = InstrumentationScope.FromString(row["scope"]).name
            for span in ScopeSpans.FromString(row["data"]).spans:
                if len(spans) >= MAX_SPANS:
                    return _sorted(spans), True
                spans.append({"trace_id": trace_id.hex(), **span_record(span, resource, scope)})
    return _sorted(spans), False


def _sorted(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(spans, key=lambda span: int(span["start_us"]))


def events_of(db: sqlite3.Connection, traces: Iterable[bytes]) -> list[dict[str, Any]]:
    """The log events of some traces, each with its ``trace_id``; ``MAX_EVENTS`` at most."""
    events: list[dict[str, Any]] = []
    for trace_id in traces:
        room = MAX_EVENTS - len(events)
        rows = db.execute("SELECT * FROM events WHERE trace_id = ? ORDER BY ts_ms LIMIT ?", (trace_id, room))
        events += [{"trace_id": trace_id.hex(), **_event_record(row)} for row in rows]
    return events


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
