"""The one thread that writes: many requests become one transaction, committed before any of them is answered."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from ..objectives.ledger import Ledger
from .jobs import Job, Stored
from .retention import Retention
from .runs import Costs
from .tables import Tables

__all__ = ["MAX_BACKLOG", "BacklogError", "StoreError", "Writer"]

MAX_BACKLOG: Final = 64 * 2**20
"""Bytes that wait to be written before requests are refused."""
_GROUP: Final = 4 * 2**20
"""Bytes of one transaction, about."""


_FIRST_PASS: Final = 10.0
_PASS: Final = 30.0
"""Seconds from one look at what is too old to the next."""
_SOON: Final = 1.0
"""The same, while more comes than there is room for."""
_PAUSE: Final = 0.005
"""Between two pieces of it."""
_PROBE: Final = 2.0
"""From one failure to the next try when nobody else writes."""


class BacklogError(Exception):
    """The writer is behind: try again later."""


class StoreError(Exception):
    """The store did not take it, such as when the disk is full."""


class Writer:
    """Owns the writing connection. ``notify`` calls its argument where the futures' owner wants to be woken.

    Between two transactions, ``retention`` deletes a piece of what is too old.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        notify: Callable[[Callable[[], None]], object],
        costs: Costs | None = None,
        retention: Retention | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._tables = Tables(db, costs, ledger)
        self._retention = retention
        self._passed = time.monotonic()
        """When the latest piece was done."""
        self._due = self._passed + _FIRST_PASS
        self._db = db
        self._notify = notify
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self.failing: str | None = None
        """Why the last transaction failed, or None."""
        self._thread = threading.Thread(target=self._run, name="claudescope-writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Bytes that wait."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Whether so much waits that a request need not even be decoded."""
        return self._waiting >= MAX_BACKLOG

    def submit(self, job: Job) -> Future[Stored]:
        """Queues a job; its future is done after the commit. Raises BacklogError when too much waits."""
        with self._lock:
            if self._waiting and self._waiting + job.size > MAX_BACKLOG:
                raise BacklogError
            self._waiting += job.size
        self._jobs.put(job)
        return job.done

    def close(self) -> None:
        """Writes what waits and closes the connection."""
        self._jobs.put(None)
        self._thread.join()
        with contextlib.suppress(sqlite3.Error):  # only statistics
            self._db.execute("PRAGMA analysis_limit = 400")
            self._db.execute("PRAGMA optimize")
        self._db.close()

    def _run(self) -> None:
        open_ = True
        while open_:
            try:
                job = self._jobs.get(timeout=max(_PAUSE, self._due - time.monotonic()))
            except queue.Empty:
                self._keep_house()
                continue
            group: list[Job] = []
            size = 0
            while job is not None:
                group.append(job)
                size += job.size
                if size >= _GROUP:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            open_ = job is not None
            began = time.monotonic()
            if group:
                self._write(group, size)
            if open_:
                self._keep_pace(began)

    def _keep_pace(self, began: float) -> None:
        """Between two writes, for as long as the one since ``began`` took: so deleting keeps up with writing."""
        now = time.monotonic()
        if self._retention is not None and now >= self._passed + _SOON and self._retention.is_full:
            self._due = now
        until = 2 * now - began
        while self._due <= now:
            self._keep_house()
            now = time.monotonic()
            if now >= until:
                break

    def _keep_house(self) -> None:
        """Deletes a piece of what is too old; where writing failed, finds out whether there is room again."""
        more = False
        try:
            if self._retention is not None:
                more = self._retention.work(int(time.time() * 1000))
                if self._retention.swept:
                    self._retention.swept = False
                    self._tables.forget()
            if self.failing is not None:
                self._db.execute("INSERT OR REPLACE INTO meta VALUES ('probe', ?)", (int(time.time()),))
                self.failing = None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the thread goes on
            self.failing = str(error)
        if self.failing is not None:
            self._due = time.monotonic() + _PROBE
        else:
            self._passed = time.monotonic()
            self._due = self._passed + (0.0 if more else _PASS)

    def _write(self, group: list[Job], size: int) -> None:
        results: list[Stored] = []
        failure: Exception | None = None
        try:
            self._db.execute("BEGIN IMMEDIATE")
            results = self._tables.write(group)
            self._db.execute("COMMIT")
            self.failing = None
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was acknowledged and the thread goes on
            failure = StoreError(str(error))
            self.failing = str(error)
            self._due = min(self._due, time.monotonic() + _PROBE)
            with contextlib.suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            self._tables.forget()
            if len(group) > 1 and not isinstance(error, sqlite3.OperationalError):
                for job in group:  # it is not the disk: one of them is at fault, and the others are not
                    self._write([job], job.size)
                return
        with self._lock:
            self._waiting -= size

        def finish() -> None:
            for number, job in enumerate(group):
                if job.done.done():
                    continue
                if failure is not None:
                    job.done.set_exception(failure)
                else:
                    job.done.set_result(results[number])

        try:
            self._notify(finish)
        except RuntimeError:
            finish()  # the event loop is gone: the server is stopping
