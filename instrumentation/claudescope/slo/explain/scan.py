"""Every slice of up to three labels, and how much more likely its bad events are if its rate went up."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

__all__ = ["DEPTH", "FACTORS", "Scan", "Scored", "Weights"]

DEPTH: Final = 3
"""Labels of a slice, at most."""
FACTORS: Final = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
"""How many times as high as usual a slice's rate may be."""
_LANE: Final = 1 << 63
_LANES: Final = struct.Struct(f"<{len(FACTORS)}Q")
_BIAS: Final = sum(_LANE << 64 * at for at in range(len(FACTORS)))
_MASK: Final = (1 << 64 * len(FACTORS)) - 1


class Scored(NamedTuple):
    """A slice, as places of dimensions and codes of their values, and its log likelihood ratio."""

    labels: tuple[tuple[int, int], ...]
    score: float


class Weights:
    """The log likelihood ratio of one cell, for each factor, as one integer of 64 bits a factor.

    A cell's bad events are negative binomial with mean ``m`` and shape ``r``; at ``f`` times the rate the logarithm of
    the ratio is ``b log(f (r + m) / (r + f m)) - r log((r + f m) / (r + m))``. For large ``r`` that is Poisson's
    ``b log f - (f - 1) m``, the expectation-based scan statistic (Neill, 2009); a small ``r`` bounds what one cell can
    say, however many events it has. It is linear in ``b`` and adds up over cells, so the sum of a slice is a sum of
    integers: all factors at once.
    """

    __slots__ = ("_constants", "_scale", "_slopes")

    def __init__(self, expected: Sequence[float], shape: float, bad: float) -> None:
        """``bad``: as many events as the sums can hold, at most."""
        # the sums of at most |log ratio| <= bad * log(32) + shape * cells * log(32) must fit 62 bits
        most = (bad + 1 + shape * len(expected)) * math.log(FACTORS[-1])
        self._scale = 2.0 ** min(20, 61 - math.ceil(math.log2(most)))
        self._slopes = []
        self._constants = []
        for mean in expected:
            grown = [math.log((shape + factor * mean) / (shape + mean)) for factor in FACTORS]
            self._slopes.append(tuple(math.log(f) - g for f, g in zip(FACTORS, grown, strict=True)))
            self._constants.append(tuple(-shape * g for g in grown))

    def of(self, bad: Iterable[float]) -> list[int]:
        """One integer a cell."""
        scale = self._scale
        return [
            sum(
                round((count * slope + constant) * scale) << 64 * at
                for at, (slope, constant) in enumerate(zip(slopes, constants, strict=True))
            )
            for count, slopes, constants in zip(bad, self._slopes, self._constants, strict=True)
        ]

    def packed(self) -> list[tuple[int, int]]:
        """Slope and constant of each cell as integers, for many questions with whole counts."""
        return [(self._pack(slopes), self._pack(constants)) for slopes, constants in zip(self._slopes, self._constants, strict=True)]

    def _pack(self, values: Sequence[float]) -> int:
        return sum(round(value * self._scale) << 64 * at for at, value in enumerate(values))

    def best(self, total: int) -> float:
        """The log likelihood ratio of a sum at its best factor."""
        lanes = _LANES.unpack(((total + _BIAS) & _MASK).to_bytes(_LANES.size, "little"))
        return (max(lanes) - _LANE) / self._scale


@dataclass(frozen=True, slots=True)
class _Cuboid:
    dimensions: tuple[int, ...]
    keys: tuple[tuple[int, ...], ...]
    """Codes of each slice."""
    rows: tuple[int, ...]
    """The rows that are in one of the slices..."""
    slots: tuple[int, ...]
    """...and in which."""


class Scan:
    """The slices of some rows; made once, asked with different counts."""

    def __init__(self, codes: Sequence[Sequence[int]]) -> None:
        """``codes``: for each row a code from 0 for each dimension, negative where its value is in no slice."""
        width = len(codes[0]) if codes else 0
        self._cuboids = [
            cuboid
            for size in range(1, min(DEPTH, width) + 1)
            for which in combinations(range(width), size)
            if (cuboid := _cuboid(codes, which)).keys
        ]

    def __len__(self) -> int:
        return sum(len(cuboid.keys) for cuboid in self._cuboids)

    def sums(self, values: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], ...], list[int]]]:
        """For each set of dimensions the codes of its slices and the sums of their rows' values."""
        for cuboid in self._cuboids:
            found = [0] * len(cuboid.keys)
            for row, slot in zip(cuboid.rows, cuboid.slots, strict=True):
                found[slot] += values[row]
            yield cuboid.dimensions, cuboid.keys, found


def _cuboid(codes: Sequence[Sequence[int]], which: tuple[int, ...]) -> _Cuboid:
    places: dict[tuple[int, ...], int] = {}
    rows, slots = [], []
    for at, row in enumerate(codes):
        key = tuple(row[dimension] for dimension in which)
        if min(key) >= 0:
            rows.append(at)
            slots.append(places.setdefault(key, len(places)))
    return _Cuboid(which, tuple(places), tuple(rows), tuple(slots))
