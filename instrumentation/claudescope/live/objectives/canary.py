"""Whether a deployment that is tried is worse than the one that is trusted."""

from __future__ import annotations

from ...signals.poisson import critical_count
from ...signals.proportions import z_score
from ...slo.burn import Counts, alpha_of
from ...slo.objective import Canary

__all__ = ["verdict"]


def verdict(rule: Canary, alpha: float, canary: Counts, baseline: Counts) -> str | None:
    """Why the canary is worse, in words; None where it is not."""
    if canary.total <= 0 or canary.bad < rule.min_events:
        return None
    share = canary.bad / canary.total
    if baseline.total > 0:
        other = baseline.bad / baseline.total
        score = z_score(*canary, *baseline)
        if score > rule.z and share - other >= rule.difference:
            return (
                f"{share:.2%} of {canary.total:g} events of {rule.canary} were bad in {rule.window}, and {other:.2%} of"
                f" {baseline.total:g} of {rule.baseline}: z = {score:.1f}."
            )
    mean = canary.total * rule.most
    chance = alpha_of(alpha, rule.window, mean)
    if share > rule.most and (alpha <= 0 or canary.bad >= critical_count(mean, chance)):
        return (
            f"{share:.2%} of {canary.total:g} events of {rule.canary} were bad in {rule.window};"
            f" {rule.most:.2%} may be."
        )
    return None
