"""Traffic that a unit test of rules plays, and what a tier has to make of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..burn import ROUNDING, evidence_windows, needed
from ..objective import Objective, Ratio, Tier

__all__ = ["Scenario", "Stretch", "scenarios", "verdict"]

MINUTE: Final = 60
_BUSY: Final = 600
"""Events a minute: 10 a second."""
_SURE: Final = 1.1
"""What is nearer than this to a threshold is not tested: rates are not exact."""


class Stretch(NamedTuple):
    """Some minutes with a steady rate of events; None: no sample at all."""

    minutes: int
    total: float | None
    """Events a minute."""
    bad: float = 0
    """Of these."""


class Scenario(NamedTuple):
    """Traffic from minute 0 on, and the minutes at which the alerts are looked at."""

    name: str
    stretches: tuple[Stretch, ...]
    looks: tuple[int, ...]
    born: bool = False
    """The series of bad events is not there until it has something to count."""

    def counts(self, minute: float, window: float) -> tuple[float, float]:
        """Bad events and all, in the ``window`` minutes before ``minute``."""
        bad = total = begin = 0.0
        for stretch in self.stretches:
            end = begin + stretch.minutes
            share = max(0.0, min(end, minute) - max(begin, minute - window))
            bad, total, begin = bad + share * stretch.bad, total + share * (stretch.total or 0), end
        return bad, total


def scenarios(objective: Objective) -> list[Scenario]:
    """What every objective is tested with; where the objective cannot tell, a scenario is left out."""
    budget = objective.budget
    long = max([tier.wait.seconds for tier in objective.tiers], default=0) // MINUTE + 16
    found = [Scenario("quiet", (Stretch(20, _BUSY),), (20,))]
    shares = {"all events fail": 1.0, "20 % fail": 0.2}
    if budget < 0.5:
        shares = {"twice the budget": 2 * budget, **shares}
    for name, share in shares.items():
        found.append(Scenario(name, (Stretch(long, _BUSY, share * _BUSY),), (long,)))
    found += [
        Scenario(
            "a series of failures is born",
            (Stretch(12, _BUSY), Stretch(long, _BUSY, _BUSY)),
            (11, 12 + long),  # without the series, nothing has failed
            born=True,
        ),
        Scenario("no traffic", (Stretch(20, 0),), (20,)),
        Scenario("a gap", (Stretch(10, _BUSY), Stretch(8, None), Stretch(12, _BUSY)), (17, 30)),
    ]
    if not isinstance(objective.source, Ratio) and (objective.alpha > 0 or objective.min_events > 1):
        lonely = (Stretch(5, 0), Stretch(1, 1), Stretch(59, 0), Stretch(1, 1, 1), Stretch(20, 0))
        found.append(Scenario("one failure at one event an hour", lonely, tuple(range(66, 87, 4))))
    return found


def verdict(scenario: Scenario, objective: Objective, tier: Tier, minute: int) -> bool | None:
    """Whether the tier fires at that minute; None where it is too close to tell."""
    wait = -(-tier.wait.seconds // MINUTE)
    kept = -(-objective.keep_firing.seconds // MINUTE)
    now = [_holds(scenario, objective, tier, at) for at in range(minute - wait - 4, minute + 1)]
    if all(holds is True for holds in now) and minute > wait + 4:
        return True
    earlier = [_holds(scenario, objective, tier, at) for at in range(max(1, minute - wait - kept - 8), minute + 1)]
    return False if all(holds is False for holds in earlier) else None


def _holds(scenario: Scenario, objective: Objective, tier: Tier, minute: int) -> bool | None:
    bound = tier.factor * objective.budget
    shares = [scenario.counts(minute, window.seconds / MINUTE) for window in (tier.short, tier.long)]
    known: list[bool | None] = [_over(bad / total, bound) if total else False for bad, total in shares]
    if not isinstance(objective.source, Ratio):
        known.append(_evident(scenario, objective, tier, minute))
    if any(part is False for part in known):
        return False
    return None if None in known else True


def _evident(scenario: Scenario, objective: Objective, tier: Tier, minute: int) -> bool | None:
    enough: list[bool | None] = []
    for window in evidence_windows(objective, tier):
        bad, total = scenario.counts(minute, window.seconds / MINUTE)
        enough.append(_over(bad + ROUNDING, needed(total, objective, window)))
    if any(enough):
        return True
    return None if None in enough else False


def _over(value: float, bound: float) -> bool | None:
    if value > bound * _SURE:
        return True
    return None if value * _SURE > bound else False
