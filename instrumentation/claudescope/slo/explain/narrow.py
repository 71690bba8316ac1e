"""Cells without the labels that no slice can have: an id of which each event has its own, say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..burn import Counts
from .cells import Cell, Cells

__all__ = ["MANY", "REST", "narrowed"]

MANY: Final = 20_000
"""Rows from which rare values are put together, besides dimensions that are left out: the search takes a second."""
REST: Final = "\0rest"
"""Stands for all rare values of a dimension; no slice has it."""


def narrowed(cells: Cells, least: float, many: int = MANY) -> Cells:
    """The same events by the dimensions of which some value has ``least`` bad events now.

    With more than ``many`` rows the values that have fewer become one.
    """
    common = [_common(cells, at, least) for at in range(len(cells.dimensions))]
    kept = [at for at, values in enumerate(common) if values]
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


def _merged(labels: tuple[str, ...], rows: Sequence[Cell], windows: int) -> Cell:
    if len(rows) == 1:
        return rows[0]._replace(labels=labels)
    before = (_sum(row.before[at] for row in rows) for at in range(windows))
    return Cell(labels, _sum(row.now for row in rows), tuple(before))


def _sum(counts: Iterator[Counts]) -> Counts:
    both = list(counts)
    return Counts(sum(one.bad for one in both), sum(one.total for one in both))
