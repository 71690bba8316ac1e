"""What is known of alerts and what is still to be done about them: one SQLite file, so that a kill loses nothing.

An alert is kept once for each time that it fired. A task is one thing to do for it at one place (explain it, make or
close a ticket). What a task is about to do is written down before it is done: after a kill, ``tries`` says that the
other side may have it already, and it is asked first.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import orjson

from .alert import Alert
from .database import Database

__all__ = ["EXPLAIN", "Accepted", "FullError", "Kept", "Queue", "Task"]

_MOST: Final = 50_000
EXPLAIN: Final = "explain"
"""The place of a task that is to find the explanation."""
Phase = Literal["open", "close"]


class FullError(Exception):
    """As many alerts wait as may."""


class Accepted(NamedTuple):
    """What became of the alerts of one webhook."""

    new: int = 0
    ended: int = 0
    known: int = 0
    """Told before, or the end of one that was never told."""


class Kept(NamedTuple):
    """An alert with what was found."""

    id: int
    alert: Alert
    received: int
    report: dict[str, Any] | None
    """As ``Report.json`` has it; None until it is explained."""


class Task(NamedTuple):
    """One thing to do now."""

    id: int
    place: str
    phase: Phase
    since: int
    """Unix time in milliseconds from which it could be done."""
    tries: int
    """How often it was begun, this time included."""
    kept: Kept
    ref: str
    """To close: what was made when it was opened."""


class Queue:
    """The file, which one process has at a time. Any thread may call; times are Unix milliseconds.

    Raises UsageError when the folder cannot be used, and StoreError from everything else when the file fails.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self.version = 0
        """Grows whenever there may be something new to do."""
        self._database = Database(folder)
        self._transaction = self._database.transaction

    def close(self) -> None:
        """Gives the file back."""
        self._database.close()

    def accept(self, alerts: Iterable[Alert], now: int) -> Accepted:
        """Takes alerts in: all of them are on disk when it returns, or none is.

        Raises FullError when too many wait already.
        """
        new = ended = known = 0
        with self._transaction(durable=True) as db:
            (waiting,) = db.execute(
                "SELECT count(*) FROM tasks WHERE place = ? AND state = 'waiting'", (EXPLAIN,)
            ).fetchone()
            for alert in alerts:
                row = _find(db, alert)
                if alert.ends is not None:
                    if row is None or row[1] is not None:
                        known += 1
                        continue
                    _end(db, row[0], alert.ends, now)
                    ended += 1
                elif row is not None:
                    known += 1
                else:
                    if waiting >= self._limit:
                        raise FullError
                    waiting += 1
                    new += 1
                    _begin(db, alert, now)
        if new or ended:
            self.wake()
        return Accepted(new, ended, known)

    def wake(self) -> None:
        """Has those who wait look again."""
        with self._changed:
            self.version += 1
            self._changed.notify_all()

    def wait(self, version: int, seconds: float) -> None:
        """Until ``version`` is an old one, or for so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)

    def take(self, place: str, now: int, *, only_ended: bool = False) -> Task | None:
        """The next thing to do at a place; it counts as begun from now on. ``only_ended``: nothing that still fires."""
        ended = "AND t.ended = 1" if only_ended else ""
        with self._transaction(durable=place != EXPLAIN) as db:
            row = db.execute(
                f"""
                SELECT t.id, t.phase, t.since, t.tries, o.ref, a.id, a.fingerprint, a.starts, a.ends, a.received,
                       a.given, a.report
                FROM tasks t JOIN alerts a ON a.id = t.alert
                LEFT JOIN tasks o ON t.phase = 'close' AND o.alert = t.alert AND o.place = t.place AND o.phase = 'open'
                WHERE t.place = ? AND t.state = 'waiting' AND t.due <= ?
                      AND (t.phase = 'open' OR o.state = 'done') {ended}
                ORDER BY t.due, t.id LIMIT 1
                """,
                (place, now),
            ).fetchone()
            if row is None:
                return None
            db.execute("UPDATE tasks SET tries = tries + 1 WHERE id = ?", (row[0],))
        return Task(row[0], place, row[1], row[2], row[3] + 1, _kept(row[5:]), row[4] or "")

    def done(self, task: Task, now: int, ref: str = "", note: str = "") -> None:
        """It is done; ``ref`` names what was made, empty for nothing, and ``note`` says why nothing. What was opened
        with its end in it needs no closing.
        """
        with self._transaction(durable=bool(ref)) as db:
            if task.phase == "open" and task.kept.alert.ends is not None:
                db.execute(
                    "UPDATE tasks SET state = 'done', finished = ? WHERE alert = ? AND place = ? AND phase = 'close'",
                    (now, task.kept.id, task.place),
                )
            db.execute(
                "UPDATE tasks SET state = 'done', ref = ?, problem = ?, finished = ? WHERE id = ?",
                (ref, note, now, task.id),
            )
        self.wake()

    def explained(self, task: Task, report: Mapping[str, Any], places: Sequence[str], now: int) -> None:
        """Keeps the explanation, and with it what is to be done at each place."""
        with self._transaction() as db:
            db.execute("UPDATE alerts SET report = ? WHERE id = ?", (orjson.dumps(report).decode(), task.kept.id))
            db.execute("UPDATE tasks SET state = 'done', problem = '', finished = ? WHERE id = ?", (now, task.id))
            (ends,) = db.execute("SELECT ends FROM alerts WHERE id = ?", (task.kept.id,)).fetchone()
            for place in places:
                _add(db, task.kept.id, place, "open", now, ends is not None)
                if ends is not None:
                    _add(db, task.kept.id, place, "close", now, True)
        self.wake()

    def later(self, task: Task, due: int, problem: str, *, begun: bool = True) -> None:
        """It is to be tried again; ``begun`` is False where nothing was sent."""
        with self._transaction() as db:
            db.execute(
                "UPDATE tasks SET due = ?, problem = ?, tries = tries - ? WHERE id = ?",
                (due, problem, 0 if begun else 1, task.id),
            )

    def bury(self, task: Task, problem: str) -> None:
        """It is a dead letter: nobody tries it again until ``revive``."""
        with self._transaction() as db:
            db.execute("UPDATE tasks SET state = 'dead', problem = ? WHERE id = ?", (problem, task.id))

    def bury_old(self, place: str, before: int, problem: str) -> int:
        """Everything that has waited at a place since a time before is a dead letter; how many there were."""
        with self._transaction() as db:
            cursor = db.execute(
                "UPDATE tasks SET state = 'dead', problem = ? WHERE place = ? AND state = 'waiting' AND since < ?",
                (problem, place, before),
            )
            count: int = cursor.rowcount
        return count

    def revive(self, now: int) -> int:
        """Puts the dead letters back; how many."""
        with self._transaction() as db:
            cursor = db.execute(
                "UPDATE tasks SET state = 'waiting', since = ?, due = ? WHERE state = 'dead'", (now, now)
            )
            count: int = cursor.rowcount
        self.wake()
        return count

    def drop_places(self, places: Sequence[str]) -> int:
        """Gives up what waits for places that are not configured any more; how many."""
        marks = ", ".join("?" * (len(places) + 1))
        with self._transaction() as db:
            cursor = db.execute(
                "UPDATE tasks SET state = 'done', problem = 'is not configured any more'"
                f" WHERE state = 'waiting' AND place NOT IN ({marks})",
                (EXPLAIN, *places),
            )
            count: int = cursor.rowcount
        return count

    def made(self, place: str, since: int) -> list[int]:
        """When tickets were made at a place, from ``since`` on."""
        with self._transaction() as db:
            rows = db.execute(
                "SELECT finished FROM tasks WHERE place = ? AND phase = 'open' AND ref <> '' AND finished >= ?"
                " ORDER BY finished",
                (place, since),
            ).fetchall()
        return [row[0] for row in rows]

    def prune(self, before: int, long_before: int, most: int = _MOST) -> int:
        """Forgets alerts that have ended and came before a time, or of which there are more than ``most``; and those
        whose end was never told and that came ``long_before``. Some at once; how many.
        """
        with self._transaction() as db:
            cursor = db.execute(
                "DELETE FROM alerts WHERE id IN (SELECT id FROM alerts WHERE (ends IS NOT NULL AND (received < ?"
                " OR id <= (SELECT max(id) FROM alerts) - ?)) OR received < ? LIMIT 1000)",
                (before, most, long_before),
            )
            count: int = cursor.rowcount
        return count

    # ------------------------------------------------------------------------------------------------ what there is

    def counts(self) -> dict[str, dict[str, int]]:
        """For each place: how many tasks wait, are done, are dead."""
        found: dict[str, dict[str, int]] = {}
        with self._transaction() as db:
            for place, state, count in db.execute("SELECT place, state, count(*) FROM tasks GROUP BY place, state"):
                found.setdefault(place, {})[state] = count
        return found

    def dead(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest dead letters: ``key``, ``place``, ``phase`` and ``problem``."""
        with self._transaction() as db:
            rows = db.execute(
                "SELECT a.fingerprint || '-' || a.starts, t.place, t.phase, t.problem FROM tasks t"
                " JOIN alerts a ON a.id = t.alert WHERE t.state = 'dead' ORDER BY t.id DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [dict(zip(("key", "place", "phase", "problem"), row, strict=True)) for row in rows]

    def find(self, fingerprint: str, starts: int | None = None) -> Kept | None:
        """An alert at one time that it fired, else at the last one."""
        with self._transaction() as db:
            row = db.execute(
                f"SELECT {_COLUMNS} FROM alerts a WHERE fingerprint = ? AND (? IS NULL OR starts = ?)"
                " ORDER BY starts DESC LIMIT 1",
                (fingerprint, starts, starts),
            ).fetchone()
        return _kept(row) if row is not None else None

    def latest(self, limit: int, labels: Mapping[str, str] | None = None) -> list[Kept]:
        """The newest alerts, those that have these labels."""
        where = "".join(" AND json_extract(given, ?) = ?" for _ in labels or {})
        given = [text for key, value in (labels or {}).items() for text in (f'$.labels."{key}"', value)]
        with self._transaction() as db:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM alerts a WHERE 1{where} ORDER BY starts DESC, id DESC LIMIT ?", (*given, limit)
            ).fetchall()
        return [_kept(row) for row in rows]

    def states(self, alert: int) -> list[dict[str, Any]]:
        """What was done for an alert, in order: ``place``, ``phase``, ``state``, ``problem``, ``ref``."""
        with self._transaction() as db:
            rows = db.execute(
                "SELECT place, phase, state, problem, ref FROM tasks WHERE alert = ? ORDER BY id", (alert,)
            ).fetchall()
        return [dict(zip(("place", "phase", "state", "problem", "ref"), row, strict=True)) for row in rows]


