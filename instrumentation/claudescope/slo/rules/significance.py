"""The clause that keeps chance from waking anybody, as PromQL: how many bad events a window must hold.

A window with ``n`` events and a budget ``b`` expects ``n * b`` bad ones while the target is just kept. Needed is the
smallest count whose Poisson tail is below alpha (``slo.burn.needed``): 2, and one more for each mean of
``burn.critical_means_of`` that ``n * b`` has reached. One of a tier's ``evidence_windows`` must hold as many.

Few of these comparisons matter. A tier with ``factor`` also wants more than ``factor * m`` bad events in its long
window of mean m. No window's alpha is ever below the least (``alpha_of`` of an infinite mean), so none needs more than
the table of the least says; with ``t(k)`` its mean from which k are chance, k + 1 are needed from ``t(k)`` on. Once
``k + 1 <= factor * t(k)``, a share over the bound is too much to be chance by itself; and since ``(k + 1) / t(k)``
falls with k, it is for every larger mean too. So the sum ends at this mean, in shorter windows as well: the long one
has at least as many events, and is the evidence.

A factor near 1 never comes to that. Beyond ``MOST`` events the count then is the quantile of Cornish and
Fisher with a correction for continuity, which is the exact count or at most one beside it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from ...signals.poisson import critical_means
from ..burn import ROUNDING, alpha_of, critical_means_of
from ..objective import Objective
from ..window import Window
from .promql import number

__all__ = ["MOST", "TOLERANCE", "binding_means", "needed_count", "needed_expression", "quantile_terms"]

TOLERANCE: Final = ROUNDING
"""Events that may be missing from what is needed: rates give counts that are not whole."""
MOST: Final = 24
"""Counts up to which the clause compares one by one; where they end, alpha has come to its least in windows of 3d."""


@lru_cache(maxsize=256)
def binding_means(alpha: float, window: Window, factor: float) -> tuple[tuple[float, ...], bool]:
    """The means to compare with, ascending, and whether the clause binds beyond the last of them."""
    means = critical_means_of(alpha, window, MOST + 1)
    end = _end(alpha_of(alpha, window, math.inf), factor)
    return tuple(mean for mean in means if mean < end), end == math.inf


@lru_cache(maxsize=256)
def _end(least: float, factor: float) -> float:
    """The mean from which the share alone is evidence; infinite where that is beyond the comparisons."""
    for count, mean in enumerate(critical_means(least, MOST + 1), 2):
        if count + 1 <= factor * mean:
            return mean
    return math.inf


def quantile_terms(alpha: float) -> tuple[float, float, float]:
    """``z``, ``c`` and ``d`` of the count needed at a large mean m: ``ceil(m + z * sqrt(m) + c + d / sqrt(m))``.

    Cornish and Fisher's expansion for a Poisson variable, whose cumulants all are m, and half an event for continuity.
    """
    z = NormalDist().inv_cdf(1 - alpha)
    return z, (z * z - 1) / 6 + 0.5, (z - z**3) / 72


def needed_expression(total: str, objective: Objective, window: Window, factor: float, each: float = 1) -> str:
    """The bad events that a window needs for tiers of at least ``factor``; ``total`` is a series that is ``each`` times
    smaller than the window's events.

    Empty where the objective asks for none.
    """
    if objective.alpha <= 0:
        return f"0 * {total} + {objective.min_events}" if objective.min_events > 0 else ""
    unit = objective.budget * each
    means, goes_on = binding_means(objective.alpha, window, factor)
    lines = [f"{total} * 0 + 2", *(f"  + ({total} >=bool {number(mean / unit)})" for mean in means)]
    text = "\n".join(lines)
    if goes_on:
        z, c, d = quantile_terms(alpha_of(objective.alpha, window, math.inf))
        mean = f"({number(unit)} * {total})"
        beyond = f"ceil({mean} + {number(z)} * sqrt{mean} + {number(c)} + {number(d)} / sqrt{mean})"
        text = f"({beyond} and {total} >= {number(means[-1] / unit)})\nor\n({text})"
    if objective.min_events > 2:
        text = f"clamp_min(\n{text}\n, {objective.min_events})"
    return text


def needed_count(total: float, objective: Objective, window: Window, factor: float) -> float:
    """What ``needed_expression`` gives for ``total`` events: its meaning in Python."""
    if objective.alpha <= 0:
        return float(objective.min_events)
    mean = total * objective.budget
    means, goes_on = binding_means(objective.alpha, window, factor)
    count = 2.0 + sum(total >= at / objective.budget for at in means)
    if goes_on and total >= means[-1] / objective.budget:
        z, c, d = quantile_terms(alpha_of(objective.alpha, window, math.inf))
        count = math.ceil(mean + z * math.sqrt(mean) + c + d / math.sqrt(mean))
    return max(count, float(objective.min_events))
