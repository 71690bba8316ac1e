"""The SQLite file of the queue: its tables, and that one process has it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ..errors import UsageError

__all__ = ["Database", "StoreError"]

_FILE: Final = "explainer.sqlite"
_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    starts INTEGER NOT NULL,
    ends INTEGER,
    received INTEGER NOT NULL,
    given TEXT NOT NULL,
    report TEXT,
    UNIQUE (fingerprint, starts)
) STRICT;
CREATE INDEX alerts_received ON alerts (received);
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    alert INTEGER NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    place TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('open', 'close')),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'done', 'dead')),
    ended INTEGER NOT NULL,
    since INTEGER NOT NULL,
    due INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    ref TEXT NOT NULL DEFAULT '',
    finished INTEGER,
    UNIQUE (alert, place, phase)
) STRICT;
CREATE INDEX tasks_due ON tasks (place, due) WHERE state = 'waiting';
CREATE INDEX tasks_ended ON tasks (place, due) WHERE state = 'waiting' AND ended = 1;
CREATE INDEX tasks_finished ON tasks (place, finished) WHERE phase = 'open' AND ref <> '';
"""


class StoreError(Exception):
    """The file did not take it, such as when the disk is full."""


class Database:
    """The file in a folder, which one process has at a time; any thread may use it, one at a time.

    Raises UsageError when the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / _FILE).touch(0o600)
            self._db = sqlite3.connect(folder / _FILE, timeout=0.5, isolation_level=None, check_same_thread=False)
            self._prepare()
        except OSError as error:
            raise UsageError(
                f"The folder {folder} cannot be used: {error.strerror}.", "Choose another with --data."
            ) from None
        except sqlite3.Error as error:
            with suppress(AttributeError):  # it could not even be opened
                self._db.close()
            taken = "locked" in str(error)
            why = "another explainer has it" if taken else f"the queue in it is damaged ({error})"
            fix = "End that one, or choose" if taken else "Move its files away, or choose"
            raise UsageError(f"The folder {folder} cannot be used: {why}.", f"{fix} another with --data.") from None

    def _prepare(self) -> None:
        # the lock is the process's: it goes with it, however it ends
        for setting in (
            "locking_mode = EXCLUSIVE",
            "journal_mode = WAL",
            "foreign_keys = ON",
            "journal_size_limit = 16777216",
        ):
            self._db.execute(f"PRAGMA {setting}")
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in _SCHEMA.split(";\n"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"it is of version {version}, and this one knows {_VERSION}")
        self._db.execute("COMMIT")

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """``durable``: it is there after the machine has lost its power, too, and not only after a kill.

        Raises StoreError when the file fails; then nothing of it is there.
        """
        with self._lock:
            try:
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                finally:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreError(str(error)) from None

    def close(self) -> None:
        """Gives the file back."""
        with self._lock:
            self._db.close()
