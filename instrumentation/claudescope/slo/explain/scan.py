"""Sums over every slice of up to three labels, all of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

__all__ = ["DEPTH", "Scan", "Sums"]

DEPTH: Final = 3
"""Labels of a slice, at most."""


class Sums(NamedTuple):
    """Slices of the same dimensions."""

    dimensions: tuple[int, ...]
    """Their places."""
    codes: tuple[tuple[int, ...], ...]
    """Of each slice, the values of these dimensions."""
    values: list[int]
    """Of each slice, the sum over its rows."""


@dataclass(frozen=True, slots=True)
class _Cuboid:
    dimensions: tuple[int, ...]
    codes: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    """The rows that are in one of the slices..."""
    slots: tuple[int, ...]
    """...and in which."""


class Scan:
    """The slices of some rows; made once, asked for the sums of different values."""

    def __init__(self, codes: Sequence[Sequence[int]]) -> None:
        """``codes``: for each row a code from 0 for each dimension, negative where its value is in no slice."""
        width = len(codes[0]) if codes else 0
        self._cuboids = [
            cuboid
            for size in range(1, min(DEPTH, width) + 1)
            for which in combinations(range(width), size)
            if (cuboid := _cuboid(codes, which)).codes
        ]

    def __len__(self) -> int:
        """How many slices there are."""
        return sum(len(cuboid.codes) for cuboid in self._cuboids)

    def sums(self, values: Sequence[int]) -> Iterator[Sums]:
        """For each set of dimensions the sums of the rows' values in each slice."""
        for cuboid in self._cuboids:
            found = [0] * len(cuboid.codes)
            for row, slot in zip(cuboid.rows, cuboid.slots, strict=True):
                found[slot] += values[row]
            yield Sums(cuboid.dimensions, cuboid.codes, found)


def _cuboid(codes: Sequence[Sequence[int]], which: tuple[int, ...]) -> _Cuboid:
    places: dict[tuple[int, ...], int] = {}
    rows, slots = [], []
    for at, row in enumerate(codes):
        key = tuple([row[dimension] for dimension in which])
        if min(key) >= 0:
            rows.append(at)
            slots.append(places.setdefault(key, len(places)))
    return _Cuboid(which, tuple(places), tuple(rows), tuple(slots))
