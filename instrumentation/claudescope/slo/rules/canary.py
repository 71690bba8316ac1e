"""A canary against its baseline: whether it is worse by more than chance, and by enough to matter.

Two shares of bad events, p1 of n1 and p2 of n2, differ by z standard errors of their difference while both are samples
of one share p, which is that of the two together (two-proportion z-test, pooled)::

    z = (p1 - p2) / sqrt(p * (1 - p) * (1 / n1 + 1 / n2))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..objective import Canary, Objective, Ratio
from . import series
from .alerts import base_labels, group_text
from .indicator import queries_of
from .links import Links
from .promql import among, equal, number, over_window, selector, total_by
from .rule import Alert, Recording
from .significance import TOLERANCE, needed_expression

__all__ = ["CANARY_WAIT", "canary_alert", "canary_name", "compared"]

CANARY_WAIT: Final = 60
"""Seconds for which a canary must be worse (``for``)."""


def canary_name(objective: Objective) -> str:
    """The name of the alert that a canary is worse."""
    return f"{series.camel(objective.name)}CanaryWorse"


def _series(objective: Objective, name: str, canary: Canary, *deployments: str) -> str:
    matchers = equal(series.ID, objective.id), *among(canary.label, deployments)
    return selector(f"slo:canary_{name}:events{canary.window}", *matchers)


def _sum(objective: Objective, name: str, canary: Canary, *deployments: str) -> str:
    return total_by(objective.group_by, _series(objective, name, canary, *deployments))


def _needed(objective: Objective) -> str:
    return series.of(objective, "slo:canary_bad:needed")


def compared(objective: Objective) -> list[Recording]:
    """Events of both deployments, the z-score and the difference of their shares, by group."""
    canary = objective.canary
    if canary is None or isinstance(objective.source, Ratio):
        return []
    queries = queries_of(objective, (canary.label,))
    times = "" if queries.per == "window" else f" * {canary.window.seconds}"
    total = f"{over_window(queries.total, str(canary.window))}{times} > 0"
    by = (*objective.group_by, canary.label)
    all_events = series.of(objective, f"slo:canary_total:events{canary.window}")
    bad = f"({over_window(queries.bad, str(canary.window))}){times}\nor\n0 * {total_by(by, all_events)}"
    bad1, total1 = (_sum(objective, name, canary, canary.canary) for name in ("bad", "total"))
    bad2, total2 = (_sum(objective, name, canary, canary.baseline) for name in ("bad", "total"))
    pooled = " / ".join(_sum(objective, name, canary, canary.canary, canary.baseline) for name in ("bad", "total"))
    difference = series.of(objective, "slo:canary:difference")
    deviation = f"sqrt(({pooled}) * (1 - {pooled}) * (1 / {total1} + 1 / {total2}))"
    labels = base_labels(objective)
    bounded = replace(objective, target=1 - canary.most, min_events=0)
    needed = needed_expression(_series(objective, "total", canary, canary.canary), bounded, canary.window, 1)
    return [
        Recording(f"slo:canary_total:events{canary.window}", total, labels),
        Recording(f"slo:canary_bad:events{canary.window}", bad, labels),
        Recording("slo:canary:ratio", f"{bad1} / {total1}", labels),
        Recording("slo:canary:difference", f"{bad1} / {total1}\n-\n{bad2} / {total2}", labels),
        *([Recording("slo:canary_bad:needed", needed, labels)] if needed else []),
        # where nothing is bad, or all is, there is no difference and no deviation to measure it by
        Recording("slo:canary:zscore", f"{total_by(objective.group_by, difference)}\n/\n({deviation} > 0)", labels),
    ]


def canary_alert(objective: Objective, links: Links) -> list[Alert]:
    """One alert for both reasons: worse than the baseline, or worse than its own bound."""
    canary = objective.canary
    if canary is None or isinstance(objective.source, Ratio):
        return []
    bad, by = _sum(objective, "bad", canary, canary.canary), objective.group_by
    z, difference, ratio = (
        total_by(by, series.of(objective, f"slo:canary:{name}")) for name in ("zscore", "difference", "ratio")
    )
    enough = f"{bad} + {number(TOLERANCE)} >= {canary.min_events}"
    own = f"{ratio} > {number(canary.most)}"
    if objective.alpha > 0:
        own += f"\n  and {bad} + {number(TOLERANCE)} >= {total_by(by, _needed(objective))}"
    worse = f"{ratio}\n  and {z} > {number(canary.z)}\n  and {difference} >= {number(canary.difference)}"
    expr = f"(({worse})\nor\n({own}))\nand {enough}"
    chance = f"{objective.service}: {canary.canary} fails more often at {objective.name}{group_text(objective)}"
    description = (
        f"{{{{ $value | humanizePercentage }}}} of its events of the last {canary.window} are bad: more than of"
        f" {canary.baseline} by over {number(canary.z)} standard errors, or over {number(canary.most * 100)} %."
    )
    labels = {
        **base_labels(objective),
        "severity": "page",
        canary.label: canary.canary,
        "long": str(canary.window),
        **objective.alert_labels,
        **objective.page.labels,
    }
    annotations = {
        "summary": chance,
        "description": description,
        **links.annotations(objective, str(canary.window)),
        **objective.alert_annotations,
        **objective.page.annotations,
    }
    return [Alert(canary_name(objective), expr, CANARY_WAIT, objective.keep_firing.seconds, labels, annotations)]
