"""Stores for tests: jobs from senders, a writer with a real file, a reader's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from live_kit import Sender

from claudescope.live.records import Batch, StepRecord, read_spans
from claudescope.live.store.jobs import Job, Stored
from claudescope.live.store.runs import Costs
from claudescope.live.store.schema import connect, connect_reader
from claudescope.live.store.tables import Tables


def job(sender: Sender) -> Job:
    """What the receiver makes of a request."""
    batch = Batch()
    for _ in read_spans(sender.request, batch):
        pass
    return Job(batch=batch, size=batch.size)


class Store:
    """A store that is written and read on this thread."""

    def __init__(self, folder: Path, costs: Costs | None = None) -> None:
        self.folder = folder
        self.db = connect(folder)
        self.tables = Tables(self.db, costs)
        self.reader = connect_reader(folder)

    def write(self, *senders: Sender) -> list[Stored]:
        """One transaction with a job for each sender."""
        self.db.execute("BEGIN IMMEDIATE")
        stored = self.tables.write([job(sender) for sender in senders])
        self.db.execute("COMMIT")
        return stored

    def steps(self, *senders: Sender) -> list[StepRecord]:
        """Writes; gives the records of the steps that are new."""
        return [step for stored in self.write(*senders) for step, _, _ in stored.steps]

    def one(self, sql: str, *values: object) -> tuple[object, ...]:
        """The first row."""
        with closing(sqlite3.connect(self.folder / "store.sqlite")) as db:
            row: tuple[object, ...] = db.execute(sql, values).fetchone()
        return row

    def close(self) -> None:
        self.reader.close()
        self.db.close()


@contextmanager
def open_store(folder: Path, costs: Costs | None = None) -> Iterator[Store]:
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder, costs)
    try:
        yield store
    finally:
        store.close()
