"""What is too old, or too much, goes: the oldest first, in pieces so short that writing goes on."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from ..rollups import persist
from ..rollups.tiers import AHEAD_MS
from .schema import bytes_in_use
from .texts import Texts

__all__ = ["Retention"]

_SPANS: Final = 200
"""Rows of spans of one piece; of the others, as many as come with them."""
_STEPS: Final = 1600
_CALLS: Final = 400
_EVENTS: Final = 400
_RUNS: Final = 400
"""Of those that never had a step or a call, only a root."""
_ROOM: Final = 0.95
"""Of the largest size, when more was in use: so that not each request starts it again."""
_FREE_PAGES: Final = 256
_FREE_SHARE: Final = 20
"""Free pages are given back down to a twentieth of the file, since the next spans take them."""
_GIVEN_BACK: Final = 512
"""Pages of one piece."""
_SWEEP_MS: Final = 3_600_000


class Retention:
    """Deletes spans, steps, calls, texts and events that ended ``retain_ms`` ago, and the oldest of them when over
    ``max_bytes`` of the file are in use; and runs that have nothing left. Lives on the writer's thread.

    The figures by time have a time of their own and are kept. None: no such limit.
    """

    def __init__(self, db: sqlite3.Connection, retain_ms: int | None, max_bytes: int | None) -> None:
        self._db = db
        self._retain_ms = retain_ms
        self._max_bytes = max_bytes
        self._texts = Texts(db)
        self._before = 0
        """What ended before this makes room, in ms."""
        self._shrinking = False
        self._swept_ms = 0
        self.swept = False
        """Whether rows that others may remember were deleted; who forgot them sets it back."""

    def work(self, now_ms: int) -> bool:
        """Does one piece, in a transaction of its own; returns whether there is more. Raises sqlite3.Error."""
        aged = now_ms - self._retain_ms if self._retain_ms is not None else 0
        if self._before > now_ms + AHEAD_MS:
            self._before = 0  # the server's clock was ahead: what comes now would go at once
        before = max(self._before, aged)
        self._db.execute("BEGIN IMMEDIATE")
        try:
            more = self._delete(before) or self._make_room(now_ms)
            if not more and now_ms - self._swept_ms >= _SWEEP_MS:
                self._swept_ms = now_ms
                self._sweep(now_ms)
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        return more or self._give_back()

    def _delete(self, before: int, since: int = 0) -> bool:
        """Deletes a piece of what ended before a time, and not before another; whether there was something."""
        db = self._db
        spans = self._found(
            "SELECT id FROM spans INDEXED BY spans_ended WHERE ended_ms < ? AND ended_ms >= ?", before, since, _SPANS
        )
        counted = db.execute("SELECT value FROM meta WHERE key = 'rollup_watermark'").fetchone()
        steps = self._found(
            "SELECT id, run FROM steps INDEXED BY steps_time WHERE ts_ms < ? AND ts_ms >= ? AND id <= ?",
            before,
            since,
            _STEPS,
            counted[0] if counted else 2**62,  # what the figures do not count yet is asked for once more
        )
        calls = self._found(
            "SELECT id, run FROM calls INDEXED BY calls_ended WHERE ended_ms < ? AND ended_ms >= ?",
            before,
            since,
            _CALLS,
        )
        events = self._found(
            "SELECT digest FROM events INDEXED BY events_time WHERE ts_ms < ? AND ts_ms >= ?", before, since, _EVENTS
        )
        roots = self._found(
            "SELECT id FROM runs INDEXED BY runs_started WHERE started_ms < ?1 AND started_ms >= ?2"
            " AND ended_ms < ?1 AND steps = 0 AND calls = 0",
            before,
            since,
            _RUNS,
        )
        if not (spans or steps or calls or events or roots):
            return False
        db.executemany("DELETE FROM spans WHERE id = ?", spans)
        db.executemany("DELETE FROM steps WHERE id = ?", [(step,) for step, _ in steps])
        self._texts.delete([step for step, _ in steps])
        db.executemany("DELETE FROM calls WHERE id = ?", [(call,) for call, _ in calls])
        db.executemany("DELETE FROM events WHERE digest = ?", events)
        # Run numbers stand in the rows of spans: none is given twice, also when the latest run goes.
        db.execute(
            "INSERT INTO meta SELECT 'last_run', coalesce(max(id), 0) FROM runs WHERE TRUE"
            " ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)"
        )
        db.executemany("DELETE FROM runs WHERE id = ?", roots)
        db.executemany(
            "DELETE FROM runs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM steps WHERE run = runs.id)"
            " AND NOT EXISTS (SELECT 1 FROM calls WHERE run = runs.id)",
            [(run,) for run in {run for _, run in (*steps, *calls)}],
        )
        return True

    def _found(self, sql: str, before: int, since: int, limit: int, *more: int) -> list[Any]:
        return self._db.execute(f"{sql} LIMIT {limit}", (before, since, *more)).fetchall()

    def _make_room(self, now_ms: int) -> bool:
        """Moves on what is deleted, while too much is in use."""
        if self._max_bytes is None:
            return False
        used = self.used
        self._shrinking = used > self._max_bytes * (_ROOM if self._shrinking else 1)
        if not self._shrinking:
            return False
        if self._delete(2**62, now_ms + AHEAD_MS):
            return True  # of a wrong clock: never old enough, and by its time everything else would go before it
        ends = self._db.execute(
            "SELECT ended_ms FROM spans INDEXED BY spans_ended ORDER BY ended_ms LIMIT ?", (2 * _SPANS,)
        ).fetchall()
        if not ends:
            return False  # what is left is not spans
        self._before = max(self._before, ends[len(ends) // 2][0] + 1)
        return True

    @property
    def is_full(self) -> bool:
        """Whether more is in use than may be."""
        return self._max_bytes is not None and self.used > self._max_bytes

    @property
    def used(self) -> int:
        """Bytes of the file that are in use."""
        return bytes_in_use(self._db)

    def _give_back(self) -> bool:
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        over = int(free) - max(_FREE_PAGES, int(pages) // _FREE_SHARE)
        if over <= 0:
            return False
        # A script: it is a step for each page, and a statement without columns is left after the first.
        self._db.executescript(f"PRAGMA incremental_vacuum({min(over, _GIVEN_BACK)})")
        return over > _GIVEN_BACK

    def _sweep(self, now_ms: int) -> None:
        """Deletes what nothing names any more: sources, series that are not counted, and old figures."""
        persist.expire(self._db, persist.load(self._db).frontiers, now_ms)
        gone = self._db.execute(
            "DELETE FROM sources WHERE id NOT IN (SELECT source FROM spans INDEXED BY spans_ended)"
        ).rowcount
        if self._db.execute("SELECT 1 FROM series WHERE counted <> id LIMIT 1").fetchone():
            gone += self._db.execute(
                "DELETE FROM series WHERE counted <> id AND id NOT IN (SELECT series FROM steps INDEXED BY steps_run)"
            ).rowcount
        self.swept = self.swept or gone > 0
