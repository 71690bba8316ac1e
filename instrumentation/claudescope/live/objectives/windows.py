"""What the ledger holds of spans of time, by group. Runs on a thread that reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final, NamedTuple

import orjson

from ...slo.burn import Counts
from ...slo.window import CalendarPeriod, Period, Window
from ..rollups.tiers import TIERS, Piece, cover

__all__ = ["Group", "Known", "counts_by_group", "find_objective", "history", "last_event", "period_start"]

_EVERYWHERE: Final = {tier.bucket_ms: 2**62 for tier in TIERS[1:]}
"""Each tier holds all there is, so no frontier is in the way."""


class Group(NamedTuple):
    """A label set that an objective counts apart."""

    number: int
    labels: Mapping[str, str]


class Known(NamedTuple):
    """An objective in the ledger."""

    number: int
    since_ms: int | None
    """The oldest event that was there to be counted."""
    waiting: int
    """Stored rows that are yet to be counted."""
    groups: tuple[Group, ...]


def find_objective(db: sqlite3.Connection, name: str) -> Known | None:
    """What the ledger knows of an objective, by its id; None where it does not count it."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'objectives'").fetchone() is None:
        return None
    row = db.execute("SELECT id, since_ms, todo FROM objectives WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    number, since_ms, todo = tuple(row)
    groups = db.execute("SELECT id, labels FROM objective_groups WHERE objective = ? ORDER BY id", (number,))
    waiting = sum(up_to - after for _, after, up_to in orjson.loads(todo))
    return Known(number, since_ms, waiting, tuple(Group(one, orjson.loads(labels)) for one, labels in groups))


def counts_by_group(db: sqlite3.Connection, objective: int, from_ms: int, to_ms: int, now_ms: int) -> dict[int, Counts]:
    """Bad and all events of a span of time, by group; groups without any are left out.

    The span is widened to buckets that there still are: 10 s in the last hour, 1 min in the last two days, 5 min
    before.
    """
    found: dict[int, list[int]] = {}
    for piece in cover(from_ms, to_ms, _EVERYWHERE, now_ms):
        for group, bad, total in _rows(db, objective, piece):
            row = found.setdefault(group, [0, 0])
            row[0] += bad
            row[1] += total
    return {group: Counts(*row) for group, row in found.items()}


def _rows(db: sqlite3.Connection, objective: int, piece: Piece) -> Iterable[tuple[int, int, int]]:
    rows: Iterable[tuple[int, int, int]] = db.execute(
        "SELECT grp, sum(bad), sum(total) FROM objective_counts WHERE grp IN"
        " (SELECT id FROM objective_groups WHERE objective = ?) AND tier = ? AND bucket_ms >= ? AND bucket_ms < ?"
        " GROUP BY grp",
        (objective, piece.bucket_ms // 1000, piece.from_ms, piece.to_ms),
    )
    return rows


def history(db: sqlite3.Connection, objective: int, bucket_ms: int, from_ms: int, to_ms: int) -> list[list[int]]:
    """``[begin in ms, bad, all]`` of each bucket that has events; ``bucket_ms`` is a tier's."""
    rows = db.execute(
        "SELECT bucket_ms, sum(bad), sum(total) FROM objective_counts WHERE grp IN"
        " (SELECT id FROM objective_groups WHERE objective = ?) AND tier = ? AND bucket_ms >= ? AND bucket_ms < ?"
        " GROUP BY bucket_ms ORDER BY bucket_ms",
        (objective, bucket_ms // 1000, from_ms, to_ms),
    )
    return [list(row) for row in rows]


def last_event(db: sqlite3.Connection, objective: int, before_ms: int) -> dict[int, int]:
    """By group, when its latest bucket with events begins, of those before a time."""
    found: dict[int, int] = {}
    for tier in TIERS:  # the finest that has one says it best
        rows = db.execute(
            "SELECT grp, max(bucket_ms) FROM objective_counts WHERE grp IN"
            " (SELECT id FROM objective_groups WHERE objective = ?) AND tier = ? AND bucket_ms < ? GROUP BY grp",
            (objective, tier.bucket_ms // 1000, before_ms),
        )
        for group, at in rows:
            found.setdefault(group, at)
    return found


def period_start(period: Period, now_ms: int) -> int:
    """When the period began that the budget is for, in ms; a calendar's in UTC."""
    if isinstance(period, Window):
        return now_ms - period.seconds * 1000
    assert isinstance(period, CalendarPeriod)
    today = datetime.fromtimestamp(now_ms / 1000, timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    if period.unit == "week":
        start = today - timedelta(days=today.weekday())
    elif period.unit == "month":
        start = today.replace(day=1)
    else:
        start = today.replace(month=today.month - (today.month - 1) % 3, day=1)
    return int(start.timestamp() * 1000)
