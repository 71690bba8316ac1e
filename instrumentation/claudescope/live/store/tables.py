"""How a group of requests becomes rows. Lives on the writer's thread.

A span counts once: the first that came with its trace and span id is kept, later ones are ignored, so a batch that an
exporter sends again changes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from ..records import Source, StepRecord, StoredSpan
from .jobs import Job, Stored
from .runs import COLUMNS as RUN_COLUMNS
from .runs import MERGE, RunChanges, RunLinks
from .schema import STEP_COLUMNS

__all__ = ["Tables"]

_KNOWN_SPANS: Final = 32_768
_KNOWN_RUNS: Final = 16_384
_KNOWN_SOURCES: Final = 1024
_MAX_KNOWN_SOURCE: Final = 16_384
"""Bytes of a source that is remembered; a larger one is looked up each time."""
_SIZES: Final = (512, 64, 8, 1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_SHORT: Final = [b"\x12" + _varint(length) for length in range(4096)]
"""Tag of ``ScopeSpans.spans`` (field 2) with the length of the span that follows."""


def _scope_spans(spans: Iterable[StoredSpan]) -> bytes:
    parts: list[bytes] = []
    for span in spans:
        data = span.data
        parts.append(_SHORT[len(data)] if len(data) < 4096 else b"\x12" + _varint(len(data)))
        parts.append(data)
    return b"".join(parts)


class Tables:
    """Writes jobs inside the caller's transaction. After a rollback call ``forget``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._sources: dict[Source, int] = {}
        self._runs: OrderedDict[str, int] = OrderedDict()
        self._spans: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._known = 0
        self._links = RunLinks()
        self._next_run = self._last_run() + 1

    def _last_run(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()[0])

    def forget(self) -> None:
        """Drops what is remembered of rows, since some of them may not be there."""
        self._sources.clear()
        self._runs.clear()
        self._spans.clear()
        self._known = 0
        self._next_run = self._last_run() + 1

    def write(self, jobs: Sequence[Job]) -> Iterator[Stored]:
        """Writes all jobs; yields what each changed, in order."""
        self._recall_traces({chunk.trace_id for job in jobs if job.batch for chunk in job.batch.chunks.values()})
        changes = RunChanges(self._links, int(time.time() * 1000))
        chunks: list[Any] = []
        steps: list[tuple[StepRecord, bytes, bytes]] = []
        results: list[Stored] = []
        for job in jobs:
            stored = Stored()
            results.append(stored)
            for chunk in job.batch.chunks.values() if job.batch else ():
                known = self._spans[chunk.trace_id]
                fresh: list[StoredSpan] = []
                for span in chunk.spans:
                    if span.span_id in known:
                        stored.duplicates += 1
                    else:
                        known.add(span.span_id)
                        fresh.append(span)
                if not fresh:
                    continue
                self._known += len(fresh)
                ids = b"".join([span.span_id for span in fresh])
                chunks += (chunk.trace_id, self._source(chunk.source), ids, _scope_spans(fresh))
                for span in fresh:
                    if span.step is not None:
                        steps.append((span.step, chunk.trace_id, span.span_id))
                        stored.steps.append(span.step)
                        stored.runs.add(changes.add_step(span.step, span.span_id))
                for span in fresh:  # calls after their steps, which say whose run it is
                    if span.call is not None and (run := changes.add_call(span.call)):
                        stored.runs.add(run)
        self._insert("spans", ("trace_id", "source", "span_ids", "data"), chunks)
        numbers = self._number_runs(changes.runs)
        self._insert("runs", RUN_COLUMNS, changes.rows(numbers), MERGE)
        self._insert("steps", STEP_COLUMNS, _step_values(steps, numbers))
        self._write_signals(jobs)
        self._trim()
        yield from results

    def _write_signals(self, jobs: Sequence[Job]) -> None:
        events = [event for job in jobs for event in job.events]
        if events:
            self._db.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", events)
        counters = [point for job in jobs for point in job.counters]
        if counters:
            self._db.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", counters)

    def _insert(self, table: str, columns: tuple[str, ...], values: list[Any], tail: str = "") -> None:
        # One statement for many rows: the interpreter's lock is given up and waited for once a statement, and next
        # to a busy event loop that wait is the larger part of the cost.
        width = len(columns)
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        row = f"({', '.join('?' * width)})"
        start, total = 0, len(values) // width
        for size in _SIZES:
            while total - start >= size:
                part = values[start * width : (start + size) * width]
                self._db.execute(head + ", ".join([row] * size) + tail, part)
                start += size

    def _recall_traces(self, traces: set[bytes]) -> None:
        """Loads the span ids of traces that are not remembered."""
        missing: list[bytes] = []
        for trace in traces:
            if trace in self._spans:
                self._spans.move_to_end(trace)
            else:
                missing.append(trace)
                self._spans[trace] = set()
        for at in range(0, len(missing), 256):
            part = missing[at : at + 256]
            rows = self._db.execute(f"SELECT trace_id, span_ids FROM spans WHERE trace_id IN ({_marks(part)})", part)
            for trace, ids in rows:
                found = [ids[i : i + 8] for i in range(0, len(ids), 8)]
                self._spans[trace].update(found)
                self._known += len(found)

    def _number_runs(self, run_ids: Iterable[str]) -> dict[str, int]:
        numbers: dict[str, int] = {}
        missing: list[str] = []
        for run_id in run_ids:
            number = self._runs.get(run_id)
            if number is None:
                missing.append(run_id)
            else:
                self._runs.move_to_end(run_id)
                numbers[run_id] = number
        for at in range(0, len(missing), 256):
            part = missing[at : at + 256]
            numbers.update(self._db.execute(f"SELECT run_id, id FROM runs WHERE run_id IN ({_marks(part)})", part))
        for run_id in missing:
            if run_id not in numbers:
                numbers[run_id] = self._next_run
                self._next_run += 1
            self._runs[run_id] = numbers[run_id]
        return numbers

    def _source(self, source: Source) -> int:
        number = self._sources.get(source)
        if number is None:
            self._db.execute("INSERT OR IGNORE INTO sources (resource, scope) VALUES (?, ?)", source)
            found = self._db.execute("SELECT id FROM sources WHERE resource = ? AND scope = ?", source).fetchone()
            number = int(found[0])
            if len(source.resource) + len(source.scope) <= _MAX_KNOWN_SOURCE:
                if len(self._sources) >= _KNOWN_SOURCES:
                    self._sources.clear()
                self._sources[source] = number
        return number

    def _trim(self) -> None:
        while self._known > _KNOWN_SPANS and len(self._spans) > 1:
            _, ids = self._spans.popitem(last=False)
            self._known -= len(ids)
        while len(self._runs) > _KNOWN_RUNS:
            self._runs.popitem(last=False)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _step_values(steps: list[tuple[StepRecord, bytes, bytes]], numbers: dict[str, int]) -> list[Any]:
    values: list[Any] = []
    for step, trace_id, span_id in steps:
        call = step["call_span_id"]
        reasons = step["reasons"]
        labels = step["labels"]
        values += (
            numbers[step["run_id"]],
            trace_id,
            span_id,
            bytes.fromhex(call) if call else None,
            step["step_index"],
            step["kind"],
            step["name"],
            step["service"],
            step["model"],
            step["tool"],
            step["ts_ms"],
            step["latency_us"],
            step["latency_source"],
            step["confidence"],
            step["confidence_method"],
            step["calibrated"],
            step["is_valid"],
            orjson.dumps(reasons).decode() if reasons else None,
            orjson.dumps(labels).decode() if labels else None,
        )
    return values
