"""What a request asks the writer to store, and what that changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from ..records import Batch, Dims, StepRecord
from ..rollups.pending import Flush

__all__ = ["CounterPoint", "Job", "LogEvent", "Stored", "StoredStep"]


class LogEvent(NamedTuple):
    """One log record as stored. ``digest`` makes it count once."""

    digest: bytes
    trace_id: bytes
    span_id: bytes
    ts_ms: int
    name: str
    service: str
    data: bytes


class CounterPoint(NamedTuple):
    """The latest value of one series of a counter."""

    series: str
    value: float
    ts_ms: int


class StoredStep(NamedTuple):
    """A step with its row's id, and the id of the series under which the roll-ups count it."""

    step: StepRecord
    row: int
    series: int


@dataclass(slots=True)
class Stored:
    """What one job changed: the steps that were not stored before, the series among the counted ones that are new, the
    runs touched, and how many spans were known already.
    """

    steps: list[StoredStep] = field(default_factory=list)
    series: list[tuple[int, Dims]] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    duplicates: int = 0


@dataclass(slots=True)
class Job:
    """What one request asks to be stored, or what the roll-ups want flushed; ``size`` in bytes."""

    batch: Batch | None = None
    events: list[LogEvent] = field(default_factory=list)
    counters: list[CounterPoint] = field(default_factory=list)
    rollup: Flush | None = None
    work: Callable[[sqlite3.Connection], None] | None = None
    """What objectives ask for: done after everything else, in the same transaction."""
    size: int = 0
    done: Future[Stored] = field(default_factory=Future)
