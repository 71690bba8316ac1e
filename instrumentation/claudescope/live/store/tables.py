"""How a group of requests becomes rows. Lives on the writer's thread.

A span counts once: the first that came with its trace and span id is kept, later ones are ignored, so a batch that an
exporter sends again changes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from ..objectives.ledger import Ledger
from ..records import CallRecord, Chunk, Source, StepRecord, StoredSpan, dims_of, label_json
from ..rollups import persist
from .jobs import Job, Stored, StoredStep
from .known import KnownSpans
from .runs import COLUMNS as RUN_COLUMNS
from .runs import MERGE, Costs, RunChanges, RunLinks
from .schema import CALL_COLUMNS, STEP_COLUMNS
from .series import Registry
from .texts import Texts

__all__ = ["Tables"]

_KNOWN_SPANS: Final = 32_768
_KNOWN_RUNS: Final = 16_384
_KNOWN_SOURCES: Final = 1024
_MAX_KNOWN_SOURCE: Final = 16_384
"""Bytes of a source that is remembered; a larger one is looked up each time."""
_SIZES: Final = (512, 64, 8, 1)
_SPAN_COLUMNS: Final = ("trace_id", "source", "ended_ms", "count", "span_ids", "runs", "data")


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

    def __init__(self, db: sqlite3.Connection, costs: Costs | None = None, ledger: Ledger | None = None) -> None:
        self._db = db
        self._costs = costs
        self._ledger = ledger
        self._sources: dict[Source, int] = {}
        self._runs: OrderedDict[str, int] = OrderedDict()
        self._spans = KnownSpans(db, _KNOWN_SPANS)
        self._links = RunLinks()
        self._series = Registry(db)
        self._texts = Texts(db)
        self._next_run = self._last("runs", "last_run") + 1
        self._next_step = self._last("steps", "rollup_watermark") + 1

    def _last(self, table: str, mark: str) -> int:
        """The highest id so far, of rows that are gone, too."""
        (last,) = self._db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
        known = self._db.execute("SELECT value FROM meta WHERE key = ?", (mark,)).fetchone()
        return max(int(last), int(known[0]) if known else 0)

    def forget(self) -> None:
        """Drops what is remembered of rows, since some of them may not be there."""
        self._sources.clear()
        self._runs.clear()
        self._spans.forget()
        self._series.forget()
        if self._ledger is not None:
            self._ledger.forget(self._db)
        self._next_run = self._last("runs", "last_run") + 1

    def write(self, jobs: Sequence[Job]) -> list[Stored]:
        """Writes all jobs; returns what each changed, in order."""
        self._spans.recall({chunk.trace_id for job in jobs if job.batch for chunk in job.batch.chunks.values()})
        now_ms = int(time.time() * 1000)
        changes = RunChanges(self._links, self._costs, now_ms)
        spans: list[tuple[Chunk, list[StoredSpan], set[str]]] = []
        steps: list[tuple[StepRecord, bytes, bytes, int]] = []
        texts: list[Any] = []
        results: list[Stored] = []
        row = self._next_step
        for job in jobs:
            stored = Stored()
            results.append(stored)
            for chunk in job.batch.chunks.values() if job.batch else ():
                fresh = self._fresh(chunk, stored)
                if not fresh:
                    continue
                runs: set[str] = set()
                for span in fresh:
                    if span.step is not None:
                        series, counted = self._series.number(dims_of(span.step))
                        steps.append((span.step, chunk.trace_id, span.span_id, series))
                        stored.steps.append(StoredStep(span.step, row, counted))
                        runs.add(changes.add_step(span.step, span.span_id))
                        if span.text:
                            texts += (row, span.text)
                        row += 1
                for span in fresh:  # calls after their steps, which say whose run it is
                    if span.call is not None and (run := changes.add_call(span.call)):
                        runs.add(run)
                spans.append((chunk, fresh, runs))
                stored.runs |= runs
            stored.series = self._series.take_fresh()
        numbers = self._number_runs(changes.runs)
        self._insert("spans", _SPAN_COLUMNS, self._span_values(spans, numbers))
        self._insert("runs", RUN_COLUMNS, changes.rows(numbers), MERGE)
        self._insert("steps", STEP_COLUMNS, _step_values(steps, numbers, self._next_step))
        self._insert("calls", CALL_COLUMNS, _call_values(changes.calls, numbers))
        if texts:
            self._insert("texts", ("step", "text"), texts)
            self._texts.index(texts)
        self._write_signals(jobs)
        if self._ledger and (steps or changes.calls):
            (last_call,) = self._db.execute("SELECT coalesce(max(id), 0) FROM calls").fetchone()
            judged = ((step, series) for step, _, _, series in steps)
            self._ledger.count(self._db, judged, (call for _, call, _ in changes.calls), (row - 1, last_call), now_ms)
        for job in jobs:
            if job.rollup is not None:
                persist.write(self._db, job.rollup)
            if job.work is not None:
                job.work(self._db)
        self._next_step = row  # never one that was used before, even if its transaction failed
        self._trim()
        return results

    def _fresh(self, chunk: Chunk, stored: Stored) -> list[StoredSpan]:
        fresh = [span for span in chunk.spans if self._spans.add(chunk.trace_id, span.span_id)]
        stored.duplicates += len(chunk.spans) - len(fresh)
        return fresh

    def _span_values(self, spans: list[tuple[Chunk, list[StoredSpan], set[str]]], numbers: dict[str, int]) -> list[Any]:
        values: list[Any] = []
        for chunk, fresh, runs in spans:
            values += (
                chunk.trace_id,
                self._source(chunk.source),
                max([span.ended_ms for span in fresh]),
                len(fresh),
                b"".join([span.span_id for span in fresh]),
                b"".join([numbers[run].to_bytes(8, "little") for run in runs]) or None,
                _scope_spans(fresh),
            )
        return values

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
        self._spans.trim()
        while len(self._runs) > _KNOWN_RUNS:
            self._runs.popitem(last=False)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _step_values(steps: list[tuple[StepRecord, bytes, bytes, int]], numbers: dict[str, int], first: int) -> list[Any]:
    values: list[Any] = []
    for row, (step, trace_id, span_id, series) in enumerate(steps, first):
        call = step["call_span_id"]
        reasons = step["reasons"]
        values += (
            row,
            numbers[step["run_id"]],
            trace_id,
            span_id,
            bytes.fromhex(call) if call else None,
            step["step_index"],
            series,
            step["name"],
            step["ts_ms"],
            step["latency_us"],
            step["latency_source"],
            step["confidence"],
            step["confidence_method"],
            step["calibrated"],
            step["is_valid"],
            orjson.dumps(reasons).decode() if reasons else None,
        )
    return values


def _call_values(calls: list[tuple[str, CallRecord, float | None]], numbers: dict[str, int]) -> list[Any]:
    values: list[Any] = []
    for run_id, call, cost in calls:
        values += (
            numbers[run_id],
            bytes.fromhex(call.trace_id),
            call.span_id,
            call.parent_id or None,
            call.service,
            call.model,
            call.started_ms,
            call.ended_ms,
            call.input_tokens,
            call.cache_read_tokens,
            call.cache_write_tokens,
            call.output_tokens,
            cost,
            call.error_type,
            call.status_code,
            call.retries,
            call.first_chunk_ms,
            call.finish,
            label_json(call.labels) if call.labels else None,
            call.limit_used,
        )
    return values
