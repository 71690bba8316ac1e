"""Tails of the binomial distribution."""

from __future__ import annotations

import math

__all__ = ["tail"]


def tail(count: int, trials: int, share: float) -> float:
    """P(X >= count) of a binomial variable, to 1e-10 relative up to 100,000 trials.

    Raises ValueError for a share that is not from 0 to 1, or fewer than 0 trials.
    """
    if not 0 <= share <= 1 or trials < 0:
        raise ValueError("a binomial distribution has 0 or more trials and a share from 0 to 1")
    if count <= 0:
        return 1.0
    if count > trials or share == 0:
        return 0.0
    if share == 1:
        return 1.0
    odds = share / (1 - share)
    upper = count > trials * share  # the terms fall away from the middle: add up the side that is small
    at = count if upper else count - 1
    term = math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(at + 1)
        - math.lgamma(trials - at + 1)
        + at * math.log(share)
        + (trials - at) * math.log1p(-share)
    )
    total = 0.0
    while term > total * 1e-17:
        total += term
        if upper:
            term *= (trials - at) / (at + 1) * odds
            at += 1
        else:
            term *= at / (trials - at + 1) / odds
            at -= 1
    return min(1.0, total) if upper else max(0.0, 1.0 - total)
