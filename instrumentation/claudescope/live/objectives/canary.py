"""Whether a deployment that is tried is worse than the one that is trusted."""

from __future__ import annotations

import math

from ...signals.poisson import critical_count
from ...slo.burn import Counts
from ...slo.objective import Canary

__all__ = ["verdict", "z_score"]


def z_score(canary: Counts, baseline: Counts) -> float | None:
    """Of the difference of two shares, pooled: (p1 - p2) / sqrt(p (1 - p) (1/n1 + 1/n2)). None where it has none."""
    if canary.total <= 0 or baseline.total <= 0:
        return None
    pooled = (canary.bad + baseline.bad) / (canary.total + baseline.total)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / canary.total + 1 / baseline.total))
    return (canary.bad / canary.total - baseline.bad / baseline.total) / spread if spread > 0 else None


def verdict(rule: Canary, alpha: float, canary: Counts, baseline: Counts) -> str | None:
    """Why the canary is worse, in words; None where it is not."""
    if canary.total <= 0 or canary.bad < rule.min_events:
        return None
    share = canary.bad / canary.total
    score = z_score(canary, baseline)
    if score is not None:
        other = baseline.bad / baseline.total
        if score > rule.z and share - other >= rule.difference:
            return (
                f"{share:.2%} of {canary.total:g} events of {rule.canary} were bad in {rule.window}, and {other:.2%} of"
                f" {baseline.total:g} of {rule.baseline}: z = {score:.1f}."
            )
    if share > rule.most and (alpha <= 0 or canary.bad >= critical_count(canary.total * rule.most, alpha)):
        return (
            f"{share:.2%} of {canary.total:g} events of {rule.canary} were bad in {rule.window};"
            f" {rule.most:.2%} may be."
        )
    return None
