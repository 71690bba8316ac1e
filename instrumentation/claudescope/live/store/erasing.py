"""Deleting what a store holds, by hand and while no server has it: what is gone cannot be read from the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from .inventory import store_files
from .migration import upgrade
from .retention import Retention
from .schema import connect

__all__ = ["erase", "erase_before"]


def erase(folder: Path) -> None:
    """Deletes the store and the backups of older versions. Raises OSError."""
    for files in store_files(folder):
        for path in files:
            path.unlink(missing_ok=True)


def erase_before(folder: Path, before_ms: int, waiting: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Deletes what ended before a time, figures that are only of the time before, and the backups of older versions.

    ``waiting`` is called now and then. Returns how many runs and steps went. Raises UsageError, sqlite3.Error and
    OSError.
    """
    upgrade(folder)
    with closing(connect(folder)) as db:
        db.execute("PRAGMA secure_delete = ON")
        had = _counts(db)
        retention = Retention(db, 0, None)
        while retention.work(before_ms):
            waiting()
        db.execute("DELETE FROM rollups WHERE bucket_ms + tier * 1000 <= ?", (before_ms,))
        has = _counts(db)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for path in store_files(folder)[1]:
        path.unlink(missing_ok=True)
    return had[0] - has[0], had[1] - has[1]


def _counts(db: sqlite3.Connection) -> tuple[int, int]:
    (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
    (steps,) = db.execute("SELECT count(*) FROM steps").fetchone()
    return runs, steps
