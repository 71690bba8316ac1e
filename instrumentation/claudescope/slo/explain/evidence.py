"""How much more likely the bad events of a cell are if its rate went up, as numbers that add up over cells."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["FACTORS", "Evidence"]

FACTORS: Final = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
"""How many times as high as usual a slice's rate may be."""

_LANE: Final = 1 << 63
_LANES: Final = struct.Struct(f"<{len(FACTORS)}Q")
_BIAS: Final = sum(_LANE << 64 * at for at in range(len(FACTORS)))


class Evidence:
    """The log likelihood ratios of cells, one for each factor, as one integer with 64 bits a factor.

    A cell's bad events are negative binomial with mean ``m`` and shape ``r``. At ``f`` times the rate the logarithm of
    the ratio of their probability to the usual one is ``b log(f (r + m) / (r + f m)) - r log((r + f m) / (r + m))``.
    For large ``r`` that is Poisson's ``b log f - (f - 1) m``, the expectation-based scan statistic (Neill 2009); a
    small ``r`` bounds what one cell can say, however many events it has, so a slice is elevated only if many of its
    cells are. The logarithms of cells add up, so those of a slice are a sum of integers, all factors at once.
    """

    __slots__ = ("_constants", "_scale", "_slopes")

    def __init__(self, expected: Sequence[float], shape: float, bad: float) -> None:
        """``bad``: events of all cells together, at most; tells how many bits a sum needs."""
        most = (bad + 1 + shape * len(expected)) * math.log(FACTORS[-1])
        self._scale = 2.0 ** min(20, 61 - math.ceil(math.log2(most)))
        self._slopes: list[tuple[float, ...]] = []
        self._constants: list[tuple[float, ...]] = []
        for mean in expected:
            grown = [math.log((shape + factor * mean) / (shape + mean)) for factor in FACTORS]
            self._slopes.append(tuple(math.log(f) - g for f, g in zip(FACTORS, grown, strict=True)))
            self._constants.append(tuple(-shape * g for g in grown))

    def of(self, bad: Iterable[float]) -> list[int]:
        """One integer a cell."""
        return [
            self._pack([count * slope + constant for slope, constant in zip(slopes, constants, strict=True)])
            for count, slopes, constants in zip(bad, self._slopes, self._constants, strict=True)
        ]

    def lines(self) -> list[tuple[int, int]]:
        """Slope and constant of each cell: ``slope * bad + constant`` is its integer for a whole number ``bad``."""
        return [
            (self._pack(slopes), self._pack(constants))
            for slopes, constants in zip(self._slopes, self._constants, strict=True)
        ]

    def best(self, total: int) -> float:
        """The log likelihood ratio of a sum, at its best factor."""
        lanes = _LANES.unpack((total + _BIAS).to_bytes(_LANES.size, "little"))
        return float((max(lanes) - _LANE) / self._scale)

    def _pack(self, values: Sequence[float]) -> int:
        return sum(round(value * self._scale) << 64 * at for at, value in enumerate(values))
