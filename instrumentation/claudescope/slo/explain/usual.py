"""What is usual: how many bad events each cell was to be expected to have, and how far rates stray by themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..burn import Counts
from .cells import Cells
from .tuning import Tuning

__all__ = ["Usual", "log_probability", "quiet", "usual"]


@dataclass(frozen=True, slots=True)
class Usual:
    """The negative binomial distribution of each cell's bad events while nothing is wrong."""

    expected: tuple[float, ...]
    """Mean, for each row of the cells."""
    shape: float
    """Of the gamma distribution of rates around their mean, the same for all."""


def quiet(cells: Cells, tuning: Tuning) -> Cells:
    """The cells without the windows of the baseline that burned themselves, or had no events: they are not usual."""
    rates = []
    for at in range(cells.windows):
        total = sum(row.before[at].total for row in cells.rows)
        rates.append(sum(row.before[at].bad for row in cells.rows) / total if total else math.inf)
    finite = sorted(rate for rate in rates if rate < math.inf)
    if not finite:
        return cells
    most = tuning.burning * finite[(len(finite) - 1) // 2]
    keep = [at for at, rate in enumerate(rates) if rate < math.inf and (rate <= most or len(finite) < 3)]
    rows = (row._replace(before=tuple(row.before[at] for at in keep)) for row in cells.rows)
    kept = tuple(row for row in rows if row.now.total or any(counts.total for counts in row.before))
    return Cells(cells.dimensions, kept, len(keep))


def usual(cells: Cells, tuning: Tuning) -> Usual:
    """Expects of each cell its own rate in the baseline, and measures how well that foretold single windows.

    The cells must have events in the baseline.
    """
    before = cells.before
    rate = max(before.bad, 1.0) / before.total
    sums = [
        Counts(sum(counts.bad for counts in row.before), sum(counts.total for counts in row.before))
        for row in cells.rows
    ]
    expected = tuple(row.now.total * _rate(own, rate, tuning.prior) for row, own in zip(cells.rows, sums, strict=True))
    return Usual(expected, _shape(cells, sums, rate, tuning) if cells.windows > 1 else tuning.one_window)


def log_probability(count: float, mean: float, shape: float) -> float:
    """Of a negative binomial count, without the term that neither the mean nor the shape changes."""
    return (
        math.lgamma(count + shape)
        - math.lgamma(shape)
        - shape * math.log1p(mean / shape)
        + (count * math.log(mean / (shape + mean)) if count else 0.0)
    )


def _rate(own: Counts, rate: float, prior: float) -> float:
    """The mean of a gamma distribution: ``prior`` events at the whole's rate, and then what was seen."""
    return (own.bad + prior) / (own.total + prior / rate)


def _shape(cells: Cells, sums: Sequence[Counts], rate: float, tuning: Tuning) -> float:
    """The most likely one, each window foretold by the others."""
    seen = [
        (counts.bad, counts.total * _rate(_without(own, counts), rate, tuning.prior))
        for row, own in zip(cells.rows, sums, strict=True)
        for counts in row.before
        if counts.total
    ]
    return max(tuning.shapes, key=lambda shape: sum(log_probability(bad, mean, shape) for bad, mean in seen))


def _without(sums: Counts, part: Counts) -> Counts:
    return Counts(max(0.0, sums.bad - part.bad), max(0.0, sums.total - part.total))
