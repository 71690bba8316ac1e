"""Rolling figures by step number in memory: what the heat strip shows, without asking the store."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from ... import semconv
from ..records import StepFigures

__all__ = ["BUCKET_MS", "WINDOW_MS", "Cell", "HeatMap", "Sketch"]

BUCKET_MS: Final = 10_000
WINDOW_MS: Final = 3_600_000
"""How far back the cells go."""
_AHEAD_MS: Final = 60_000
"""How far a sender's clock may be ahead before its steps are left out of the cells."""
_SCALE: Final = 1 / math.log(1.1)


class Sketch:
    """Quantiles of positive numbers from buckets that grow by 10 %: a quantile is within 5 % of a value at its rank.

    Sketches are exact in their counts and can be merged.
    """

    __slots__ = ("buckets", "count")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0

    def add(self, value: float) -> None:
        """Adds one value; below 1 counts as 1."""
        key = math.ceil(math.log(value) * _SCALE) if value > 1 else 0
        self.buckets[key] = self.buckets.get(key, 0) + 1
        self.count += 1

    def merge(self, other: Sketch) -> None:
        """Adds all values of another sketch."""
        for key, count in other.buckets.items():
            self.buckets[key] = self.buckets.get(key, 0) + count
        self.count += other.count

    def quantiles(self, *shares: float) -> list[float | None]:
        """The value at each share (0..1, growing) by nearest rank; None while empty."""
        if not self.count:
            return [None] * len(shares)
        found: list[float | None] = []
        keys = iter(sorted(self.buckets))
        key, seen = 0, 0
        for share in shares:
            rank = max(1, math.ceil(share * self.count))
            while seen < rank:
                key = next(keys)
                seen += self.buckets[key]
            # the middle of (1.1^(key-1), 1.1^key] in relative terms
            found.append(1.0 if key <= 0 else 2 * math.exp(key / _SCALE) / 2.1)
        return found


class Cell:
    """The steps of one number in one span of time. Latency leaves out steps whose reader was the slow part."""

    __slots__ = ("checked", "confidence_count", "confidence_sum", "count", "invalid", "latency")

    def __init__(self) -> None:
        self.count = 0
        self.latency = Sketch()
        self.confidence_sum = 0.0
        self.confidence_count = 0
        self.checked = 0
        self.invalid = 0

    def add(self, step: StepFigures) -> None:
        """Adds one step."""
        self.count += 1
        source = step["latency_source"]
        if source != "consumer" and (source is not None or step["latency_us"]):  # a batch result has no time at all
            self.latency.add(step["latency_us"])
        confidence = step["confidence"]
        if confidence is not None:
            self.confidence_sum += confidence
            self.confidence_count += 1
        valid = step["is_valid"]
        if valid is not None:
            self.checked += 1
            if not valid:
                self.invalid += 1

    def merge(self, other: Cell) -> None:
        """Adds another cell's steps."""
        self.count += other.count
        self.latency.merge(other.latency)
        self.confidence_sum += other.confidence_sum
        self.confidence_count += other.confidence_count
        self.checked += other.checked
        self.invalid += other.invalid

    def record(self, ts_ms: int, label: str) -> dict[str, Any]:
        """The cell as the API gives it; ``ts_ms`` is where its time begins. Unknown figures are None."""
        p50, p95 = self.latency.quantiles(0.5, 0.95)
        known = self.confidence_count
        return {
            "ts_ms": ts_ms,
            "step_index": label,
            "count": self.count,
            "p50_us": None if p50 is None else round(p50),
            "p95_us": None if p95 is None else round(p95),
            "confidence": round(self.confidence_sum / known, 4) if known else None,
            "confidence_count": known,
            "checked": self.checked,
            "invalid": self.invalid,
            "invalid_share": round(self.invalid / self.checked, 4) if self.checked else None,
        }


class HeatMap:
    """Cells of ten seconds by step number (``"0"`` to ``"15"``, ``"16+"``) over the last hour, and totals.

    Used by the event loop only.
    """

    def __init__(self) -> None:
        self._cells: dict[int, dict[int, Cell]] = {}
        self._changed: set[tuple[int, int]] = set()
        self.steps = 0
        self.valid = 0
        self.invalid = 0

    def add(self, steps: Iterable[StepFigures], now_ms: int, count: bool = True) -> None:
        """Adds steps by when they ended. ``count`` False leaves the totals alone (replay of stored steps)."""
        oldest = now_ms - WINDOW_MS
        newest = now_ms + _AHEAD_MS
        cap = semconv.INDEX_CAP
        for step in steps:
            if count:
                self.count(step["is_valid"])
            ts_ms = step["ts_ms"]
            if not oldest <= ts_ms <= newest:
                continue
            start = ts_ms - ts_ms % BUCKET_MS
            row = self._cells.get(start)
            if row is None:
                row = self._cells[start] = {}
            index = min(step["step_index"], cap)
            cell = row.get(index)
            if cell is None:
                cell = row[index] = Cell()
            cell.add(step)
            self._changed.add((start, index))

    def count(self, valid: bool | None, number: int = 1) -> None:
        """Adds to the totals."""
        self.steps += number
        if valid:
            self.valid += number
        elif valid is False:
            self.invalid += number

    def totals(self) -> dict[str, int]:
        """Steps since the store was made, by verdict."""
        unknown = self.steps - self.valid - self.invalid
        return {"steps": self.steps, "valid": self.valid, "invalid": self.invalid, "unknown": unknown}

    def take_changed(self, now_ms: int) -> list[dict[str, Any]]:
        """The cells that changed since the last call; also forgets cells out of the window."""
        changed = sorted(self._changed)
        self._changed.clear()
        for start in [start for start in self._cells if start < now_ms - WINDOW_MS - BUCKET_MS]:
            del self._cells[start]
        return [
            self._cells[start][index].record(start, semconv.index_label(index))
            for start, index in changed
            if start in self._cells
        ]

    def cells(self, from_ms: int, to_ms: int, bucket_ms: int = BUCKET_MS) -> list[dict[str, Any]]:
        """The cells that begin in ``[from_ms, to_ms)``, merged to ``bucket_ms`` (a multiple of ``BUCKET_MS``)."""
        merged: dict[tuple[int, int], Cell] = {}
        for start, row in self._cells.items():
            if from_ms - BUCKET_MS < start < to_ms:
                for index, cell in row.items():
                    key = (start - start % bucket_ms, index)
                    if key not in merged:
                        merged[key] = Cell()
                    merged[key].merge(cell)
        return [cell.record(start, semconv.index_label(index)) for (start, index), cell in sorted(merged.items())]
