"""Tails and quantiles of the Poisson distribution, and the smallest count that is too many to be chance."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["critical_count", "critical_mean", "critical_means", "tail"]


def tail(count: int, mean: float) -> float:
    """P(X >= count) of a Poisson variable with ``mean`` expected events, to 1e-12 relative.

    Raises ValueError for a negative mean.
    """
    if mean < 0:
        raise ValueError("the mean of a Poisson distribution is not negative")
    if count <= 0:
        return 1.0
    if mean == 0:
        return 0.0
    if count > mean:  # the upper terms fall from the first one on, so few of them count
        term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        total, at = 0.0, count
        while term > total * 1e-17:
            total += term
            at += 1
            term *= mean / at
        return min(1.0, total)
    term = math.exp((count - 1) * math.log(mean) - mean - math.lgamma(count))
    total, at = 0.0, count - 1
    while at >= 0 and term > total * 1e-17:
        total += term
        term *= at / mean
        at -= 1
    return max(0.0, 1.0 - total)


def critical_count(mean: float, alpha: float, least: int = 2) -> int:
    """The smallest count k >= ``least`` with P(X >= k; mean) < ``alpha``."""
    low, high = least, least
    while tail(high, mean) >= alpha:
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        if tail(middle, mean) < alpha:
            high = middle
        else:
            low = middle + 1
    return low


def critical_mean(count: int, alpha: Callable[[float], float]) -> float:
    """The mean from which ``count`` events are chance: the root of P(X >= count; mean) = alpha(mean).

    By bisection, to 1e-9 relative. ``alpha`` must not grow with the mean.
    """
    low, high = 0.0, float(count)
    while tail(count, high) < alpha(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if tail(count, middle) < alpha(middle):
            low = middle
        else:
            high = middle
    return high


def critical_means(alpha: float, upto: int, least: int = 2) -> list[float]:
    """For k = least .. upto - 1: the mean from which k events are chance, so that k + 1 are needed.

    The critical count of a mean is ``least`` plus how many of these the mean has reached: a sum of comparisons, which
    PromQL can say.
    """
    return [critical_mean(count, lambda _: alpha) for count in range(least, upto)]
