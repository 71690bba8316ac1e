"""What a store holds, line by line: its spans and log records as OTLP/JSON, or the records of its steps.

It reads the files, also while a server writes them, in short reads: a long one would keep the server's log of changes
from being taken into the file. Memory is bounded by one request as it was stored (16 MiB).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

from ... import semconv
from ...errors import UsageError
from .encoding import encode
from .inventory import open_store
from .step_list import step_record

__all__ = ["Export", "Selection"]

_ROWS: Final = 64
"""Rows of one read."""
_STEPS: Final = 1000
_LINE: Final = 2**18
"""Bytes of a line, about: the collector's file receiver takes 1 MiB. A span that is larger has a line of its own."""
_MAX_SOURCES: Final = 1024
_EMPTY: Final = b"{}"
_STEP: Final = (
    "SELECT s.*, r.run_id, d.service, d.model, d.kind, d.tool, d.labels FROM steps AS s"
    " JOIN runs AS r ON r.id = s.run JOIN series AS d ON d.id = s.series"
)


class Selection(NamedTuple):
    """Which spans: those of one run's traces, and those that ended from (inclusive) to (exclusive), in ms."""

    run_id: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def has(self, ended_ms: int) -> bool:
        """Whether something that ended then is in the range."""
        return (self.from_ms is None or ended_ms >= self.from_ms) and (self.to_ms is None or ended_ms < self.to_ms)


class _Line:
    """A line that grows item by item; items that follow each other share their source."""

    def __init__(self, resources: str, scopes: str, items: str) -> None:
        self._head = f'{{"{resources}":['.encode()
        self._resource = b'{"resource":%s,' + f'"{scopes}":[{{"scope":'.encode() + b"%s," + f'"{items}":['.encode()
        self._parts: list[bytes] = []
        self._source: object = None
        self._size = 0

    def add(self, source: object, resource: bytes, scope: bytes, item: bytes) -> bytes | None:
        """Adds an item; gives the line before, when this one does not go into it."""
        full = self.take() if self._size + len(item) > _LINE else None
        if self._parts and source == self._source:
            before = b","
        else:
            before = (b"]}]}," if self._parts else self._head) + self._resource % (resource, scope)
        self._source = source
        self._parts += [before, item]
        self._size += len(before) + len(item)
        return full

    def take(self) -> bytes | None:
        """The line so far, which is begun anew."""
        if not self._parts:
            return None
        line = b"".join(self._parts) + b"]}]}]}\n"
        self._parts, self._source, self._size = [], None, 0
        return line


