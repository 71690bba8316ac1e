"""The rules of an objective, evaluated on counters: when each tier is pending, fires and is resolved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, compress, repeat
from operator import add, gt, mul, sub
from typing import Final

from ..burn import Counts, evidence_windows, fires
from ..objective import Objective, Tier
from ..tiers import FROM_COUNTERS, INTERVAL, SHORTEST
from .alerts import Alert, alerts
from .counter import Samples, rates

__all__ = ["STEP", "Evaluation"]

STEP: Final = INTERVAL
"""Seconds between two samples of a counter: each evaluation has one."""
_NEARLY: Final = 1 - 1e-9


class Evaluation:
    """What the generated rules see of one group's counters, one value an evaluation.

    ``bad`` and ``good`` are the counters of bad and of good events; their rates are added up as ``sum`` does. All have
    one length: that many evaluations are made, the first at the first sample.
    """

    def __init__(self, bad: Sequence[Samples], good: Sequence[Samples], step: int = STEP) -> None:
        self.length = len((*bad, *good)[0])
        self.step = step
        self._bad = bad
        self._good = good
        self._counts: dict[int, tuple[list[float], list[float]]] = {}
        self._sums: tuple[list[float], list[float]] | None = None

    def counts(self, seconds: int) -> tuple[list[float], list[float]]:
        """Bad and all events of the window that ends at each evaluation."""
        if seconds not in self._counts:
            self._counts[seconds] = self._read(seconds) if seconds <= FROM_COUNTERS.seconds else self._summed(seconds)
        return self._counts[seconds]

    def _read(self, seconds: int) -> tuple[list[float], list[float]]:
        bad, good = (self._rates(counters, seconds) for counters in (self._bad, self._good))
        total = map(add, bad, good)
        return list(map(mul, bad, repeat(float(seconds)))), list(map(mul, total, repeat(float(seconds))))

    def _rates(self, counters: Sequence[Samples], seconds: int) -> list[float]:
        found = [0.0] * self.length
        for samples in counters:
            found = list(map(add, found, rates(samples, seconds, self.step)))
        return found

    def _summed(self, seconds: int) -> tuple[list[float], list[float]]:
        if self._sums is None:
            bad, total = self.counts(SHORTEST.seconds)
            self._sums = list(accumulate(bad, initial=0.0)), list(accumulate(total, initial=0.0))
        width = seconds // self.step
        share = self.step / SHORTEST.seconds
        both = []
        for sums in self._sums:
            young = sums[1 : width + 1]
            both.append(list(map(mul, young + list(map(sub, sums[width + 1 :], sums[1:])), repeat(share))))
        return both[0], both[1]

    def true(self, objective: Objective, tier: Tier) -> list[int]:
        """The evaluations at which the tier's condition holds."""
        # first, without divisions, what is at least nearly over the bound in both windows; then the condition itself
        bound = tier.factor * objective.budget * _NEARLY
        (short_bad, short_total), (long_bad, long_total) = (self.counts(w.seconds) for w in (tier.short, tier.long))
        above = compress(range(self.length), map(gt, short_bad, map(mul, short_total, repeat(bound))))
        over = [at for at in above if long_bad[at] > bound * long_total[at]]
        windows = {window: self.counts(window.seconds) for window in evidence_windows(objective, tier)}
        return [
            at
            for at in over
            if fires(objective, tier, {str(w): Counts(bad[at], total[at]) for w, (bad, total) in windows.items()})
        ]

    def alerts(self, objective: Objective, tier: Tier) -> list[Alert]:
        """The tier's alerts."""
        wait, keep = (-(-seconds // self.step) for seconds in (tier.wait.seconds, objective.keep_firing.seconds))
        return alerts(self.true(objective, tier), self.length, wait, keep)
