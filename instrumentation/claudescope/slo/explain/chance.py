"""How good the best of all slices looks where nothing is wrong."""

from __future__ import annotations

import math
import random
import statistics
from typing import Final

from .candidates import Candidates
from .sentences import LEAST

__all__ = ["Chance"]

_FEWEST: Final = 20
_ROWS: Final = 30_000
"""Rows that are simulated, at most, but for the fewest simulations."""
_EULER: Final = 0.5772156649015329
_NORMAL: Final = 30.0
"""A Poisson variable of a larger mean is drawn as a rounded normal one."""


class Chance:
    """The distribution of the best score: Gumbel's, fitted by moments to simulations of no change.

    Each simulation draws every cell's bad events from what is usual for it and takes the best score of all slices, so
    the number of slices and how they overlap are accounted for (Kulldorff 1997 takes the rank among the simulations;
    the fit says the same about small probabilities with fewer of them: Abrams, Kulldorff and Kleinman 2010).
    """

    __slots__ = ("_place", "_spread")

    def __init__(self, candidates: Candidates, shape: float, seed: int) -> None:
        randomness = random.Random(seed)
        lines = candidates.evidence.lines()
        count = max(_FEWEST, min(candidates.tuning.simulations, _ROWS // max(1, len(lines))))
        best = [_simulate(candidates, lines, shape, randomness) for _ in range(count)]
        self._spread = max(1e-3, statistics.stdev(best) * math.sqrt(6) / math.pi)
        self._place = statistics.fmean(best) - _EULER * self._spread

    def of(self, score: float) -> float:
        """P(the best score is at least this), but no less than one in a million."""
        return max(LEAST, -math.expm1(-math.exp(min(700.0, (self._place - score) / self._spread))))


def _simulate(candidates: Candidates, lines: list[tuple[int, int]], shape: float, randomness: random.Random) -> float:
    said = [
        _poisson(randomness, randomness.gammavariate(shape, mean / shape)) * slope + constant
        for mean, (slope, constant) in zip(candidates.expected, lines, strict=True)
    ]
    return max(
        (candidates.score(value, len(sums.dimensions)) for sums in candidates.scan.sums(said) for value in sums.values),
        default=0.0,
    )


def _poisson(randomness: random.Random, mean: float) -> int:
    if mean > _NORMAL:
        return max(0, round(randomness.gauss(mean, math.sqrt(mean))))
    bound, count, product = math.exp(-mean), 0, randomness.random()
    while product > bound:
        count += 1
        product *= randomness.random()
    return count
