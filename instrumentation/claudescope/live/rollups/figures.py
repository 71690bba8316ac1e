"""What is said about a set of steps: counts, quantiles, means and distributions, from the keys of histograms."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from itertools import compress, groupby
from operator import and_
from typing import Any, Final

from ... import semconv
from .bands import (
    CONFIDENCE_BANDS,
    CONFIDENCE_BITS,
    CONFIDENCE_MASK,
    CONSUMER,
    LATENCY_BITS,
    LATENCY_MASK,
    TAIL_BITS,
    TAIL_MASK,
    confidence_upper,
    latency_estimate,
    latency_upper,
)
from .condition import Condition
from .histogram import CONFIDENCE_UNIT, Columns

__all__ = ["Figures", "FiguresByIndex"]

_SLICE: Final = 16_384
"""Rows that are copied at once."""
_CONSUMER_TAIL: Final = CONSUMER << LATENCY_BITS
"""Tails from here on are of steps whose reader was the slow part; tail 0 is of those without any time."""


class Figures:
    """The steps of one number, or of all. Latency leaves out ``consumer`` steps and those without any time."""

    __slots__ = ("confidence_sum", "confidences", "latencies", "latency_sum", "verdicts")

    def __init__(self) -> None:
        self.verdicts = [0, 0, 0]
        self.confidences = [0] * CONFIDENCE_BANDS
        """Steps by confidence band; in band 0 those without a confidence."""
        self.confidence_sum = 0
        """In units of ``CONFIDENCE_UNIT``."""
        self.latencies: defaultdict[int, int] = defaultdict(int)
        """Timed steps by latency band."""
        self.latency_sum = 0
        """In us, of the timed ones."""

    @property
    def count(self) -> int:
        """All steps."""
        return sum(self.verdicts)

    @property
    def known(self) -> int:
        """Steps with a confidence."""
        return sum(self.confidences[1:])

    @property
    def timed(self) -> int:
        """Steps with a latency that counts."""
        return sum(self.latencies.values())

    def merge(self, other: Figures) -> None:
        """Adds another set of steps."""
        self.verdicts = [mine + more for mine, more in zip(self.verdicts, other.verdicts, strict=True)]
        self.confidences = [mine + more for mine, more in zip(self.confidences, other.confidences, strict=True)]
        self.confidence_sum += other.confidence_sum
        self.latency_sum += other.latency_sum
        for band, count in other.latencies.items():
            self.latencies[band] += count

    def quantiles(self, *shares: float) -> list[int | None]:
        """The latency in us at each share (0..1, growing) by nearest rank, within ``QUANTILE_ERROR``; None for none."""
        timed = self.timed
        if not timed:
            return [None] * len(shares)
        found: list[int | None] = []
        bands = iter(sorted(self.latencies.items()))
        band, seen = 0, 0
        for share in shares:
            rank = max(1, math.ceil(share * timed))
            while seen < rank:
                band, count = next(bands)
                seen += count
            found.append(latency_estimate(band))
        return found

    def cell(self, ts_ms: int, label: str) -> dict[str, Any]:
        """A cell of the heat strip; ``ts_ms`` is where its time begins. Unknown figures are None."""
        p50, p95 = self.quantiles(0.5, 0.95)
        unknown, valid, invalid = self.verdicts
        known = self.known
        return {
            "ts_ms": ts_ms,
            "step_index": label,
            "count": unknown + valid + invalid,
            "p50_us": p50,
            "p95_us": p95,
            "confidence": self._mean_confidence(known),
            "confidence_count": known,
            "checked": valid + invalid,
            "invalid": invalid,
            "invalid_share": round(invalid / (valid + invalid), 4) if valid + invalid else None,
        }

    def distribution(self) -> dict[str, Any]:
        """Counts, quantiles, means, and ``buckets`` of (upper bound inclusive, steps), growing, without empty ones."""
        unknown, valid, invalid = self.verdicts
        known, timed = self.known, self.timed
        p50, p95, p99 = self.quantiles(0.5, 0.95, 0.99)
        confidences = [(confidence_upper(band), count) for band, count in enumerate(self.confidences) if band and count]
        latencies = [(latency_upper(band), count) for band, count in sorted(self.latencies.items())]
        return {
            "count": unknown + valid + invalid,
            "valid": valid,
            "invalid": invalid,
            "unknown": unknown,
            "latency": {
                "count": timed,
                "p50_us": p50,
                "p95_us": p95,
                "p99_us": p99,
                "mean_us": round(self.latency_sum / timed) if timed else None,
                "buckets": _joined(latencies),
            },
            "confidence": {
                "count": known,
                "mean": self._mean_confidence(known),
                "buckets": _joined(confidences),
            },
        }

    def _mean_confidence(self, known: int) -> float | None:
        return round(self.confidence_sum * CONFIDENCE_UNIT / known, 4) if known else None


def _joined(buckets: list[tuple[Any, int]]) -> list[list[Any]]:
    """Neighbours of the same upper bound as one."""
    return [[upper, sum(count for _, count in same)] for upper, same in groupby(buckets, lambda bucket: bucket[0])]


class FiguresByIndex(dict[int, Figures]):
    """Figures by capped step number, filled from histograms."""

    def add(self, columns: Columns, condition: Condition, series: frozenset[int] | None = None) -> None:
        """Adds the steps of a histogram that a condition keeps, of some series or of all (None)."""
        end = 0
        for low, high in condition.ranges:
            start = bisect_left(columns.keys, low, end)
            end = bisect_left(columns.keys, high, start)
            for at in range(start, end, _SLICE):
                to = min(at + _SLICE, end)
                self._add_rows(_kept(Columns(*(column[at:to] for column in columns)), condition, series))

    def _add_rows(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        # the hot loop of every question over a long time: what a run of one head has in common is added at its end
        head = -1
        steps = confidence_sum = latency_sum = 0
        bands: dict[int, int] = {}
        for key, count, confidence, latency in rows:
            if key >> TAIL_BITS != head:
                if steps:
                    self._add_head(head, steps, confidence_sum, latency_sum)
                    steps = confidence_sum = latency_sum = 0
                head = key >> TAIL_BITS
                bands = self._of(head).latencies
            steps += count
            confidence_sum += confidence
            tail = key & TAIL_MASK
            if 0 < tail < _CONSUMER_TAIL:
                bands[tail & LATENCY_MASK] += count
                latency_sum += latency
        if steps:
            self._add_head(head, steps, confidence_sum, latency_sum)

    def _of(self, head: int) -> Figures:
        index = head >> CONFIDENCE_BITS + 2
        figures = self.get(index)
        if figures is None:
            figures = self[index] = Figures()
        return figures

    def _add_head(self, head: int, steps: int, confidence_sum: int, latency_sum: int) -> None:
        figures = self._of(head)
        figures.verdicts[head >> CONFIDENCE_BITS & 3] += steps
        figures.confidences[head & CONFIDENCE_MASK] += steps
        figures.confidence_sum += confidence_sum
        figures.latency_sum += latency_sum

    def cells(self, ts_ms: int) -> list[dict[str, Any]]:
        """The cells of one time, by number."""
        return [self[index].cell(ts_ms, semconv.index_label(index)) for index in sorted(self)]

    def total(self) -> Figures:
        """All numbers together."""
        total = Figures()
        for figures in self.values():
            total.merge(figures)
        return total


def _kept(columns: Columns, condition: Condition, series: frozenset[int] | None) -> Iterable[tuple[int, int, int, int]]:
    """Key, count and sums of the rows that are kept."""
    keys, numbers, *figures = columns
    rows = zip(keys, *figures, strict=True)
    tails = condition.tails
    of_series = map(series.__contains__, numbers) if series is not None else None
    of_tail = [tails[key & TAIL_MASK] for key in keys] if tails is not None else None
    if of_series is not None and of_tail is not None:
        return compress(rows, map(and_, of_tail, of_series))
    kept = of_series or of_tail
    return rows if kept is None else compress(rows, kept)
