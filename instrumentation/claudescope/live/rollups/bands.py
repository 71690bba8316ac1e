"""Bands of confidence and latency, and the key of a step in a joint histogram.

A key packs, from the highest bits: number (5 bits, capped), verdict (2), confidence band (6), latency source (2),
latency band (9). The first three are its head, the last two its tail.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from ... import semconv
from ..records import StepFigures

__all__ = [
    "CONFIDENCE_BANDS",
    "CONFIDENCE_BITS",
    "CONFIDENCE_MASK",
    "CONSUMER",
    "GRID",
    "HEAD_BITS",
    "INVALID",
    "LATENCY_BANDS",
    "LATENCY_BITS",
    "LATENCY_EDGES",
    "LATENCY_MASK",
    "QUANTILE_ERROR",
    "TAIL_BITS",
    "TAIL_MASK",
    "UNKNOWN",
    "VALID",
    "VERDICTS",
    "confidence_upper",
    "key_of",
    "latency_estimate",
    "latency_upper",
]

QUANTILE_ERROR: Final = 0.05
"""How far a latency quantile may be from a value at its rank, relative to it."""
UNKNOWN: Final = 0
VALID: Final = 1
INVALID: Final = 2
CONSUMER: Final = 3
"""The latency source that the figures leave out."""
VERDICTS: Final = {None: UNKNOWN, True: VALID, False: INVALID}

CONFIDENCE_BITS: Final = 6
CONFIDENCE_MASK: Final = (1 << CONFIDENCE_BITS) - 1
LATENCY_BITS: Final = 9
LATENCY_MASK: Final = (1 << LATENCY_BITS) - 1
TAIL_BITS: Final = 2 + LATENCY_BITS
TAIL_MASK: Final = (1 << TAIL_BITS) - 1
HEAD_BITS: Final = 5 + 2 + CONFIDENCE_BITS

GRID: Final = tuple(place / 20 for place in range(21))
"""Confidences that have a band of their own: 0, .05, ... 1. Between two of them lies one band."""
CONFIDENCE_BANDS: Final = 2 * len(GRID)
"""Band 0: none; ``2 * n + 1``: exactly ``GRID[n]``; ``2 * n``: between ``GRID[n - 1]`` and ``GRID[n]``."""

_SOURCES: Final = {None: 0, "measured": 1, "apportioned": 2, "consumer": CONSUMER}
_MAX_US: Final = 2**54
"""A duration in OTLP has 64 bits of nanoseconds: less than this."""


def _exact_points() -> list[int]:
    """Durations in us at which a condition is exact on both sides: bounds of the metric, and round ones."""
    points = {round(bound * 1_000_000) for bound in semconv.STEP_DURATION.boundaries}
    points |= {figure * 10**power // 10 for power in range(3, 9) for figure in (10, 20, 25, 50)}
    return sorted(points)


def _latency_edges() -> list[int]:
    edges = [0, 1]
    stops = sorted({edge for point in _exact_points() for edge in (point - 1, point)})
    while edges[-1] < _MAX_US:
        last = edges[-1]
        following = max(last + 1, last * 11 // 10)
        at = bisect_left(stops, last + 1)
        if at < len(stops):
            following = min(following, stops[at])
        edges.append(following)
    return edges


LATENCY_EDGES: Final = tuple(_latency_edges())
"""Band ``n`` holds the durations in us above edge ``n - 1`` up to and with edge ``n``; band 0 those of 0."""
LATENCY_BANDS: Final = len(LATENCY_EDGES)
_POINTS: Final = frozenset(_exact_points())
_LAST: Final = LATENCY_EDGES[-1]


def confidence_upper(band: int) -> float:
    """The highest confidence (inclusive) of a band beside its neighbour on the grid."""
    return GRID[band // 2]


def latency_estimate(band: int) -> int:
    """The duration in us that stands for a band: at most ``QUANTILE_ERROR`` from each in it."""
    if not band:
        return 0
    low, high = LATENCY_EDGES[band - 1] + 1, LATENCY_EDGES[band]
    return round(2 * low * high / (low + high))


def latency_upper(band: int) -> int:
    """The upper bound in us, inclusive, of a band as shown: exact points stay with what is below them."""
    edge = LATENCY_EDGES[band]
    return edge + 1 if edge + 1 in _POINTS else edge


def key_of(step: StepFigures) -> int:
    """The key of a step."""
    index = step["step_index"]
    if index > semconv.INDEX_CAP:
        index = semconv.INDEX_CAP
    confidence = step["confidence"]
    latency = step["latency_us"]
    key = index << 2 | VERDICTS[step["is_valid"]]
    if confidence is None:
        key <<= CONFIDENCE_BITS
    else:
        place = bisect_left(GRID, confidence)
        key = key << CONFIDENCE_BITS | 2 * place + (GRID[place] == confidence)
    return (key << 2 | _SOURCES.get(step["latency_source"], 1)) << LATENCY_BITS | bisect_left(
        LATENCY_EDGES, latency if latency < _LAST else _LAST
    )
