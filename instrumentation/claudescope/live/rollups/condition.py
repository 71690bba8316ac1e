"""A step filter's conditions on figures, as tables over the keys of a histogram."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import Final, NamedTuple

from ... import semconv
from ..filters import StepFilter
from .bands import (
    CONFIDENCE_BANDS,
    CONFIDENCE_BITS,
    GRID,
    HEAD_BITS,
    INVALID,
    LATENCY_BANDS,
    LATENCY_BITS,
    LATENCY_EDGES,
    TAIL_BITS,
    UNKNOWN,
    VALID,
    VERDICTS,
)

__all__ = ["Condition", "condition_of"]

_HEADS: Final = b"".join(
    (b"\0" * CONFIDENCE_BANDS + b"\2" * (64 - CONFIDENCE_BANDS)) * 3 + b"\2" * 64 for _ in range(1 << HEAD_BITS - 8)
)
"""By head: 0, or 2 where no step has it."""
_KEPT: Final = re.compile(b"\1[\1\2]*")
"""A run of heads that are kept; those that no step has do not part it."""


class Condition(NamedTuple):
    """Which keys a filter keeps. ``exact`` is False where a bound was moved to an edge of the bands."""

    ranges: tuple[tuple[int, int], ...]
    """Of keys: those whose number, verdict and confidence it keeps; growing, from inclusive to exclusive."""
    tails: bytes | None
    """By source and latency band: 1 where it keeps them; None for all."""
    exact: bool


@lru_cache(64)
def condition_of(filter: StepFilter) -> Condition:
    """The condition of a filter; its dimensions (service, labels, ...) are not looked at."""
    low, high, exact_confidence = _confidence_bands(filter)
    heads = bytearray(_HEADS)
    for index in filter.index or range(semconv.INDEX_CAP + 1):
        for verdict in {VERDICTS[value] for value in filter.valid} or (UNKNOWN, VALID, INVALID):
            head = (index << 2 | verdict) << CONFIDENCE_BITS
            heads[head + low : head + high] = b"\1" * (high - low)
    ranges = tuple((run.start() << TAIL_BITS, run.end() << TAIL_BITS) for run in _KEPT.finditer(heads))
    tails, exact_latency = _tails(filter)
    return Condition(ranges, tails, exact_confidence and exact_latency)


def _confidence_bands(filter: StepFilter) -> tuple[int, int, bool]:
    """First band, band after the last, and whether these are the condition exactly."""
    low, high, exact = 0, CONFIDENCE_BANDS, True
    if filter.confidence_known is False:
        high = 1
    ranged = filter.confidence_min is not None or filter.confidence_max is not None
    if filter.confidence_known or ranged:
        low = 1
    if filter.confidence_min is not None and filter.confidence_min > 0:
        place, same = _nearest(GRID, filter.confidence_min)
        low = 2 * place + 1 if filter.confidence_min <= 1 else CONFIDENCE_BANDS
        exact = same or filter.confidence_min > 1
    if filter.confidence_max is not None and filter.confidence_max <= 1:
        place, same = _nearest(GRID, filter.confidence_max)
        high = min(high, 2 * place + 1)
        exact = exact and (same or filter.confidence_max < 0)
    return low, max(low, high), exact


def _tails(filter: StepFilter) -> tuple[bytes | None, bool]:
    if filter.latency_min_us is None and filter.latency_max_us is None:
        return None, True
    low, high, exact = 0, LATENCY_BANDS, True
    if filter.latency_min_us is not None and filter.latency_min_us > 0:
        place, same = _nearest(LATENCY_EDGES, filter.latency_min_us - 1)
        low, exact = place + 1, same
    if filter.latency_max_us is not None:
        place, same = _nearest(LATENCY_EDGES, filter.latency_max_us - 1)
        high, exact = place + 1 if filter.latency_max_us > 0 else 0, exact and (same or filter.latency_max_us <= 0)
    tails = bytearray(1 << TAIL_BITS)
    for source in range(4):
        tails[(source << LATENCY_BITS) + low : (source << LATENCY_BITS) + high] = b"\1" * max(0, high - low)
    tails[0] = 0  # without source and latency: no time at all
    return bytes(tails), exact


def _nearest(edges: tuple[float, ...] | tuple[int, ...], value: float) -> tuple[int, bool]:
    """The place of the edge nearest to a value, and whether it is the value."""
    place = bisect_left(edges, value)
    if place == len(edges):
        return place - 1, False
    if place and value - edges[place - 1] < edges[place] - value:
        place -= 1
    return place, edges[place] == value
