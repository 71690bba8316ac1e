"""How likely it is that a window holds what a tier wants while the target is just kept: exact, not simulated."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ...signals.poisson import tail
from ..burn import critical_means_of, evidence_windows, needed
from ..objective import Objective, Tier
from ..window import Window
from .traffic import Traffic

__all__ = ["TierChance", "evidence_chance", "least_share", "share_chance", "tier_chances"]


class TierChance(NamedTuple):
    """Of one tier at one traffic, at any one moment while exactly the target is kept."""

    short_share: float
    """That the short window's share of bad events is over the bound."""
    long_share: float
    """The same of the long window."""
    evidence: dict[str, float]
    """That a window holds as many bad events as the clause on chance wants, by the window's spelling."""

    @property
    def at_most(self) -> float:
        """That the tier's condition holds: all of it is needed, and evidence of one window is enough."""
        return min(self.short_share, self.long_share, sum(self.evidence.values()))


def tier_chances(objective: Objective, traffic: Traffic) -> dict[str, TierChance]:
    """By the tier's name. Events are independent and come by chance, so bad and good ones are Poisson variables."""
    wanted = {window for tier in objective.tiers for window in evidence_windows(objective, tier)}
    evidence = {window: evidence_chance(objective, window, traffic) for window in wanted}
    return {
        tier.name: TierChance(
            share_chance(objective, tier, tier.short, traffic),
            share_chance(objective, tier, tier.long, traffic),
            {str(window): evidence[window] for window in evidence_windows(objective, tier)},
        )
        for tier in objective.tiers
    }


def share_chance(objective: Objective, tier: Tier, window: Window, traffic: Traffic) -> float:
    """P(bad > bound * (bad + good)) in a window."""
    bound = tier.factor * objective.budget

    def most_good(bad: int) -> int:
        # the largest count of good events that leaves the share above the bound
        return math.ceil(bad / bound - bad - 1e-9) - 1

    return _chance(objective, traffic.events(window.seconds), 1, most_good)


def evidence_chance(objective: Objective, window: Window, traffic: Traffic) -> float:
    """P(bad >= needed(bad + good)) in a window."""
    events = traffic.events(window.seconds)
    if objective.alpha <= 0:
        return tail(objective.min_events, events * objective.budget)

    def most_good(bad: int) -> int:
        mean = critical_means_of(objective.alpha, window, bad + 1, bad)[0]
        return math.ceil(mean / objective.budget - bad - 1e-9) - 1

    return _chance(objective, events, max(2, objective.min_events), most_good)


def _chance(objective: Objective, events: float, least: int, most_good: Callable[[int], int]) -> float:
    """P(bad >= least and good <= most_good(bad)), where ``most_good`` grows with bad.

    The sum over bad of its probability times that of so few good ones, which matters only between two counts: below the
    first the second probability is less than 1e-20, from the other on it is 1.
    """
    bad_mean, good_mean = events * objective.budget, events * objective.target
    spread = 10 * math.sqrt(good_mean) + 50
    first = _first(least, lambda bad: most_good(bad) >= good_mean - spread)
    last = _first(first, lambda bad: most_good(bad) > good_mean + spread)
    found, good, below = tail(last, bad_mean), -1, 0.0
    for bad in range(first, last):
        most = most_good(bad)
        if good < 0 <= most:
            good, below = most, 1 - tail(most + 1, good_mean)
        while good < most:
            good += 1
            below += _mass(good, good_mean)
        found += _mass(bad, bad_mean) * min(1.0, below)
    return min(1.0, found)


def _mass(count: int, mean: float) -> float:
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


def _first(least: int, holds: Callable[[int], bool]) -> int:
    """The smallest count from ``least`` on for which something holds that then holds for all greater ones."""
    low = high = least
    step = 1
    while not holds(high):
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def least_share(objective: Objective, tier: Tier, traffic: Traffic) -> float | None:
    """The smallest share of failures, going on for ever, that fires a tier when as many come as are expected; None
    where not even all failures do.

    The share is over the tier's bound, and one window holds as many bad events as the clause on chance wants.
    """
    wanted = []
    for window in evidence_windows(objective, tier):
        events = traffic.events(window.seconds)
        wanted.append(needed(events, objective, window) / events)
    share = max(tier.factor * objective.budget, min(wanted))
    return share if share <= 1 else None
