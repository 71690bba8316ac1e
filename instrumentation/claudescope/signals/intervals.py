"""What a count or a share can say about what is behind it: confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

from . import binomial, poisson

__all__ = ["Interval", "median_interval", "poisson_interval", "wilson"]


class Interval(NamedTuple):
    """From ``low`` to ``high``, both inclusive."""

    low: float
    high: float


def wilson(count: int, trials: int, confidence: float = 0.95) -> Interval:
    """For a share, near its level on average and narrow (Wilson 1927). Raises ValueError without trials."""
    if trials <= 0 or not 0 <= count <= trials:
        raise ValueError("an interval for a share needs trials, and no more successes than these")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, spread = count / trials, z * z / trials
    middle = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return Interval(
        0.0 if count == 0 else max(0.0, (middle - half) / (1 + spread)),
        1.0 if count == trials else min(1.0, (middle + half) / (1 + spread)),
    )


def poisson_interval(count: int, confidence: float = 0.95) -> Interval:
    """For the mean behind a count of rare events, never below its level (Garwood 1936)."""
    if count < 0:
        raise ValueError("a count is not negative")
    side = (1 - confidence) / 2
    most = count + 10 * math.sqrt(count + 1) + 20
    low = _root(lambda mean: poisson.tail(count, mean) - side, 0.0, float(count)) if count else 0.0
    return Interval(low, _root(lambda mean: 1 - side - poisson.tail(count + 1, mean), most, 0.0))


def median_interval(ordered: list[float], confidence: float = 0.95) -> Interval:
    """For the median behind values in growing order, by the binomial distribution of how many are below it: whatever
    their distribution is, never below its level where there are 6 or more. Raises ValueError without values.
    """
    if not ordered:
        raise ValueError("there is no median of nothing")
    size, side = len(ordered), (1 - confidence) / 2
    rank = 0  # how many values may be left out at each end
    while rank + 1 <= (size - 1) // 2 and 1 - binomial.tail(rank + 1, size, 0.5) <= side:
        rank += 1
    return Interval(ordered[rank], ordered[size - 1 - rank])


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is negative at ``low`` and positive at ``high`` is 0, to the last bits but one."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
