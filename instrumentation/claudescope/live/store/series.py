"""Series: each set of dimensions that steps were seen with, and the one under which the roll-ups count it."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from typing import Final

from ..records import Dims, label_json
from ..rollups.series import OVERFLOW_LABEL

__all__ = ["MAX_COUNTED", "OVERFLOW", "Registry", "counted_series"]

MAX_COUNTED: Final = 5000
"""Series that are counted as themselves; the labels of later ones are left out of the figures."""
_FOLDED: Final = 1000
"""Further series without labels, and after those as many without tool; the rest is counted as one."""
OVERFLOW: Final = label_json({OVERFLOW_LABEL: "true"})
"""The labels of a series that stands for others."""
_REMEMBERED: Final = 16_384
_FIND: Final = (
    "SELECT id, counted FROM series WHERE service = ? AND model = ? AND kind = ? AND tool = ? AND failed_check = ?"
    " AND labels = ?"
)
_ADD: Final = (
    "INSERT INTO series (service, model, kind, tool, failed_check, labels, counted) VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def counted_series(db: sqlite3.Connection) -> list[tuple[int, Dims]]:
    """The series that roll-ups may name."""
    rows = db.execute(
        "SELECT id, service, model, kind, tool, failed_check, labels FROM series WHERE counted = id ORDER BY id"
    )
    return [(row[0], Dims(*row[1:])) for row in rows]


class Registry:
    """Numbers of series, by dimensions. Lives on the writer's thread; writes inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: OrderedDict[Dims, tuple[int, int]] = OrderedDict()
        self._counted = 0
        self._fresh: list[tuple[int, Dims]] = []
        self.forget()

    def forget(self) -> None:
        """Drops what is remembered, since some of it may not be there."""
        self._known.clear()
        self._fresh = []
        (self._counted,) = self._db.execute("SELECT count(*) FROM series WHERE counted = id").fetchone()

    def number(self, dims: Dims) -> tuple[int, int]:
        """Its id, and the id of the series under which it is counted."""
        found = self._known.get(dims)
        if found is not None:
            self._known.move_to_end(dims)
            return found
        found = self._known[dims] = self._stored(dims) or self._make(dims)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def take_fresh(self) -> list[tuple[int, Dims]]:
        """The counted series that were made since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def _stored(self, dims: Dims) -> tuple[int, int] | None:
        row = self._db.execute(_FIND, dims).fetchone()
        return (row[0], row[1]) if row else None

    def _make(self, dims: Dims) -> tuple[int, int]:
        if self._counted < MAX_COUNTED:
            return self._add_counted(dims)
        bare = dims._replace(labels=OVERFLOW)
        for room, other in (
            (_FOLDED, bare),
            (2 * _FOLDED, bare._replace(tool="")),
            (2 * _FOLDED + 1, Dims("", "", "", "", "", OVERFLOW)),
        ):
            found = self._known.get(other) or self._stored(other)
            if found is None and self._counted < MAX_COUNTED + room:
                found = self._known[other] = self._add_counted(other)
            if found is not None:
                break
        assert found is not None  # the last one has its place for ever
        if other == dims:
            return found
        return self._add(dims, found[1]), found[1]

    def _add_counted(self, dims: Dims) -> tuple[int, int]:
        number = self._add(dims, 0)
        self._db.execute("UPDATE series SET counted = id WHERE id = ?", (number,))
        self._counted += 1
        self._fresh.append((number, dims))
        return number, number

    def _add(self, dims: Dims, counted: int) -> int:
        return int(self._db.execute(_ADD, (*dims, counted)).lastrowid or 0)
