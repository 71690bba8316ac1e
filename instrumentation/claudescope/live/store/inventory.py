"""What a store is and how much it holds, read from its files; a server may have them at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...errors import UsageError
from .schema import FILE_NAME, VERSION, connect_reader

__all__ = ["Inventory", "Tier", "open_store", "store_files", "take_inventory"]

_OPERATIONS: Final = 2_000_000
"""Of SQLite between two calls of ``waiting``: some tens of milliseconds."""


@dataclass(frozen=True)
class Tier:
    """The roll-ups of one width of bucket, and the first and the last bucket's start."""

    seconds: int
    cells: int
    oldest_ms: int
    newest_ms: int


@dataclass(frozen=True)
class Inventory:
    """Sizes in bytes; times of the spans' ends. Counts are 0 for a store of another version, which is not read."""

    version: int
    bytes: int
    backup_bytes: int
    runs: int = 0
    steps: int = 0
    calls: int = 0
    spans: int = 0
    events: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    tiers: tuple[Tier, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether this release reads it as it is."""
        return self.version == VERSION


def store_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of a store, and the backups of older versions beside it."""
    files = sorted(path for path in folder.glob(f"{FILE_NAME}*") if path.is_file())
    backups = [path for path in files if path.name.endswith(".backup")]
    return [path for path in files if path not in backups], backups


def open_store(folder: Path) -> sqlite3.Connection:
    """A connection that only reads. Raises UsageError when there is no store, or one of another version."""
    db = _open(folder)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return db
    db.close()
    if version > VERSION:
        raise UsageError(f"The store in {folder} was written by a newer claudescope.", "Upgrade claudescope.")
    raise UsageError(
        f"The store in {folder} was written by an older claudescope.",
        f"Type once: claudescope up --data {folder}",
    )


def _open(folder: Path) -> sqlite3.Connection:
    path = folder / FILE_NAME
    if not path.is_file():
        raise UsageError(f"There is no store in {folder}.", "Name its folder with --data.")
    try:
        db = connect_reader(folder)
        try:
            db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise UsageError(f"The store {path} cannot be read: {error}.", "Name another folder with --data.") from None
    return db


def take_inventory(folder: Path, waiting: Callable[[], None] = lambda: None) -> Inventory:
    """Counts what is there; ``waiting`` is called meanwhile. Raises UsageError when there is no store to be read."""
    with closing(_open(folder)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        files, backups = store_files(folder)
        sizes = sum(path.stat().st_size for path in files), sum(path.stat().st_size for path in backups)
        if version != VERSION:
            return Inventory(version, *sizes)

        def going_on() -> int:
            waiting()
            return 0

        db.set_progress_handler(going_on, _OPERATIONS)
        counts = [
            db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("runs", "steps", "calls", "events")
        ]
        (spans,) = db.execute("SELECT coalesce(sum(length(span_ids)), 0) / 8 FROM spans").fetchone()
        oldest, newest = (
            db.execute(f"SELECT {what}(ended_ms) FROM spans WHERE ended_ms > 0").fetchone()[0]
            for what in ("min", "max")
        )
        tiers = db.execute("SELECT tier, count(*), min(bucket_ms), max(bucket_ms) FROM rollups GROUP BY tier")
        runs, steps, calls, events = counts
        return Inventory(
            version, *sizes, runs, steps, calls, spans, events, oldest, newest, tuple(Tier(*row) for row in tiers)
        )