class Export:
    """One export. ``spans``, ``events`` and ``steps`` count what was given so far; ``share`` is 0 to 1.

    Raises UsageError when there is no store that can be read, or no such run in it.
    """

    def __init__(self, folder: Path, selection: Selection) -> None:
        self._db = open_store(folder)
        self._selection = selection
        self.spans = self.events = self.steps = 0
        self.share = 0.0
        self._sources: dict[int, tuple[bytes, bytes]] = {}
        self._run: int | None = None
        if selection.run_id is not None:
            row = self._db.execute("SELECT id FROM runs WHERE run_id = ?", (selection.run_id.lower(),)).fetchone()
            if row is None:
                self._db.close()
                raise UsageError(f"There is no run {selection.run_id} in {folder}.", "Its id is in the page's address.")
            self._run = row["id"]

    def close(self) -> None:
        """Closes the store."""
        self._db.close()

    def otlp(self) -> Iterator[bytes]:
        """Lines of ``ExportTraceServiceRequest``, then lines of ``ExportLogsServiceRequest``."""
        line = _Line("resourceSpans", "scopeSpans", "spans")
        for row in self._span_rows():
            resource, scope = self._source(row["source"])
            for span in ScopeSpans.FromString(row["data"]).spans:
                if self._selection.has(span.end_time_unix_nano // 1_000_000):
                    self.spans += 1
                    if full := line.add(row["source"], resource, scope, encode(span)):
                        yield full
        if full := line.take():
            yield full
        line = _Line("resourceLogs", "scopeLogs", "logRecords")
        for row in self._event_rows():
            self.events += 1
            resource = _resource_of(row["service"])
            if full := line.add(row["service"], resource, _EMPTY, encode(LogRecord.FromString(row["data"]))):
                yield full
        if full := line.take():
            yield full
        self.share = 1.0

    def jsonl(self) -> Iterator[bytes]:
        """The record of a step a line, in the order in which they came."""
        where, values = "", []
        if self._run is not None:
            where, values = " AND s.run = ?", [self._run]
        if self._selection.from_ms is not None:
            where, values = where + " AND s.ts_ms >= ?", [*values, self._selection.from_ms]
        if self._selection.to_ms is not None:
            where, values = where + " AND s.ts_ms < ?", [*values, self._selection.to_ms]
        sql = f"{_STEP} WHERE s.id > ? AND s.id <= ?{where} ORDER BY s.id LIMIT {_STEPS}"
        first, last = self._ids("steps")
        after = first - 1
        while True:
            rows = self._db.execute(sql, (after, last, *values)).fetchall()
            for row in rows:
                self.steps += 1
                yield orjson.dumps(step_record(row)) + b"\n"
            if len(rows) < _STEPS:
                break
            after = rows[-1]["id"]
            self.share = _share(after, first, last)
        self.share = 1.0

    def _span_rows(self) -> Iterator[sqlite3.Row]:
        if self._run is not None:
            traces = self._traces()
            for number, trace in enumerate(traces):
                self.share = number / len(traces)
                yield from self._pages("trace_id = ? AND ended_ms >= ?", (trace, self._selection.from_ms or 0))
        else:
            yield from self._pages("ended_ms >= ?", (self._selection.from_ms or 0,), *self._ids("spans"))

    def _pages(
        self, where: str, values: tuple[Any, ...], first: int | None = None, last: int = 2**62
    ) -> Iterator[sqlite3.Row]:
        sql = f"SELECT id, source, data FROM spans WHERE {where} AND id > ? AND id <= ? ORDER BY id LIMIT {_ROWS}"
        after, number = (first or 0) - 1, _ROWS
        while number == _ROWS:
            number = 0
            # One after the other, since each may have as many bytes as a request; in the order in which they came,
            # on which it depends which run a call is of.
            with closing(self._db.execute(sql, (*values, after, last))) as rows:
                for row in rows:
                    number += 1
                    after = row["id"]
                    yield row
            if first is not None:
                self.share = _share(after, first, last)

    def _event_rows(self) -> Iterator[sqlite3.Row]:
        low, high = self._selection.from_ms or 0, self._selection.to_ms if self._selection.to_ms is not None else 2**62
        if self._run is not None:
            for trace in self._traces():
                yield from self._db.execute(
                    "SELECT service, data FROM events WHERE trace_id = ? AND ts_ms >= ? AND ts_ms < ?"
                    " ORDER BY ts_ms, digest",
                    (trace, low, high),
                )
            return
        sql = (
            "SELECT ts_ms, digest, service, data FROM events WHERE (ts_ms, digest) > (?, ?) AND ts_ms < ?"
            f" ORDER BY ts_ms, digest LIMIT {_STEPS}"
        )
        after = (low, b"")
        while rows := self._db.execute(sql, (*after, high)).fetchall():
            yield from rows
            after = (rows[-1]["ts_ms"], rows[-1]["digest"])

    def _traces(self) -> list[bytes]:
        """The traces of the run, by when it came into them."""
        rows = self._db.execute(
            "SELECT trace_id FROM (SELECT trace_id, id FROM steps WHERE run = ?1 UNION ALL"
            " SELECT trace_id, id FROM calls WHERE run = ?1 UNION ALL"
            " SELECT trace_id, 0 FROM runs WHERE id = ?1) GROUP BY trace_id ORDER BY min(id)",
            (self._run,),
        )
        return [row["trace_id"] for row in rows]

    def _ids(self, table: str) -> tuple[int, int]:
        row = self._db.execute(f"SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM {table}").fetchone()
        return row[0], row[1]

    def _source(self, number: int) -> tuple[bytes, bytes]:
        found = self._sources.get(number)
        if found is None:
            row = self._db.execute("SELECT resource, scope FROM sources WHERE id = ?", (number,)).fetchone()
            found = (
                encode(Resource.FromString(row["resource"])),
                encode(InstrumentationScope.FromString(row["scope"])),
            )
            if len(self._sources) >= _MAX_SOURCES:
                self._sources.clear()
            self._sources[number] = found
        return found


def _share(at: int, first: int, last: int) -> float:
    return (at - first + 1) / max(1, last - first + 1)


def _resource_of(service: str) -> bytes:
    """Of a log record only the service of its sender is kept."""
    attribute = {"key": semconv.SERVICE_NAME, "value": {"stringValue": service}}
    return orjson.dumps({"attributes": [attribute]})
