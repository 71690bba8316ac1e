"""The plan of an objective: what fires its tiers, how soon, and how often by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..burn import evidence_windows, needed
from ..objective import Objective, Ratio, Severity, Tier
from ..tiers import can_fire
from .chance import TierChance, least_share, tier_chances
from .simulation import (
    MONTH,
    Delay,
    FalseAlarms,
    enabled,
    expected_delay,
    false_alarms,
    sampled_delays,
    summary,
    summed,
)
from .traffic import Traffic

__all__ = ["Detection", "ObjectivePlan", "TierPlan", "TrafficPlan", "plan"]

_PATIENCE: Final = 3
"""How many times longer than expected a sample of a delay waits before it counts as never."""
_WITHOUT: Final = 43_200
"""The same in seconds, where what is expected never fires."""


@dataclass(frozen=True, slots=True)
class Detection:
    """How soon a tier fires when a share of events begins to fail, in seconds."""

    share: float
    expected: int | None
    """If exactly as many come and fail as are expected; None: never."""
    sampled: Delay | None
    """None where nothing was simulated."""


@dataclass(frozen=True, slots=True)
class TierPlan:
    """One tier at one traffic."""

    tier: Tier
    budget: float
    """Share of events that may be bad."""
    least: float | None
    """The smallest share of failures that fires it, when as many come as expected; None: not even all of them."""
    needs: dict[str, tuple[float, int]]
    """Events expected in a window, and how many of them must be bad, by the window's spelling."""
    chance: TierChance
    detections: tuple[Detection, ...]
    alerts: int
    """In all simulated months."""


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """An objective at one traffic."""

    traffic: Traffic
    tiers: tuple[TierPlan, ...]
    false: FalseAlarms | None


