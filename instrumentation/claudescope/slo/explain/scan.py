"""Every slice of up to three labels, with the likelihood ratio of its excess of bad events."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from .cells import Cells

__all__ = ["Candidate", "llr", "scan"]


class Candidate(NamedTuple):
    """A slice of the events of the window that is explained."""

    labels: tuple[tuple[str, str], ...]
    bad: float
    total: float
    expected: float
    llr: float


def llr(bad: float, expected: float) -> float:
    """Log likelihood ratio of a Poisson count against its expectation, 0 where it is not above it (Kulldorff 1997)."""
    if bad <= expected:
        return 0.0
    return bad * math.log(bad / max(expected, 1e-9)) - (bad - expected)


def scan(cells: Cells, depth: int = 3) -> Iterator[Candidate]:
    """Slices with more bad events than the baseline's rate makes of their total."""
    before = cells.before
    rate = before.bad / before.total if before.total else 0.0
    for size in range(1, depth + 1):
        for which in combinations(range(len(cells.dimensions)), size):
            sums: dict[tuple[str, ...], list[float]] = {}
            for row in cells.rows:
                sum_ = sums.setdefault(tuple(row.labels[at] for at in which), [0.0, 0.0])
                sum_[0] += row.now.bad
                sum_[1] += row.now.total
            for values, (bad, total) in sums.items():
                if bad > rate * total:
                    labels = tuple(zip((cells.dimensions[at] for at in which), values, strict=True))
                    yield Candidate(labels, bad, total, rate * total, llr(bad, rate * total))
