"""The conditions of an objective that names none itself: which windows, which factors, and what can never fire."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .objective import Severity, Tier
from .window import Window

__all__ = ["DEFAULT_TIERS", "FROM_COUNTERS", "INTERVAL", "SHORTEST", "can_fire", "capped", "scaled"]

_DAY: Final = 86_400
INTERVAL: Final = 30
"""Seconds between evaluations of the rules; their sums depend on it."""
SHORTEST: Final = Window(300)
"""The shortest window: its rates are recorded, and the sums are over them."""
FROM_COUNTERS: Final = Window(3600)
"""The longest window that rules read from the counters themselves; longer ones are sums over recorded 5m rates, which
cost little, but count an event over the nine evaluations after it, so they are 2m15s late.
"""


def _tier(name: str, severity: Severity, short: int, long: int, factor: float, wait: int) -> Tier:
    return Tier(name, severity, Window(short), Window(long), factor, Window(wait))


DEFAULT_TIERS: Final = (
    _tier("page-fast", "page", 300, 3600, 14.4, 60),
    _tier("page-slow", "page", 1800, 21_600, 6, 60),
    _tier("ticket-fast", "ticket", 7200, _DAY, 3, 300),
    _tier("ticket-slow", "ticket", 21_600, 3 * _DAY, 1, 900),
)
"""For a period of 30 days: 2 % of its budget in an hour, 5 % in six, 10 % in a day and in three (Site Reliability
Workbook, chapter 5). Pages wait for a minute: where a window holds two samples of a counter, ``rate`` can make more
than two failures of one, for as long as the window moves on by a sample.
"""


def scaled(tiers: tuple[Tier, ...], period_seconds: int) -> tuple[Tier, ...]:
    """The tiers for a period that is not 30 days: the factors change, so that each still stands for the same share of
    the budget; the windows stay, since they are how long a person may wait.
    """
    return tuple(replace(tier, factor=tier.factor * period_seconds / (30 * _DAY)) for tier in tiers)


def can_fire(factor: float, target: float) -> bool:
    """Whether a burn of ``factor`` is possible at all: a share of bad events is never over 1."""
    return factor * (1 - target) < 1


def capped(tier: Tier, target: float, most: float = 0.9) -> Tier:
    """The tier as it is where it can fire; else with the factor at which a share of ``most`` bad events fires it."""
    if can_fire(tier.factor, target):
        return tier
    return replace(tier, factor=most / (1 - target), asked=tier.factor)
