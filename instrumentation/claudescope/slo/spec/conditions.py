"""Tiers of an objective: those it writes, or the default ones made to fit its target and its period."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from ..objective import Severity, Tier
from ..tiers import DEFAULT_TIERS, INTERVAL, SHORTEST, can_fire, capped, scaled
from ..window import Period, Window
from .document import Location
from .models import Slo, Waits, WindowForm
from .report import Report, spelled

__all__ = ["LEAST_PERIOD", "default_tiers", "tiers_of"]

_WAITS: Final[dict[Severity, Window]] = {tier.severity: tier.wait for tier in reversed(DEFAULT_TIERS)}
"""Those of the fastest default tiers."""
LEAST_PERIOD: Final = 7 * 86_400
"""Seconds. Under a week, the default factors would be below 1 even for pages."""


def tiers_of(slo: Slo, target: float, period: Period, at: Location, report: Report) -> tuple[Tier, ...]:
    """The tiers; the report says what is wrong with them, and what was capped."""
    waits = slo.for_ or Waits()
    if slo.windows is None:
        if period.seconds < LEAST_PERIOD:
            report.error(
                (*at, "period"),
                f"{spelled((*at, 'period'))} is {period}: the default conditions are for a week and longer.",
                "Write `windows`, or a period of 7d.",
            )
            return ()
        return default_tiers(target, period, waits, at, report)
    tiers: list[Tier] = []
    for number, form in enumerate(slo.windows):
        where = (*at, "windows", number)
        tier = _written(form, waits)
        _check(tier, target, period, where, report)
        for other in tiers:
            if other.name == tier.name:
                report.error(
                    (*where, *(("name",) if form.name else ())),
                    f"{spelled(where)}: another condition is called {tier.name}.",
                    "Give each a `name` of its own.",
                )
            elif (other.severity, other.short, other.long) == (tier.severity, tier.short, tier.long):
                report.error(
                    where,
                    f"{spelled(where)}: {other.name} has the same severity and windows.",
                    "Keep the one with the smaller factor: it fires whenever the other does.",
                )
        tiers.append(tier)
    return tuple(tiers)


def _written(form: WindowForm, waits: Waits) -> Tier:
    severity: Severity = form.severity
    by_severity: Window | None = getattr(waits, severity)
    wait = next(wait for wait in (form.for_, by_severity, _WAITS[severity]) if wait is not None)
    name = form.name or f"{severity}-{form.short}-{form.long}"
    return Tier(name, severity, form.short, form.long, form.factor, wait)


def _check(tier: Tier, target: float, period: Period, where: Location, report: Report) -> None:
    for key, window in (("short", tier.short), ("long", tier.long)):
        if window.seconds < SHORTEST.seconds:
            report.error(
                (*where, key),
                f"{spelled((*where, key))} is {window}, under 5m.",
                "Write 5m or more: rates are recorded over five minutes.",
            )
        elif window.seconds % INTERVAL:
            report.error(
                (*where, key),
                f"{spelled((*where, key))} is {window}, no multiple of 30s.",
                f"Write {Window(round(window.seconds / INTERVAL) * INTERVAL)}: rules are evaluated every 30 s.",
            )
    if tier.short.seconds >= tier.long.seconds:
        report.error(
            (*where, "short"),
            f"{spelled((*where, 'short'))} is {tier.short} and not shorter than `long`, {tier.long}.",
            f"Write a twelfth of it: {Window(max(SHORTEST.seconds, tier.long.seconds // 12 // INTERVAL * INTERVAL))}.",
        )
    if tier.long.seconds > period.seconds:
        report.error(
            (*where, "long"),
            f"{spelled((*where, 'long'))} is {tier.long}, longer than the period, {period}.",
            f"Write at most {Window(period.seconds)}, or a longer `period`.",
        )
    if not _fires(tier.factor, target):
        share = tier.factor * (1 - target)
        report.error(
            (*where, "factor"),
            f"{spelled((*where, 'factor'))} is {tier.factor:g} and can never fire: at an objective of"
            f" {100 * target:.10g} that would be {100 * share:.4g} % failures.",
            f"Write at most {_largest(target):g}.",
        )


def _fires(factor: float, target: float) -> bool:
    """Whether it can fire, and not by a rounding error alone."""
    return can_fire(factor * (1 + 1e-9), target)


def _largest(target: float) -> float:
    """The largest factor of three digits that can fire."""
    most = 1 / (1 - target)
    digits = 2 - math.floor(math.log10(most))
    unit = 10.0**-digits
    found = math.floor(most / unit) * unit
    while not _fires(found, target):
        found -= unit
    return round(found, max(digits, 0))


def default_tiers(target: float, period: Period, waits: Waits, at: Location, report: Report) -> tuple[Tier, ...]:
    """Those of an objective that writes none, for a period of ``LEAST_PERIOD`` seconds or more."""
    tiers: list[Tier] = []
    for tier in scaled(DEFAULT_TIERS, period.seconds):
        wait = getattr(waits, tier.severity)
        tier = replace(tier, factor=round(tier.factor, 9), wait=tier.wait if wait is None else wait)
        if tier.factor < 1:
            report.warn(
                at,
                f"{tier.name}: its share of the budget of {period} is a factor of {tier.factor:.3g}; raised to 1, since"
                " below it the budget lasts.",
            )
            tier = replace(tier, factor=1.0, asked=tier.factor)
        # of failures so many that it is far from the objective, but that can happen
        limited = capped(tier, target, most=max(0.9, 1 - target / 2))
        if limited is not tier:
            report.warn(
                at,
                f"{tier.name}: {tier.factor:.4g} times the budget would be {100 * tier.factor * (1 - target):.4g} %"
                f" failures; capped to {limited.factor:.4g} times, {100 * limited.factor * (1 - target):.4g} %.",
            )
        tiers.append(replace(limited, factor=round(limited.factor, 9)))
    for number, tier in enumerate(tiers):
        for other in tiers[:number]:
            if math.isclose(other.factor, tier.factor) and (tier.asked or other.asked):
                report.warn(
                    at,
                    f"{tier.name} fires at the same share as {other.name}: it only adds something where there are too"
                    f" few events in {other.long}.",
                )
                break
    return tuple(tiers)
