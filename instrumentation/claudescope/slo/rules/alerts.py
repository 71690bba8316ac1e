"""Who is told of what: an alert a tier, one when the data are gone, and one of a canary."""

from __future__ import annotations

from typing import Final

from ..burn import evidence_windows
from ..objective import Indicator, Notice, Objective, Ratio, Tier
from ..tiers import SHORTEST
from ..window import Window
from . import series
from .indicator import queries_of
from .links import Links
from .promql import number, over_window
from .queries import needed_setting
from .rule import Alert, Recording
from .significance import TOLERANCE, needed_expression

__all__ = ["absence", "absent_name", "asked_for", "base_labels", "burn_name", "burning", "group_text", "needed"]

_UNPROTECTED: Final = (
    " The objective has no counts, only a share: at low traffic a single failure can be the whole of it."
)


def burn_name(objective: Objective) -> str:
    """The name of the alerts of all tiers."""
    return objective.alert or f"{series.camel(objective.name)}BudgetBurn"


def absent_name(objective: Objective) -> str:
    """The name of the alert that there are no data."""
    return f"{series.camel(objective.name)}Absent"


def needed(objective: Objective) -> list[Recording]:
    """For each window that can be evidence, the bad events that it needs; nothing where the objective has no counts."""
    if isinstance(objective.source, Ratio):
        return []
    factors: dict[Window, float] = {}
    # the lowest factor of a window needs the most comparisons, and those are right for all
    for tier in objective.tiers:
        for window in evidence_windows(objective, tier):
            factors[window] = min(tier.factor, factors.get(window, tier.factor))
    labels = base_labels(objective)
    records = []
    for window, factor in sorted(factors.items()):
        total, each = series.total_events(objective, window), 1
        if window == SHORTEST:
            total, each = series.total_rate(objective), SHORTEST.seconds
        if expr := needed_expression(total, objective, window, factor, each):
            records.append(Recording(f"slo:sli_bad:needed{window}", expr, labels))
    return records


def _evidence(objective: Objective, tier: Tier) -> str:
    """That it is no chance: in one of the tier's windows are enough bad events."""
    found = []
    for window in evidence_windows(objective, tier):
        bad = series.bad_events(objective, window)
        if window == SHORTEST:
            bad = f"{SHORTEST.seconds} * {series.bad_rate(objective)}"
        found.append(f"{bad} + {number(TOLERANCE)} >= {series.needed_events(objective, window)}")
    return "(\n  " + "\n  or\n  ".join(found) + "\n)"


def burning(objective: Objective, links: Links) -> list[Alert]:
    """One alert a tier whose severity is not switched off."""
    notices = {"page": objective.page, "ticket": objective.ticket}
    return [
        _burn(objective, tier, notices[tier.severity], links)
        for tier in objective.tiers
        if not notices[tier.severity].disabled
    ]


def _burn(objective: Objective, tier: Tier, notice: Notice, links: Links) -> Alert:
    bound = number(tier.factor * objective.budget)
    long, short = (_plain(objective, f"{series.error_ratio(objective, w)} > {bound}") for w in (tier.long, tier.short))
    expr = f"{long}\nand\n{short}"
    if not isinstance(objective.source, Ratio) and (objective.alpha > 0 or objective.min_events > 0):
        expr += f"\nand\n{_evidence(objective, tier)}"
    budget, factor = number(objective.budget * 100), number(tier.factor)
    asked = f" ({asked_for(tier)})" if tier.asked is not None else ""
    summary = f"{objective.service}: {objective.name} uses up its error budget{group_text(objective)}"
    description = (
        f"{{{{ $value | humanizePercentage }}}} of the events of the last {tier.long} are bad, and {budget} % may be."
        f" This alert is for {factor} times as much{asked}, over {tier.long} and over {tier.short}."
    )
    if isinstance(objective.source, Ratio):
        description += _UNPROTECTED
    annotations = {"summary": summary, "description": description, **links.annotations(objective, str(tier.long))}
    if objective.description:
        annotations["objective"] = _literal(objective.description)
    tiers = {
        "severity": tier.severity,
        "burnrate_tier": tier.name,
        "long": str(tier.long),
        "short": str(tier.short),
        **({"sloth_severity": tier.severity} if "sloth_id" in series.identity(objective) else {}),
    }
    labels = {**base_labels(objective), **tiers, **objective.alert_labels, **notice.labels}
    annotations |= {**objective.alert_annotations, **notice.annotations}
    name = burn_name(objective)
    return Alert(name, expr, tier.wait.seconds, objective.keep_firing.seconds, labels, annotations)


def asked_for(tier: Tier) -> str:
    """Why the factor is not the one that was asked for."""
    assert tier.asked is not None
    why = "can never be, since it is over 100 %" if tier.asked > tier.factor else "is less than the budget allows"
    return f"{number(tier.asked)} times was asked for and {why}"


def absence(objective: Objective, links: Links) -> list[Alert]:
    """When the indicator has no data at all. Idle is not absent: counters that stand still are data.

    Of a group that vanishes nothing is said: models, versions and tools come and go, and a process that has started
    anew shows each only when it is used.
    """
    if objective.absent_after is None:
        return []
    if isinstance(objective.source, Ratio):
        parts = [objective.source.expression]
    else:
        queries = queries_of(objective)
        parts = [queries.total]
        if isinstance(objective.source, Indicator) and objective.source.bound is not None:
            parts.append(queries.bad)
    expr = "\nor\n".join(f"absent(\n{over_window(part, str(SHORTEST))}\n)" for part in parts)
    source = objective.source
    setting = needed_setting(source, objective.group_by) if isinstance(source, Indicator) else ""
    counts = f" It is counted by apps that run with {setting}." if setting else ""
    annotations = {
        "summary": f"{objective.service}: {objective.name} has no data",
        "description": f"Nothing has reported what it counts for {objective.absent_after}, so no alert can tell that"
        f" its budget burns.{counts}",
        **{name: link for name, link in links.annotations(objective, "1h").items() if name == "dashboard"},
    }
    labels = {**base_labels(objective), "severity": "ticket", **objective.alert_labels, **objective.ticket.labels}
    # the rate over 5 minutes is there for that long after the last sample
    wait = max(0, objective.absent_after.seconds - SHORTEST.seconds)
    return [Alert(absent_name(objective), expr, wait, 0, labels, annotations)]


def base_labels(objective: Objective) -> dict[str, str]:
    """Labels of all alerts of the objective."""
    return {**objective.labels, **series.identity(objective)}


def group_text(objective: Objective) -> str:
    """The alert's group in its text: `` for {{ $labels.x }}``."""
    groups = ", ".join(f"{{{{ $labels.{label} }}}}" for label in objective.group_by)
    return f" for {groups}" if groups else ""


def _literal(text: str) -> str:
    """A person's text, which is no template."""
    return text.replace("{{", '{{ "{{" }}')


def _plain(objective: Objective, expression: str) -> str:
    """Without the window's label, which sloth's series differ by."""
    return f"max without (sloth_window) ({expression})" if "sloth_id" in series.identity(objective) else expression
