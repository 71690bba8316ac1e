"""Questions to the store, on threads of their own with connections that only read."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from . import deadline
from .run_detail import find_run
from .run_list import RunQuery, find_runs, runs_by_id
from .schema import bytes_in_use, connect_reader
from .step_list import StepQuery, find_steps
from .traces import find_trace

__all__ = ["Page", "Reader"]

T = TypeVar("T")
Page = dict[str, Any]


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

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """What ``question`` says of the store; it runs on one of the threads. Raises SlowAnswerError."""
        until = time.monotonic() + deadline.ANSWER_S
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: deadline.answer_until(until, self._db(), question)
        )

    async def steps(self, query: StepQuery) -> Page:
        """Steps as ``{"items", "next"}``."""
        return await self.ask(lambda db: find_steps(db, query))

    async def runs(self, query: RunQuery) -> Page:
        """Runs as ``{"items", "next"}``."""
        return await self.ask(lambda db: find_runs(db, query))

    async def runs_by_id(self, run_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The runs of these ids that are there."""
        return await self.ask(lambda db: runs_by_id(db, run_ids))

    async def run(self, run_id: str) -> dict[str, Any] | None:
        """A run with its steps, calls, spans and events, or None."""
        return await self.ask(lambda db: find_run(db, run_id))

    async def trace(self, trace_id: bytes) -> dict[str, Any] | None:
        """All spans and log events of a trace, or None."""
        return await self.ask(lambda db: find_trace(db, trace_id))

    async def counts(self) -> dict[str, int | None]:
        """``bytes`` in use, ``steps``, ``spans``, and ``oldest_ms``: when the oldest span ended, or None."""
        return await self.ask(_counts)


def _counts(db: sqlite3.Connection) -> dict[str, int | None]:
    (steps,) = db.execute("SELECT count(*) FROM steps").fetchone()
    spans, oldest = db.execute("SELECT sum(count), min(ended_ms) FROM spans INDEXED BY spans_ended").fetchone()
    return {"bytes": bytes_in_use(db), "steps": steps, "spans": spans or 0, "oldest_ms": oldest}