_COLUMNS: Final = "a.id, a.fingerprint, a.starts, a.ends, a.received, a.given, a.report"


def _kept(row: Sequence[Any]) -> Kept:
    number, fingerprint, starts, ends, received, given, report = row
    said = orjson.loads(given)
    alert = Alert(fingerprint, starts, ends, said["labels"], said["annotations"], said["source"])
    return Kept(number, alert, received, orjson.loads(report) if report is not None else None)


def _find(db: sqlite3.Connection, alert: Alert) -> tuple[int, int | None] | None:
    """Id and end of the time that this alert is about.

    Alertmanager merges what two Prometheus say of one alert and keeps the earlier start, so a start before that of one
    that still fires is the same one. A later start is a new one, and ends what was never told to have ended.
    """
    row = db.execute(
        "SELECT id, ends FROM alerts WHERE fingerprint = ? AND (starts = ? OR (starts > ? AND ends IS NULL))"
        " ORDER BY starts LIMIT 1",
        (alert.fingerprint, alert.starts, alert.starts),
    ).fetchone()
    return tuple(row) if row is not None else None


def _begin(db: sqlite3.Connection, alert: Alert, now: int) -> None:
    for (missed,) in db.execute(
        "SELECT id FROM alerts WHERE fingerprint = ? AND ends IS NULL", (alert.fingerprint,)
    ).fetchall():
        _end(db, missed, alert.starts, now)
    given = {"labels": dict(alert.labels), "annotations": dict(alert.annotations), "source": alert.source}
    cursor = db.execute(
        "INSERT INTO alerts (fingerprint, starts, received, given) VALUES (?, ?, ?, ?)",
        (alert.fingerprint, alert.starts, now, orjson.dumps(given).decode()),
    )
    assert cursor.lastrowid is not None
    _add(db, cursor.lastrowid, EXPLAIN, "open", now, False)


def _end(db: sqlite3.Connection, alert: int, ends: int, now: int) -> None:
    db.execute("UPDATE alerts SET ends = ? WHERE id = ?", (ends, alert))
    db.execute("UPDATE tasks SET ended = 1 WHERE alert = ?", (alert,))
    for (place,) in db.execute(
        "SELECT place FROM tasks WHERE alert = ? AND phase = 'open' AND place <> ? ORDER BY id", (alert, EXPLAIN)
    ).fetchall():
        _add(db, alert, place, "close", now, True)


def _add(db: sqlite3.Connection, alert: int, place: str, phase: Phase, now: int, ended: bool) -> None:
    db.execute(
        "INSERT INTO tasks (alert, place, phase, state, ended, since, due) VALUES (?, ?, ?, 'waiting', ?, ?, ?)",
        (alert, place, phase, ended, now, now),
    )
