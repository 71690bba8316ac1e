"""What is usual: how many bad events each cell was to be expected to have, and how far rates stray by themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..burn import Counts
from .cells import Cells

__all__ = ["Usual", "log_probability", "usual"]

PRIOR: Final = 5.0
"""Bad events at the whole's rate that are added to a cell's own history: a cell with none is as the whole."""
SHAPES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Shapes that are tried; 1 / sqrt(shape) is the coefficient of variation of a rate from window to window."""
ONE_WINDOW: Final = 4.0
"""The shape where the baseline has a single window, which says nothing about it: a rate may vary by half."""


@dataclass(frozen=True, slots=True)
class Usual:
    """The negative binomial distribution of each cell's bad events while nothing is wrong."""

    expected: tuple[float, ...]
    """Mean, for each row of the cells."""
    shape: float
    """Of the gamma distribution of rates around their mean, the same for all."""


def usual(cells: Cells) -> Usual:
    """Expects of each cell its own rate in the baseline, and measures how well that foretold single windows.

    The cells must have events in the baseline.
    """
    before = cells.before
    rate = max(before.bad, 1.0) / before.total
    sums = [
        Counts(sum(counts.bad for counts in row.before), sum(counts.total for counts in row.before))
        for row in cells.rows
    ]
    expected = tuple(row.now.total * _rate(own, rate) for row, own in zip(cells.rows, sums, strict=True))
    return Usual(expected, _shape(cells, sums, rate) if cells.windows > 1 else ONE_WINDOW)


def log_probability(count: float, mean: float, shape: float) -> float:
    """Of a negative binomial count, without the term that neither the mean nor the shape changes."""
    return (
        math.lgamma(count + shape)
        - math.lgamma(shape)
        - shape * math.log1p(mean / shape)
        + (count * math.log(mean / (shape + mean)) if count else 0.0)
    )


def _rate(own: Counts, rate: float) -> float:
    """The mean of a gamma distribution: ``PRIOR`` events at the whole's rate, and then what was seen."""
    return (own.bad + PRIOR) / (own.total + PRIOR / rate)


def _shape(cells: Cells, sums: Sequence[Counts], rate: float) -> float:
    """The most likely one, each window foretold by the others."""
    seen = [
        (counts.bad, counts.total * _rate(Counts(own.bad - counts.bad, own.total - counts.total), rate))
        for row, own in zip(cells.rows, sums, strict=True)
        for counts in row.before
        if counts.total
    ]
    return max(SHAPES, key=lambda shape: sum(log_probability(bad, mean, shape) for bad, mean in seen))
