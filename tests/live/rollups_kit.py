"""Steps, and roll-ups over a real store with a clock that the test sets."""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import orjson
from hypothesis import strategies as st

from claudescope.live.filters import StepFilter
from claudescope.live.records import StepRecord, dims_of
from claudescope.live.rollups import persist
from claudescope.live.rollups.bands import GRID, LATENCY_EDGES
from claudescope.live.rollups.board import Rollups
from claudescope.live.rollups.pending import Flush
from claudescope.live.store.schema import FILE_NAME, connect, connect_reader
from claudescope.live.store.series import Registry, counted_series

T = TypeVar("T")
NOW = 1_700_006_400_000  # 2023-11-15T00:00:00Z: where a bucket of each tier begins
HOUR = 3_600_000


def step(index: int = 0, ts_ms: int = NOW, latency_us: int = 1000, **more: Any) -> StepRecord:
    record: dict[str, Any] = {
        "trace_id": "0" * 32,
        "span_id": "0" * 16,
        "call_span_id": None,
        "run_id": "r",
        "step_index": index,
        "kind": "thinking",
        "name": None,
        "service": "app",
        "model": None,
        "tool": None,
        "ts_ms": ts_ms,
        "latency_us": latency_us,
        "latency_source": "measured",
        "confidence": None,
        "confidence_method": None,
        "calibrated": None,
        "is_valid": None,
        "reasons": [],
        "labels": {},
    }
    return {**record, **more}  # type: ignore[return-value, typeddict-item]


def reason(check: str) -> dict[str, Any]:
    return {"check": check, "code": "c", "start": None, "end": None}


LATENCIES = st.one_of(
    st.integers(0, 30),
    st.integers(0, 10**9),
    st.sampled_from(LATENCY_EDGES),
    st.sampled_from(LATENCY_EDGES[:-1]).map(lambda edge: edge + 1),
    st.integers(0, 2**63 // 1000),
)
CONFIDENCES = st.one_of(st.none(), st.sampled_from(GRID), st.floats(0, 1))
STEPS = st.builds(
    step,
    index=st.one_of(st.integers(0, 20), st.just(2**31 - 1)),
    latency_us=LATENCIES,
    latency_source=st.sampled_from([None, "measured", "apportioned", "consumer", "of another sender"]),
    confidence=CONFIDENCES,
    is_valid=st.sampled_from([None, True, False]),
    service=st.sampled_from(["a", "b"]),
    model=st.sampled_from([None, "m"]),
    kind=st.sampled_from(["thinking", "text"]),
    tool=st.sampled_from([None, "search"]),
    reasons=st.sampled_from([[], [reason("arithmetic")], [reason("schema"), reason("arithmetic")]]),
    labels=st.sampled_from([{}, {"tier": "gold"}, {"tier": "free", "x": "1"}]),
)


def _some(*values: Any) -> Any:
    return st.frozensets(st.sampled_from(values), max_size=2)


FILTERS = st.builds(
    StepFilter,
    service=_some("a", "b", "none"),
    model=_some("m", "none"),
    kind=_some("thinking", "text"),
    tool=_some("search"),
    check=_some("arithmetic", "schema"),
    index=_some(0, 3, 16),
    valid=_some(True, False, None),
    confidence_min=st.one_of(st.none(), st.sampled_from(GRID)),
    confidence_max=st.one_of(st.none(), st.sampled_from(GRID), st.just(1.5)),
    confidence_known=st.sampled_from([None, None, True, False]),
    latency_min_us=st.one_of(st.none(), st.just(0), st.sampled_from(LATENCY_EDGES[:-1]).map(lambda edge: edge + 1)),
    latency_max_us=st.one_of(st.none(), st.just(0), st.sampled_from(LATENCY_EDGES[:-1]).map(lambda edge: edge + 1)),
    labels=_some(("tier", "gold"), ("tier", ""), ("x", "1")),
)
"""Filters whose bounds lie on edges of the bands."""


@functools.cache
def _empty_store() -> bytes:
    """A store as it is made: to copy it takes a tenth of the time."""
    with tempfile.TemporaryDirectory() as folder:
        connect(Path(folder)).close()
        return (Path(folder) / FILE_NAME).read_bytes()


class Bench:
    """Roll-ups over a store of their own. ``now_ms`` is what time it is."""

    def __init__(self, folder: Path, now_ms: int = NOW) -> None:
        self.folder = folder
        self.now_ms = now_ms
        (folder / FILE_NAME).write_bytes(_empty_store())
        self.db = connect(folder)
        self.reader = connect_reader(folder)
        self.registry = Registry(self.db)
        self.rows = 0
        self.broken = False
        self.rollups = self.start()

    def close(self) -> None:
        self.reader.close()
        self.db.close()

    def start(self) -> Rollups:
        """Roll-ups as after a start of the server: what was pending is gone."""
        self.rollups = Rollups(
            persist.load(self.db),
            counted_series(self.db),
            self.submit,
            self.ask,
            self.rows,
            lambda: self.now_ms / 1000,
        )
        return self.rollups

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        return question(self.reader)

    async def submit(self, flush: Flush) -> None:
        if self.broken:
            raise OSError("the disk is full")
        with self.transaction():
            persist.write(self.db, flush, self.now_ms)

    def transaction(self) -> sqlite3.Connection:
        self.db.execute("BEGIN IMMEDIATE")
        return self.db  # which commits, or rolls back, as a context

    def commit(self, steps: Sequence[StepRecord]) -> None:
        """Stores steps and tells the roll-ups, as the writer and the receiver do."""
        self.rollups.add(*self.store(steps))

    def store(self, steps: Sequence[StepRecord]) -> tuple[list[tuple[StepRecord, int, int]], Any]:
        counted = []
        with self.transaction():
            for one in steps:
                self.rows += 1
                series, counts_as = self.registry.number(dims_of(one))
                self.db.execute(
                    "INSERT INTO steps (id, run, trace_id, span_id, step_index, series, ts_ms, latency_us,"
                    " latency_source, confidence, is_valid, reasons) VALUES (?, 1, x'', x'', ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        self.rows,
                        one["step_index"],
                        series,
                        one["ts_ms"],
                        one["latency_us"],
                        one["latency_source"],
                        one["confidence"],
                        one["is_valid"],
                        orjson.dumps(one["reasons"]).decode() or None,
                    ),
                )
                counted.append((one, self.rows, counts_as))
        return counted, self.registry.take_fresh()

    async def cells(self, filter: StepFilter, from_ms: int, to_ms: int, bucket_ms: int | None = None) -> list[Any]:
        answer = await self.rollups.heat(filter, from_ms, to_ms, bucket_ms)
        return orjson.loads(orjson.dumps(answer["items"]))


def counts(steps: Sequence[StepRecord], filter: StepFilter, bucket_ms: int) -> dict[tuple[int, str], int]:
    """How many steps each cell has: the definition."""
    found: dict[tuple[int, str], int] = {}
    for one in steps:
        if filter.matches(one):
            index = one["step_index"]
            cell = one["ts_ms"] // bucket_ms * bucket_ms, str(index) if index < 16 else "16+"
            found[cell] = found.get(cell, 0) + 1
    return found
