"""The captured texts of steps, and their index where SQLite has one for parts of words."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from .select import Where

__all__ = ["Texts", "add_text_search", "is_indexed"]

_MARKS: Final = 400
_SHORTEST: Final = 3
"""Characters that the index is made of."""


def is_indexed(db: sqlite3.Connection) -> bool:
    """Whether the store's texts have an index that this SQLite can use."""
    try:
        db.execute("SELECT rowid FROM texts_index LIMIT 1").fetchone()
    except sqlite3.OperationalError:  # no such table, or no such module
        return False
    return True


def add_text_search(db: sqlite3.Connection, where: Where, text: str, limit: int) -> None:
    """Adds to conditions on runs ``r`` that a step's text contains ``text``, of the ``limit`` latest steps that do.

    Case makes no difference; without an index, or for one or two characters, to the letters a to z only.
    """
    if len(text) >= _SHORTEST and "\0" not in text and is_indexed(db):  # where the index's language is at its end
        found = "SELECT rowid AS step FROM texts_index WHERE texts_index MATCH ? ORDER BY rowid DESC"
        value = '"' + text.replace('"', '""') + '"'
    else:
        found = "SELECT step FROM texts WHERE instr(lower(text), lower(?)) ORDER BY step DESC"
        value = text
    where.add(f"r.id IN (SELECT run FROM steps WHERE id IN (SELECT step FROM ({found} LIMIT {limit})))", value)


class Texts:
    """Keeps the index; lives on the writer's thread, inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._indexed = is_indexed(db)

    def index(self, rows: Sequence[Any]) -> None:
        """Adds texts: step id, text, step id, text, ..."""
        if self._indexed:
            self._db.executemany(
                "INSERT INTO texts_index (rowid, text) VALUES (?, ?)", zip(rows[::2], rows[1::2], strict=True)
            )

    def delete(self, steps: Sequence[int]) -> None:
        """Forgets the texts of steps."""
        for at in range(0, len(steps), _MARKS):
            part = steps[at : at + _MARKS]
            among = f"step IN ({', '.join('?' * len(part))})"
            if self._indexed:  # the index has no copy of the texts: it must be told what it forgets
                self._db.execute(
                    "INSERT INTO texts_index (texts_index, rowid, text)"
                    f" SELECT 'delete', step, text FROM texts WHERE {among}",
                    part,
                )
            self._db.execute(f"DELETE FROM texts WHERE {among}", part)
        if self._indexed and steps and not self._db.execute("SELECT 1 FROM texts LIMIT 1").fetchone():
            # what it was told to forget is still there, marked, and may be more than there is room for
            self._db.execute("INSERT INTO texts_index (texts_index) VALUES ('delete-all')")
