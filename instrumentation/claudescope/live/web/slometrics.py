"""The objectives in ``/metrics``, under the names that the compiled rules record: dashboards fit both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import Metric

from ...slo.burn import Counts, burn_rate
from ...slo.objective import Indicator, Objective
from ..objectives.reading import PERIOD, GroupReading, Reading

__all__ = ["slo_families"]

_DAY: Final = 86_400
_NOW: Final = "5m"
"""The window of the current burn rate."""


class _Families:
    """Families by name, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self.found: dict[str, Metric] = {}

    def add(self, name: str, text: str, labels: dict[str, str], value: float) -> None:
        family = self.found.get(name)
        if family is None:
            family = self.found[name] = Metric(name, text, "gauge")
        family.add_sample(name, labels, value)


def slo_families(readings: Iterable[tuple[Objective, Reading]]) -> list[Metric]:
    """Gauges of the latest evaluation; an objective that is not counted yet has only what is known without counts."""
    families = _Families()
    for objective, reading in readings:
        own = {
            "claudescope_slo": objective.id,
            "claudescope_slo_name": objective.name,
            "claudescope_slo_service": objective.service,
            **objective.labels,
        }
        _about(families, objective, own)
        if reading.known is None or reading.known.waiting:
            continue
        for group in reading.groups:
            _figures(families, objective, group, {**own, **group.labels})
    return list(families.found.values())


def _about(families: _Families, objective: Objective, own: dict[str, str]) -> None:
    source = objective.source
    families.add("slo:objective:ratio", "Share of good events that is asked for.", own, objective.target)
    families.add("slo:error_budget:ratio", "Share of events that may be bad.", own, objective.budget)
    days = objective.period.seconds / _DAY
    families.add("slo:time_period:days", "Days of the period that the budget is for.", own, days)
    about = {
        "claudescope_slo_measure": source.measure if isinstance(source, Indicator) else "",
        "claudescope_slo_objective": f"{objective.target * 100:.10g}",
        "claudescope_slo_period": str(objective.period),
    }
    families.add("claudescope_slo_info", "What the objective is about.", {**own, **about}, 1)


def _figures(families: _Families, objective: Objective, group: GroupReading, own: dict[str, str]) -> None:
    for window, counts in group.windows.items():
        name = str(objective.period) if window == PERIOD else window
        if window == PERIOD and name in group.windows:
            continue
        families.add(f"slo:sli_bad:events{name}", "Bad events of the window.", own, counts.bad)
        families.add(f"slo:sli_total:events{name}", "Events of the window.", own, counts.total)
        if counts.total > 0:
            share = counts.bad / counts.total
            families.add(f"slo:sli_error:ratio_rate{name}", "Share of bad events of the window.", own, share)
    current = burn_rate(group.windows.get(_NOW, Counts(0, 0)), objective.budget)
    if current is not None:
        text = "How many times as fast as allowed the budget is used now."
        families.add("slo:current_burn_rate:ratio", text, own, current)
    spent = burn_rate(group.windows[PERIOD], objective.budget)
    if spent is not None:
        families.add("slo:period_burn_rate:ratio", "The same, over the period.", own, spent)
        text = "Share of the period's budget that is left."
        families.add("slo:period_error_budget_remaining:ratio", text, own, 1 - spent)
