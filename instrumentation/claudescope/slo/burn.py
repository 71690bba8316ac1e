"""How fast a budget burns, from exact counts: the arithmetic that the rules, the plan and the embedded server share."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from ..signals.poisson import critical_count, tail
from .objective import Objective, Tier

__all__ = ["ROUNDING", "Counts", "burn_rate", "fires", "needed"]

ROUNDING: Final = 0.25
"""How much a count may lack. Prometheus's counts are rates times a window: not whole, and one failure of a process that
lived for two scrapes comes out as 1.5, which must not pass for two.
"""


class Counts(NamedTuple):
    """Events of one window; floats, since rates times a window are."""

    bad: float
    total: float


def burn_rate(counts: Counts, budget: float) -> float | None:
    """How many times as fast as allowed the budget is used; None without events."""
    return counts.bad / counts.total / budget if counts.total > 0 else None


def needed(total: float, objective: Objective) -> int:
    """Bad events that a long window with ``total`` events must hold before a tier of the objective may fire."""
    if objective.alpha <= 0:
        return objective.min_events
    return max(objective.min_events, critical_count(total * objective.budget, objective.alpha))


def fires(objective: Objective, tier: Tier, short: Counts, long: Counts) -> bool:
    """Whether a tier's condition holds now; its ``wait`` is the caller's."""
    bound = tier.factor * objective.budget
    if short.total <= 0 or long.total <= 0:
        return False
    if short.bad / short.total <= bound or long.bad / long.total <= bound:
        return False
    return _enough(math.floor(long.bad + ROUNDING), long.total, objective)


def _enough(count: int, total: float, objective: Objective) -> bool:
    """Whether ``count >= needed(total, objective)``, without looking for that one."""
    if count < objective.min_events or objective.alpha <= 0:
        return count >= objective.min_events
    mean = total * objective.budget
    if objective.alpha <= 0.1 and count <= mean + math.sqrt(mean):  # a tail of more than .15
        return False
    return count >= 2 and tail(count, mean) < objective.alpha
