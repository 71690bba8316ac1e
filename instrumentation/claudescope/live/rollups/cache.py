"""Columns of the heat strip that were asked for before, by filter, while no step came to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..filters import StepFilter
from .tiers import TIERS, floor

__all__ = ["ColumnCache"]

_MAX_BYTES: Final = 8 * 2**20
_MAX_TOUCHED: Final = 20_000
_MAX_COLUMNS: Final = 2500
"""Of one filter and length; of more, the later half is kept."""
_EACH: Final = 150
"""Bytes that a column takes beside its JSON, about."""


class ColumnCache:
    """JSON of whole columns by filter and bucket length. Used by the event loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[StepFilter, int], dict[int, tuple[int, bytes]]] = OrderedDict()
        self._touched: dict[tuple[int, int], int] = {}
        self._size = 0
        self._forgot = 0
        self.now = 0
        """Grows by one with each change: what was asked at that moment."""

    def touch(self, buckets: Iterable[int]) -> None:
        """Steps have come to these buckets of the finest tier."""
        self.now += 1
        for tier in TIERS:
            for start in {floor(bucket, tier.bucket_ms) for bucket in buckets}:
                self._touched[tier.bucket_ms, start] = self.now
        if len(self._touched) > _MAX_TOUCHED:
            self._touched.clear()
            self._kept.clear()
            self._size = 0
            self._forgot = self.now

    def get(self, filter: StepFilter, bucket_ms: int, starts: Iterable[int]) -> dict[int, bytes]:
        """Those columns that are still as they were."""
        kept = self._kept.get((filter, bucket_ms))
        if kept is None:
            return {}
        self._kept.move_to_end((filter, bucket_ms))
        touched = self._touched
        found: dict[int, bytes] = {}
        for start in starts:
            column = kept.get(start)
            if column is not None and column[0] >= touched.get((bucket_ms, start), 0):
                found[start] = column[1]
        return found

    def put(
        self, filter: StepFilter, bucket_ms: int, asked: int, starts: Sequence[int], found: Mapping[int, bytes]
    ) -> None:
        """Keeps what was found at the moment ``asked``; columns that were not found are empty."""
        if asked < self._forgot:
            return
        kept = self._kept.setdefault((filter, bucket_ms), {})
        for start in starts:
            self._drop(kept, start)
            column = found.get(start, b"")
            kept[start] = asked, column
            self._size += len(column) + _EACH
        if len(kept) > _MAX_COLUMNS:
            for start in sorted(kept)[: -_MAX_COLUMNS // 2]:
                self._drop(kept, start)
        while self._size > _MAX_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            for start in list(dropped):
                self._drop(dropped, start)

    def _drop(self, kept: dict[int, tuple[int, bytes]], start: int) -> None:
        column = kept.pop(start, None)
        if column is not None:
            self._size -= len(column[1]) + _EACH
