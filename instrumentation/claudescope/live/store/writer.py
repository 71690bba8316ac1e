"""The one thread that writes: many requests become one transaction, committed before any of them is answered."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from .jobs import Job, Stored
from .tables import Tables

__all__ = ["MAX_BACKLOG", "BacklogError", "StoreError", "Writer"]

MAX_BACKLOG: Final = 64 * 2**20
"""Bytes that wait to be written before requests are refused."""
_GROUP: Final = 4 * 2**20
"""Bytes of one transaction, about."""


class BacklogError(Exception):
    """The writer is behind: try again later."""


class StoreError(Exception):
    """The store did not take it, such as when the disk is full."""


class Writer:
    """Owns the writing connection. ``notify`` calls its argument where the futures' owner wants to be woken."""

    def __init__(self, db: sqlite3.Connection, notify: Callable[[Callable[[], None]], object]) -> None:
        self._tables = Tables(db)
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
            self._db.execute("PRAGMA optimize")
        self._db.close()

    def _run(self) -> None:
        open_ = True
        while open_:
            job = self._jobs.get()
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
            if group:
                self._write(group, size)

    def _write(self, group: list[Job], size: int) -> None:
        results: list[Stored] = []
        failure: Exception | None = None
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for stored in self._tables.write(group):
                results.append(stored)
            self._db.execute("COMMIT")
            self.failing = None
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing was acknowledged and the thread goes on
            failure = StoreError(str(error))
            self.failing = str(error)
            with contextlib.suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            self._tables.forget()
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