@dataclass(frozen=True, slots=True)
class ObjectivePlan:
    """An objective at every traffic that was asked for; ``why_not`` says why there is none."""

    objective: Objective
    traffic: tuple[TrafficPlan, ...] = ()
    why_not: str = ""
    notes: tuple[str, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        """For scripts: shares from 0 to 1, times in seconds, None where something never happens."""
        return {
            "objective": self.objective.id,
            "target": self.objective.target,
            "why_not": self.why_not or None,
            "notes": list(self.notes),
            "traffic": [_traffic_json(each) for each in self.traffic],
        }


def plan(
    objective: Objective,
    traffic: Sequence[Traffic],
    *,
    months: int = 4,
    samples: int = 7,
    seed: int = 0,
    shares: Sequence[float] = (),
    before: float = 0.0,
    tell: Callable[[str], None] = lambda text: None,
) -> ObjectivePlan:
    """Plans for each traffic. Failures of 2 and 10 times the budget, of all events and of ``shares`` are looked at.

    ``months`` at exactly the target and ``samples`` of each delay are simulated, the same ones for the same seed; none
    for 0. ``tell`` hears how far it is.
    """
    if isinstance(objective.source, Ratio):
        return ObjectivePlan(objective, why_not="It has a share and no counts, so nothing can be said about chance.")
    asked = (2 * objective.budget, 10 * objective.budget, 1.0, *shares)
    every = sorted({min(1.0, round(share, 12)) for share in asked})
    planned = tuple(_at(objective, each, every, months, samples, seed, before, tell) for each in traffic)
    return ObjectivePlan(objective, planned, notes=tuple(_notes(objective)))


def _notes(objective: Objective) -> Iterable[str]:
    for tier in objective.tiers:
        if tier.asked is not None and not can_fire(tier.asked, objective.target):
            yield (
                f"{tier.name}: {tier.asked:g} times the budget of {objective.budget:.4g} is a share of"
                f" {tier.asked * objective.budget:.0%}, more than all events, and could never be; so it fires at"
                f" {tier.factor:.3g} times, when {tier.factor * objective.budget:.0%} fail."
            )
    for severity, notice in (("page", objective.page), ("ticket", objective.ticket)):
        if notice.disabled:
            yield f"{severity}s are switched off."


def _at(
    objective: Objective,
    traffic: Traffic,
    shares: Sequence[float],
    months: int,
    samples: int,
    seed: int,
    before: float,
    tell: Callable[[str], None],
) -> TrafficPlan:
    found = []
    for month in range(months):
        tell(f"{objective.id} at {traffic.text}: month {month + 1} of {months} at exactly the target")
        found.append(false_alarms(objective, traffic, f"{seed} month {month}", MONTH))
    false = summed(found) if found else None
    chances = tier_chances(objective, traffic)
    tiers = enabled(objective)
    detections: dict[str, list[Detection]] = {tier.name: [] for tier in tiers}
    for share in shares:
        expected = {tier.name: expected_delay(objective, tier, traffic, share, before) for tier in tiers}
        able = [tier for tier in tiers if share > tier.factor * objective.budget]  # the others fire by luck only
        delays: list[list[float | None]] = []
        for sample in range(samples if able else 0):
            tell(f"{objective.id} at {traffic.text}: {share:.3g} failures, sample {sample + 1} of {samples}")
            horizon = max(_PATIENCE * (expected[tier.name] or _WITHOUT) for tier in able)
            name = f"{seed} {share} {sample}"
            delays.append(sampled_delays(objective, able, traffic, share, name, max(7200, horizon), before))
        sampled = {tier.name: summary([row[at] for row in delays]) for at, tier in enumerate(able) if delays}
        for tier in tiers:
            detections[tier.name].append(Detection(share, expected[tier.name], sampled.get(tier.name)))
    planned = (
        TierPlan(
            tier,
            objective.budget,
            least_share(objective, tier, traffic),
            _needs(objective, tier, traffic),
            chances[tier.name],
            tuple(detections[tier.name]),
            false.tiers[tier.name] if false else 0,
        )
        for tier in tiers
    )
    return TrafficPlan(traffic, tuple(planned), false)


def _needs(objective: Objective, tier: Tier, traffic: Traffic) -> dict[str, tuple[float, int]]:
    found = {}
    for window in evidence_windows(objective, tier):
        events = traffic.events(window.seconds)
        found[str(window)] = events, needed(events, objective, window)
    return found


def _traffic_json(each: TrafficPlan) -> dict[str, Any]:
    return {
        "traffic": each.traffic.text,
        "events_per_second": each.traffic.per_second,
        "false": _false_json(each.false) if each.false else None,
        "tiers": [_tier_json(tier) for tier in each.tiers],
    }


def _false_json(false: FalseAlarms) -> dict[str, Any]:
    found: dict[str, Any] = {"months": false.months}
    severities: tuple[tuple[Severity, int], ...] = ("page", false.pages), ("ticket", false.tickets)
    for severity, count in severities:
        rate, interval = false.a_month(severity)
        found[f"{severity}s"] = {"count": count, "a_month": rate, "interval": list(interval)}
    return found


def _tier_json(each: TierPlan) -> dict[str, Any]:
    tier = each.tier
    return {
        "name": tier.name,
        "severity": tier.severity,
        "short_s": tier.short.seconds,
        "long_s": tier.long.seconds,
        "for_s": tier.wait.seconds,
        "factor": tier.factor,
        "asked": tier.asked,
        "least_share": each.least,
        "needs": {window: {"events": events, "bad": bad} for window, (events, bad) in each.needs.items()},
        "chance": {
            "short_share": each.chance.short_share,
            "long_share": each.chance.long_share,
            "evidence": each.chance.evidence,
            "at_most": each.chance.at_most,
        },
        "alerts": each.alerts,
        "detection": [
            {
                "share": one.share,
                "expected_s": one.expected,
                "median_s": one.sampled.median if one.sampled else None,
                "interval_s": list(one.sampled.interval) if one.sampled and one.sampled.interval else None,
                "samples": one.sampled.samples if one.sampled else 0,
            }
            for one in each.detections
        ],
    }
