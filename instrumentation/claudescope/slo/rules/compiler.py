"""Objectives to rules: one group an objective, and one for the sums of its period."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ...errors import UsageError
from ..objective import Indicator, Objective, Origin, Ratio
from ..tiers import INTERVAL, SHORTEST
from ..window import CalendarPeriod, Period
from . import series
from .alerts import absence, asked_for, base_labels, burning, needed
from .calendar import days_expression, hour_expression, start_expression
from .canary import canary_alert, compared
from .dialect import PROMETHEUS_3, Dialect
from .indicator import PERIOD_INTERVAL, counted, windows
from .links import LOCAL, Links
from .promql import number
from .queries import needed_setting
from .rule import Recording, Rule, RuleFile, RuleGroup

__all__ = ["compile"]

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def compile(  # noqa: A001 - it is what it does; nobody calls the built-in one here
    objectives: Iterable[Objective], dialect: Dialect = PROMETHEUS_3, links: Links = LOCAL
) -> RuleFile:
    """The rules of all objectives, in their order.

    Raises UsageError for an objective that cannot be a rule, or not in this dialect, with its file and line.
    """
    groups: list[RuleGroup] = []
    origins: dict[tuple[str, str], Origin] = {}
    seen: dict[str, Objective] = {}
    for objective in objectives:
        if first := seen.get(objective.id):
            raise _refused(
                objective,
                f"the objective {objective.id} is there twice, first at {first.origin.path}:{first.origin.line}",
                "Give one of them another name.",
            )
        seen[objective.id] = objective
        _check(objective, dialect)
        groups += _groups(objective, links)
        origins.setdefault((objective.origin.path, objective.origin.sha256), objective.origin)
    return RuleFile(tuple(groups), tuple(origins[key] for key in sorted(origins)))


def _groups(objective: Objective, links: Links) -> list[RuleGroup]:
    own = windows(objective)
    records = [record for window in own for record in counted(objective, window)]
    rules: tuple[Rule, ...] = (
        *records,
        *needed(objective),
        *compared(objective),
        *_facts(objective),
        *burning(objective, links),
        *absence(objective, links),
        *canary_alert(objective, links),
    )
    name = f"claudescope-slo-{objective.id}"
    return [
        RuleGroup(name, INTERVAL, rules, tuple(_notes(objective))),
        RuleGroup(f"{name}-period", PERIOD_INTERVAL, tuple(_period(objective))),
    ]


def _notes(objective: Objective) -> Iterable[str]:
    if isinstance(objective.source, Ratio):
        yield "It has no counts, only a share: a single failure at low traffic can fire its alerts."
    elif isinstance(objective.source, Indicator) and (setting := needed_setting(objective.source, objective.group_by)):
        yield f"Counted by apps that run with {setting}."
    for tier in objective.tiers:
        if tier.asked is not None:
            yield f"{tier.name}: {asked_for(tier)}, so it is for {number(tier.factor)} times."


def _facts(objective: Objective) -> list[Recording]:
    """What dashboards show beside the figures."""
    labels = base_labels(objective)
    budget = number(objective.budget)
    source = objective.source
    kind = source.measure if isinstance(source, Indicator) else "ratio" if isinstance(source, Ratio) else "events"
    told = {
        **labels,
        "claudescope_slo_measure": kind,
        "claudescope_slo_objective": number(objective.target * 100),
        "claudescope_slo_period": str(objective.period),
    }
    facts = [
        Recording("slo:objective:ratio", f"vector({number(objective.target)})", labels),
        Recording("slo:error_budget:ratio", f"vector({budget})", labels),
        Recording("slo:time_period:days", _days(objective.period), labels),
        Recording("slo:current_burn_rate:ratio", f"{series.error_ratio(objective, SHORTEST)} / {budget}", labels),
        Recording("claudescope_slo_info", "vector(1)", told),
    ]
    if "sloth_id" in labels:
        sloth = {
            "sloth_mode": "cli-gen-prom",
            "sloth_objective": number(objective.target * 100),
            "sloth_spec": "prometheus/v1",
            "sloth_version": "claudescope",
        }
        facts.append(Recording("sloth_slo_info", "vector(1)", {**labels, **sloth}))
        # sloth's series of a share have a label that this one must not have
        facts[3] = Recording(facts[3].name, f"max without (sloth_window) ({facts[3].expr})", labels)
    for tier in objective.tiers:
        told = {
            **labels,
            "severity": tier.severity,
            "burnrate_tier": tier.name,
            "long": str(tier.long),
            "short": str(tier.short),
        }
        facts.append(Recording("slo:tier:burn_rate", f"vector({number(tier.factor)})", told))
    return facts


def _days(period: Period) -> str:
    if isinstance(period, CalendarPeriod):
        return days_expression(period)
    return f"vector({number(period.seconds / 86_400)})"


def _period(objective: Objective) -> Iterable[Recording]:
    labels = base_labels(objective)
    if isinstance(objective.period, CalendarPeriod):
        yield Recording("slo:period:start_seconds", start_expression(objective.period), labels)
        yield Recording("slo:period:hour_seconds", hour_expression(), labels)
    yield from counted(objective, objective.period)
    ratio = f"{series.error_ratio(objective, objective.period)} / {number(objective.budget)}"
    if "sloth_id" in labels:
        ratio = f"max without (sloth_window) ({ratio})"
    yield Recording("slo:period_burn_rate:ratio", ratio, labels)
    left = f"1 - {series.of(objective, 'slo:period_burn_rate:ratio')}"
    yield Recording("slo:period_error_budget_remaining:ratio", left, labels)


def _check(objective: Objective, dialect: Dialect) -> None:
    source = objective.source
    if isinstance(source, Indicator) and source.native and not dialect.native_histograms:
        raise _refused(
            objective,
            f"native histograms (`native: true`) are not in Prometheus {dialect.version}",
            "Take a bucket boundary as the bound, or compile for --prometheus 3.",
        )
    for tier in objective.tiers:
        for window in (tier.short, tier.long):
            if window < SHORTEST or window.seconds % INTERVAL:
                raise _refused(
                    objective,
                    f"the window {window} of {tier.name} is under {SHORTEST} or no multiple of {INTERVAL}s",
                    f"Rates are over {SHORTEST} and recorded every {INTERVAL}s: take at least {SHORTEST}.",
                )
    if isinstance(source, Ratio) and (objective.canary or objective.min_events):
        what = "a canary" if objective.canary else "min_events"
        raise _refused(
            objective,
            f"{what} needs counts, and `raw` gives a share only",
            "Write the queries of bad and of all events under `events`.",
        )
    taken = {*series.identity(objective), *objective.group_by, "sloth_window"}
    given = Counter((*objective.labels, *objective.alert_labels, *objective.page.labels, *objective.ticket.labels))
    for label in given:
        if label in taken or not _LABEL.fullmatch(label):
            why = "is one that the rules set themselves" if label in taken else "is no name of a label"
            raise _refused(objective, f"the label {label!r} {why}", "Name it otherwise.")


def _refused(objective: Objective, what: str, fix: str) -> UsageError:
    place = f"{objective.origin.path}:{objective.origin.line}"
    return UsageError(f"{place}: {objective.name}: {what}.", fix)
