"""What one evaluation reads of one objective: the events of each window and group. Runs on a thread that reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ...slo.burn import Counts
from ...slo.objective import Objective
from ...slo.window import Window
from ..rollups.tiers import floor
from .windows import Known, counts_by_group, find_objective, history, last_event, period_start

__all__ = ["PERIOD", "GroupReading", "Reading", "read", "windows_of"]

PERIOD: Final = "period"
"""The name of the window that the budget is for."""
_SHOWN: Final = (300, 1800, 3600, 21_600, 86_400, 3 * 86_400)
"""Windows that are shown besides those of the tiers, in seconds."""
_SPARK_MS: Final = 300_000
_SPARK: Final = 72
"""Buckets of the picture: six hours of five minutes."""
_NOTHING: Final = Counts(0, 0)

LabelSet = tuple[tuple[str, str], ...]


class GroupReading(NamedTuple):
    """One label set of an objective, or all of its events."""

    labels: Mapping[str, str]
    windows: Mapping[str, Counts]
    """By name; ``PERIOD`` among them."""
    last_ms: int | None
    """When its latest bucket with events begins."""


class Reading(NamedTuple):
    """An objective at one evaluation."""

    known: Known | None
    """None while the ledger does not count it."""
    now_ms: int
    period_ms: int
    """When the period began."""
    groups: tuple[GroupReading, ...]
    """By the labels of ``group_by``; one without labels where there are none. Only those with events."""
    total: GroupReading
    canary: Mapping[LabelSet, tuple[Counts, Counts]]
    """By group: canary and baseline in its window."""
    spark: list[list[int]]
    """Begin in ms, bad, all: of the last hours, where there were events."""


def windows_of(objective: Objective) -> list[Window]:
    """The windows that an objective is evaluated over, the shortest first, without the period."""
    seconds = {*_SHOWN}
    for tier in objective.tiers:
        seconds |= {tier.short.seconds, tier.long.seconds}
    return [Window(one) for one in sorted(seconds) if one <= objective.period.seconds]


def read(db: sqlite3.Connection, objective: Objective, now_ms: int) -> Reading:
    """The counts at ``now_ms``; windows end there and do not hold it."""
    start = period_start(objective.period, now_ms)
    known = find_objective(db, objective.id)
    if known is None:
        empty = GroupReading({}, {}, None)
        return Reading(None, now_ms, start, (), empty, {}, [])
    spans = {str(window): now_ms - window.seconds * 1000 for window in windows_of(objective)}
    spans[PERIOD] = start
    by_window = {name: counts_by_group(db, known.number, from_ms, now_ms, now_ms) for name, from_ms in spans.items()}
    latest = last_event(db, known.number, now_ms)
    sets: dict[LabelSet, list[int]] = {}
    for group in known.groups:
        if group.number in latest:
            sets.setdefault(tuple((name, group.labels.get(name, "")) for name in objective.group_by), []).append(
                group.number
            )
    groups = tuple(_sum(dict(labels), numbers, by_window, latest) for labels, numbers in sorted(sets.items()))
    total = _sum({}, [group.number for group in known.groups], by_window, latest)
    end = floor(now_ms, _SPARK_MS) + _SPARK_MS
    spark = history(db, known.number, _SPARK_MS, end - _SPARK * _SPARK_MS, end)
    return Reading(known, now_ms, start, groups, total, _canary(db, objective, known, now_ms), spark)


def _sum(
    labels: Mapping[str, str],
    numbers: Iterable[int],
    by_window: Mapping[str, Mapping[int, Counts]],
    latest: dict[int, int],
) -> GroupReading:
    numbers = list(numbers)
    windows = {}
    for name, counts in by_window.items():
        some = [counts.get(number, _NOTHING) for number in numbers]
        windows[name] = Counts(sum(one.bad for one in some), sum(one.total for one in some))
    return GroupReading(labels, windows, max((latest[one] for one in numbers if one in latest), default=None))


def _canary(
    db: sqlite3.Connection, objective: Objective, known: Known, now_ms: int
) -> dict[LabelSet, tuple[Counts, Counts]]:
    canary = objective.canary
    if canary is None:
        return {}
    counts = counts_by_group(db, known.number, now_ms - canary.window.seconds * 1000, now_ms, now_ms)
    found: dict[LabelSet, tuple[Counts, Counts]] = {}
    for group in known.groups:
        value = group.labels.get(canary.label, "")
        if value not in (canary.canary, canary.baseline):
            continue
        key = tuple((name, group.labels.get(name, "")) for name in objective.group_by if name != canary.label)
        had = found.get(key, (_NOTHING, _NOTHING))
        more = counts.get(group.number, _NOTHING)
        place = int(value == canary.baseline)
        added = Counts(had[place].bad + more.bad, had[place].total + more.total)
        found[key] = (had[0], added) if place else (added, had[1])
    return found
