"""How unusual a value is among others of which some are wild."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

__all__ = ["mad", "z_score"]

_NORMAL: Final = 1.482602218505602
"""1 over the normal distribution's upper quartile: makes the deviation that of a normal variable."""


def mad(values: Sequence[float]) -> float:
    """The median absolute deviation from the median, scaled to a standard deviation. ValueError without values."""
    if not values:
        raise ValueError("there is no deviation of nothing")
    middle = median(values)
    return _NORMAL * median(abs(value - middle) for value in values)


def z_score(value: float, others: Sequence[float], least: float = 0.0) -> float:
    """Standard deviations from the median of ``others``; their deviation counts as ``least`` at least.

    Infinite, with its sign, where that is 0 and the value is not the median; 0 where it is.
    """
    away = value - median(others)
    deviation = max(mad(others), least)
    if deviation:
        return away / deviation
    return 0.0 if not away else float("inf") if away > 0 else float("-inf")
