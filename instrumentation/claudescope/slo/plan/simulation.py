"""Months at exactly the target, and failures that begin at a moment: events come by chance, and rules judge them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...signals.intervals import Interval, median_interval, poisson_interval
from ..objective import Objective, Severity, Tier
from .alerts import episodes
from .evaluator import STEP, Evaluation
from .traffic import Traffic, arrivals, counter

__all__ = [
    "MONTH",
    "Delay",
    "FalseAlarms",
    "enabled",
    "expected_delay",
    "false_alarms",
    "sampled_delays",
    "summary",
    "summed",
]

MONTH: Final = 30 * 86_400
"""Seconds."""


class FalseAlarms(NamedTuple):
    """What a month (or several) at exactly the target was disturbed by."""

    months: int
    pages: int
    tickets: int
    tiers: dict[str, int]
    """Alerts by the tier's name; a page can be two of them."""

    def a_month(self, severity: Severity) -> tuple[float, Interval]:
        """How many a month, with the 95 % interval of a Poisson variable."""
        count = self.pages if severity == "page" else self.tickets
        low, high = poisson_interval(count)
        return count / self.months, Interval(low / self.months, high / self.months)


class Delay(NamedTuple):
    """Seconds from when failures begin to when a tier fires."""

    median: float | None
    """None where more than half of the samples did not fire in time."""
    interval: Interval | None
    """For the median, at 95 %."""
    samples: int


def false_alarms(objective: Objective, traffic: Traffic, seed: str, seconds: int = MONTH) -> FalseAlarms:
    """One month of a service that starts with it, and fails as often as the target just allows."""
    chance, steps = random.Random(seed), seconds // STEP
    mean = traffic.events(STEP)
    bad = counter(arrivals(chance, mean * objective.budget, steps))
    good = counter(arrivals(chance, mean * objective.target, steps))
    evaluation = Evaluation([bad], [good])
    fired = {tier.name: evaluation.alerts(objective, tier) for tier in enabled(objective)}
    disturbed = {
        severity: len(
            episodes((fired[tier.name] for tier in enabled(objective) if tier.severity == severity), evaluation.length)
        )
        for severity in ("page", "ticket")
    }
    tiers = {name: sum(alert.fired is not None for alert in alerts) for name, alerts in fired.items()}
    return FalseAlarms(1, disturbed["page"], disturbed["ticket"], tiers)


def summed(months: Sequence[FalseAlarms]) -> FalseAlarms:
    """Several months as one figure."""
    tiers = {name: sum(month.tiers[name] for month in months) for name in months[0].tiers} if months else {}
    return FalseAlarms(
        sum(month.months for month in months),
        sum(month.pages for month in months),
        sum(month.tickets for month in months),
        tiers,
    )


def enabled(objective: Objective) -> tuple[Tier, ...]:
    """The tiers that tell anybody."""
    off = {severity for severity, notice in (("page", objective.page), ("ticket", objective.ticket)) if notice.disabled}
    return tuple(tier for tier in objective.tiers if tier.severity not in off)


def expected_delay(objective: Objective, tier: Tier, traffic: Traffic, share: float, before: float = 0.0) -> int | None:
    """Seconds from when a share of all events begins to fail to when a tier fires, if exactly as many events come and
    fail as are expected; None if it does not fire.

    Before that the service has been up for as long as the long window, with a share of ``before`` failing.
    """
    if max(share, before) <= tier.factor * objective.budget:
        return None
    history = tier.long.seconds // STEP
    steps = history + (tier.wait.seconds + objective.keep_firing.seconds) // STEP + 12
    mean = traffic.events(STEP)
    parts = [[mean * before] * history + [mean * share] * steps]
    parts.append([mean - events for events in parts[0]])
    evaluation = Evaluation([counter(parts[0])], [counter(parts[1])])
    return _first(objective, tier, evaluation, history)


def _first(objective: Objective, tier: Tier, evaluation: Evaluation, begin: int) -> int | None:
    """Seconds after the evaluation ``begin`` to the first at which the tier fires; 0 where it did all along."""
    for alert in evaluation.alerts(objective, tier):
        if alert.fired is not None and (alert.resolved is None or alert.resolved > begin):
            return max(0, alert.fired - begin) * STEP
    return None


def sampled_delays(
    objective: Objective,
    tiers: Sequence[Tier],
    traffic: Traffic,
    share: float,
    seed: str,
    horizon: int,
    before: float = 0.0,
) -> list[float | None]:
    """Seconds until each of some tiers fires, once: events come by chance, and failures begin between two evaluations.
    None for a tier that does not fire within ``horizon`` seconds.
    """
    chance = random.Random(seed)
    history = max(tier.long.seconds for tier in tiers) // STEP
    steps = horizon // STEP + 1
    mean, phase = traffic.events(STEP), chance.random()
    bad = arrivals(chance, mean * before, history) + arrivals(chance, mean * share, steps)
    good = arrivals(chance, mean * (1 - before), history) + arrivals(chance, mean * (1 - share), steps)
    # failures begin when a share ``phase`` of the step after the history is over
    for events, was, becomes in ((bad, before, share), (good, 1 - before, 1 - share)):
        events[history] = sum(arrivals(chance, mean * (was * phase + becomes * (1 - phase)), 1))
    evaluation = Evaluation([counter(bad)], [counter(good)])
    delays = (_first(objective, tier, evaluation, history) for tier in tiers)
    return [None if delay is None else max(0.0, delay - phase * STEP) for delay in delays]


def summary(delays: Sequence[float | None]) -> Delay:
    """The median of samples; one without an end is longer than all others."""
    ordered = sorted(float("inf") if delay is None else delay for delay in delays)
    middle = ordered[(len(ordered) - 1) // 2]
    if middle == float("inf"):
        return Delay(None, None, len(ordered))
    return Delay(middle, median_interval(ordered), len(ordered))
