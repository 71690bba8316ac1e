"""Steps that were committed and are not yet in the roll-ups' tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..records import StepFigures
from .bands import VERDICTS, key_of
from .histogram import SERIES_BITS, Histogram, pack
from .tiers import AHEAD_MS, BUCKET_MS, KEPT_MS

__all__ = ["Counted", "Flush", "Pending"]

Counted = tuple[StepFigures, int, int]
"""A step, its row, and the series under which it is counted."""


class Flush(NamedTuple):
    """What the tables do not count yet: packed histograms by bucket, steps by verdict, and the last row among them."""

    cells: dict[int, bytes]
    verdicts: tuple[int, int, int]
    watermark: int


class Pending:
    """Histograms by bucket of ``BUCKET_MS``. Rows come in growing order."""

    __slots__ = ("_cells", "entries", "touched", "verdicts", "watermark")

    def __init__(self) -> None:
        self._cells: dict[int, Histogram] = {}
        self.entries = 0
        """Of all histograms: what they take of memory."""
        self.verdicts = [0, 0, 0]
        """Steps that are unknown, valid, invalid; those of another time than the tiers have, too."""
        self.watermark = 0
        self.touched: set[int] = set()
        """Buckets that got steps; the reader of it empties it."""

    def __len__(self) -> int:
        return sum(self.verdicts)

    def add(self, steps: Iterable[Counted], now_ms: int) -> None:
        """Counts steps by when they ended."""
        oldest, newest = now_ms - KEPT_MS, now_ms + AHEAD_MS
        at = -1
        histogram: Histogram = {}
        row = self.watermark
        verdicts = self.verdicts
        for step, row, series in steps:  # noqa: B007 - the last row is the watermark
            verdicts[VERDICTS[step["is_valid"]]] += 1
            ts_ms = step["ts_ms"]
            if not oldest <= ts_ms <= newest:
                continue
            start = ts_ms - ts_ms % BUCKET_MS
            if start != at:
                at = start
                histogram = self._cells.setdefault(start, {})
                self.touched.add(start)
            key = key_of(step) << SERIES_BITS | series
            confidence = step["confidence"]
            units = 0 if confidence is None else int(confidence * 1_000_000 + 0.5)
            known = histogram.get(key)
            if known is None:
                histogram[key] = [1, units, step["latency_us"]]
                self.entries += 1
            else:
                known[0] += 1
                known[1] += units
                known[2] += step["latency_us"]
        self.watermark = row

    def buckets(self) -> Iterable[int]:
        """The buckets that hold steps."""
        return self._cells.keys()

    def packed(self) -> Flush:
        """All of it, as it is now."""
        unknown, valid, invalid = self.verdicts
        cells = {start: pack(histogram) for start, histogram in self._cells.items()}
        return Flush(cells, (unknown, valid, invalid), self.watermark)
