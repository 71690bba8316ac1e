"""How many events a second a group has had lately: what a bound that depends on load is chosen by."""

from __future__ import annotations

import sqlite3
from typing import Final

from ..rollups.tiers import BUCKET_MS

__all__ = ["SPAN_MS", "Load"]

SPAN_MS: Final = 300_000
"""The rate at a bucket is that of the events in the five minutes before it."""
_KEPT: Final = 2 * SPAN_MS
_MAX_RATES: Final = 10_000


class Load:
    """Events by group and bucket, of the last minutes. After a start, those before it are read from the ledger."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._totals: dict[int, dict[int, int]] = {}
        self._rates: dict[tuple[int, int], float] = {}

    def rate(self, group: int, bucket: int) -> float:
        """Events a second in the time before a bucket."""
        known = self._rates.get((group, bucket))
        if known is None:
            totals = self._of(group, bucket)
            events = sum(totals.get(at, 0) for at in range(bucket - SPAN_MS, bucket, BUCKET_MS))
            if len(self._rates) >= _MAX_RATES:
                self._rates.clear()
            known = self._rates[group, bucket] = events / (SPAN_MS / 1000)
        return known

    def add(self, group: int, bucket: int) -> None:
        """One event more."""
        totals = self._of(group, bucket)
        if bucket not in totals:
            for old in [at for at in totals if at < bucket - _KEPT]:
                del totals[old]
        totals[bucket] = totals.get(bucket, 0) + 1

    def _of(self, group: int, bucket: int) -> dict[int, int]:
        totals = self._totals.get(group)
        if totals is None:
            rows = self._db.execute(
                "SELECT bucket_ms, total FROM objective_counts WHERE grp = ? AND tier = ? AND bucket_ms >= ?"
                " AND bucket_ms <= ?",
                (group, BUCKET_MS // 1000, bucket - _KEPT, bucket),
            )
            totals = self._totals[group] = dict(map(tuple, rows))
        return totals
