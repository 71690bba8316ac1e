"""Cells without the labels that no slice can have: an id of which each event has its own, say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ..burn import Counts
from .cells import Cell, Cells

__all__ = ["MANY", "REST", "WIDE", "narrowed"]

MANY: Final = 20_000
"""Rows from which rare values are put together, besides dimensions that are left out: the search takes a second."""
WIDE: Final = 12
"""Dimensions that are searched, at most: all sets of three of them are looked at."""
REST: Final = "\0rest"
"""Stands for all rare values of a dimension; no slice has it."""


def narrowed(cells: Cells, least: float, many: int = MANY) -> Cells:
    """The same events by the dimensions of which some value has ``least`` bad events now.

    With more than ``many`` rows the values that have fewer become one. Of more than ``WIDE`` dimensions, those are kept
    of which a value rose most.
    """
    common = [_common(cells, at, least) for at in range(len(cells.dimensions))]
    kept = [at for at, values in enumerate(common) if values]
    if len(kept) > WIDE:
        risen = sorted(kept, key=lambda at: -_risen(cells, at, common[at]))
        kept = sorted(risen[:WIDE])
    crowded = len(cells.rows) > many
    if len(kept) == len(cells.dimensions) and not crowded:
        return cells
    sums: dict[tuple[str, ...], list[Cell]] = {}
    for row in cells.rows:
        key = tuple(row.labels[at] if not crowded or row.labels[at] in common[at] else REST for at in kept)
        sums.setdefault(key, []).append(row)
    rows = tuple(_merged(key, rows, cells.windows) for key, rows in sorted(sums.items()))
    return Cells(tuple(cells.dimensions[at] for at in kept), rows, cells.windows)


def _common(cells: Cells, at: int, least: float) -> set[str]:
    bad: dict[str, float] = {}
    for row in cells.rows:
        bad[row.labels[at]] = bad.get(row.labels[at], 0.0) + row.now.bad
    return {value for value, count in bad.items() if count >= least}


def _risen(cells: Cells, at: int, common: set[str]) -> float:
    """The log likelihood ratio of the value whose bad events exceed most what its own past and the whole's foretell."""
    rate = max(cells.before.bad, 1.0) / max(cells.before.total, 1.0)
    sums = {value: [0.0, 0.0, 0.0, 0.0] for value in common}
    for row in cells.rows:
        if (found := sums.get(row.labels[at])) is not None:
            found[0] += row.now.bad
            found[1] += row.now.total
            found[2] += sum(counts.bad for counts in row.before)
            found[3] += sum(counts.total for counts in row.before)
    best = 0.0
    for bad, total, bad_before, before in sums.values():
        expected = total * (bad_before + 1) / (before + 1 / rate)
        if bad > expected > 0:
            best = max(best, bad * math.log(bad / expected) - (bad - expected))
    return best


def _merged(labels: tuple[str, ...], rows: Sequence[Cell], windows: int) -> Cell:
    if len(rows) == 1:
        return rows[0]._replace(labels=labels)
    before = (_sum(row.before[at] for row in rows) for at in range(windows))
    return Cell(labels, _sum(row.now for row in rows), tuple(before))


def _sum(counts: Iterator[Counts]) -> Counts:
    both = list(counts)
    return Counts(sum(one.bad for one in both), sum(one.total for one in both))
