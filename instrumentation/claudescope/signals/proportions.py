"""Whether two shares differ by more than chance."""

from __future__ import annotations

import math

__all__ = ["z_score"]


def z_score(bad: float, total: float, other_bad: float, other_total: float) -> float:
    """The two-proportion z of the first share against the second, with the pooled variance: positive where the first
    one is higher; 0 where either has no events, or all or none of them are bad.
    """
    if total <= 0 or other_total <= 0:
        return 0.0
    pooled = (bad + other_bad) / (total + other_total)
    variance = pooled * (1 - pooled) * (1 / total + 1 / other_total)
    return (bad / total - other_bad / other_total) / math.sqrt(variance) if variance > 0 else 0.0
