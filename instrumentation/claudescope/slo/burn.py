"""How fast a budget burns, from counts: the arithmetic that the rules, the plan and the embedded server share.

A tier fires while the share of bad events is over its bound in its short and in its long window, and is no chance: in
at least one of the objective's windows from its short to its long one, the bad events are more than the Poisson tail
allows. Few failures close together are evidence in a short window, and failures far apart in a long one; a window that
must be right for both is right for neither (the figures are in docs/slo-plan.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from ..signals.poisson import critical_count, critical_mean, tail
from .objective import Objective, Tier
from .window import Window

__all__ = ["ROUNDING", "Counts", "alpha_of", "burn_rate", "critical_means_of", "evidence_windows", "fires", "needed"]

ROUNDING: Final = 0.2
"""How much a count may lack. Prometheus's counts are rates times a window: not whole, and one failure of a process that
lived for two scrapes comes out as 1.5, of three as 1.75, which must not pass for two.
"""
_HOUR: Final = Window(3600)
_LEAST: Final = 1 / 3
_MOST: Final = 10.0


class Counts(NamedTuple):
    """Events of one window; floats, since rates times a window are."""

    bad: float
    total: float


def burn_rate(counts: Counts, budget: float) -> float | None:
    """How many times as fast as allowed the budget is used; None without events."""
    return counts.bad / counts.total / budget if counts.total > 0 else None


def alpha_of(alpha: float, window: Window, mean: float) -> float:
    """The chance that is allowed in a window in which ``mean`` bad events are expected while the target is just kept.

    Each bad event is an occasion for a false alarm, so an objective's ``alpha``, meant for one a day, is divided by how
    many a day the target allows at this traffic. It stays between a third and ten times what it is.
    """
    a_window = window.seconds / 86_400  # expected where one a day is
    return alpha * (_MOST if mean <= 0 else min(_MOST, max(_LEAST, a_window / mean)))


def critical_means_of(alpha: float, window: Window, upto: int, least: int = 2) -> list[float]:
    """For k = least .. upto - 1: the mean from which k events in the window are chance, so that k + 1 are needed.

    Growing; each by bisection, to 1e-9 relative.
    """
    return [critical_mean(count, lambda mean: alpha_of(alpha, window, mean)) for count in range(least, upto)]


def evidence_windows(objective: Objective, tier: Tier) -> tuple[Window, ...]:
    """The windows whose bad events can show that it is no chance, ascending: those of all tiers from the tier's short
    window to its long one.
    """
    every = {window for each in objective.tiers for window in (each.short, each.long)}
    return tuple(sorted(window for window in every if tier.short <= window <= tier.long))


def needed(total: float, objective: Objective, window: Window = _HOUR) -> int:
    """Bad events that a window with ``total`` events must hold to be no chance, at least 2 unless ``alpha`` is 0."""
    if objective.alpha <= 0:
        return objective.min_events
    mean = total * objective.budget
    return max(objective.min_events, critical_count(mean, alpha_of(objective.alpha, window, mean)))


def fires(objective: Objective, tier: Tier, counts: Mapping[str, Counts]) -> bool:
    """Whether a tier's condition holds now; its ``wait`` is the caller's.

    ``counts`` are by the window's spelling; those of the tier and of ``evidence_windows`` must be there.
    """
    bound = tier.factor * objective.budget
    for window in (tier.short, tier.long):
        bad, total = counts[str(window)]
        if total <= 0 or bad / total <= bound:
            return False
    return any(_enough(counts[str(window)], objective, window) for window in evidence_windows(objective, tier))


def _enough(counts: Counts, objective: Objective, window: Window) -> bool:
    """Whether the bad events are ``needed`` ones, without looking for that number."""
    count = math.floor(counts.bad + ROUNDING)
    if count < objective.min_events or objective.alpha <= 0:
        return count >= objective.min_events
    mean = counts.total * objective.budget
    alpha = alpha_of(objective.alpha, window, mean)
    if alpha <= 0.1 and count <= mean + math.sqrt(mean):  # whose tail is over .15
        return False
    return count >= 2 and tail(count, mean) < alpha
