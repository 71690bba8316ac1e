"""Questions to the roll-ups' tables and to what is not in them yet. Runs on a reader's thread."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from typing import NamedTuple

import orjson

from .bands import TAIL_MASK
from .condition import Condition
from .figures import FiguresByIndex
from .histogram import Columns, unpack
from .pending import Flush
from .persist import load
from .tiers import TIERS, Frontiers, Piece, cover, floor, oldest, view

__all__ = ["Asked", "Found", "count_by_series", "figures", "heat"]


class Asked(NamedTuple):
    """What a question is about: figures' condition, series (None for all), and what the tables may not count yet."""

    condition: Condition
    series: frozenset[int] | None
    unwritten: Sequence[Flush]
    now_ms: int


class Found(NamedTuple):
    """Figures by number, and the span of time that they are of."""

    figures: FiguresByIndex
    from_ms: int
    to_ms: int


class _Histograms:
    """The histograms of one moment: rows and what is not written, each step once."""

    def __init__(self, db: sqlite3.Connection, unwritten: Sequence[Flush], now_ms: int) -> None:
        self._db = db
        self._now_ms = now_ms
        state = load(db)
        self.frontiers: Frontiers = state.frontiers
        self._unwritten = [flush for flush in unwritten if flush.watermark > state.watermark]

    def of(self, pieces: Iterable[Piece], bucket_ms: int) -> Iterator[tuple[int, Iterator[Columns]]]:
        """Histograms by bucket, in order of time; the pieces are whole buckets."""
        pieces = list(pieces)
        fresh: dict[int, list[bytes]] = {}
        for flush in self._unwritten:
            for start, cell in flush.cells.items():
                if any(piece.from_ms <= start < piece.to_ms for piece in pieces):
                    fresh.setdefault(floor(start, bucket_ms), []).append(cell)
        for start, rows in groupby(self._rows(pieces), lambda row: floor(row[0], bucket_ms)):
            yield start, map(unpack, chain((row[1] for row in rows), fresh.pop(start, ())))
        for start, cells in sorted(fresh.items()):
            yield start, map(unpack, cells)

    def _rows(self, pieces: Iterable[Piece]) -> Iterator[tuple[int, bytes]]:
        begin = oldest(self.frontiers, self._now_ms)
        for piece in pieces:
            yield from self._db.execute(
                "SELECT bucket_ms, data FROM rollups WHERE tier = ? AND bucket_ms >= ? AND bucket_ms < ?"
                " ORDER BY bucket_ms",
                (piece.bucket_ms // 1000, max(piece.from_ms, begin[piece.bucket_ms]), piece.to_ms),
            )


@contextmanager
def _moment(db: sqlite3.Connection, asked: Asked) -> Iterator[_Histograms]:
    db.execute("BEGIN")
    try:
        yield _Histograms(db, asked.unwritten, asked.now_ms)
    finally:
        db.execute("ROLLBACK")


def heat(db: sqlite3.Connection, asked: Asked, tier_ms: int, bucket_ms: int, starts: Sequence[int]) -> dict[int, bytes]:
    """The cells of some columns as JSON, joined by commas; columns without steps are left out."""
    found: dict[int, bytes] = {}
    with _moment(db, asked) as histograms:
        for low, high in _runs(starts, bucket_ms):
            for start, all_columns in histograms.of(view(tier_ms, low, high, histograms.frontiers), bucket_ms):
                figures = FiguresByIndex()
                for columns in all_columns:
                    figures.add(columns, asked.condition, asked.series)
                found[start] = b",".join(map(orjson.dumps, figures.cells(start)))
    return found


def figures(db: sqlite3.Connection, asked: Asked, from_ms: int, to_ms: int) -> Found:
    """The figures of a span of time, widened to buckets that there still are."""
    found = FiguresByIndex()
    with _moment(db, asked) as histograms:
        pieces = cover(from_ms, to_ms, histograms.frontiers, asked.now_ms)
        for _, all_columns in histograms.of(pieces, TIERS[-1].bucket_ms):
            for columns in all_columns:
                found.add(columns, asked.condition, asked.series)
    return Found(found, pieces[0].from_ms, pieces[-1].to_ms)


def count_by_series(db: sqlite3.Connection, asked: Asked, from_ms: int, to_ms: int) -> dict[int, int]:
    """Steps by series in a span of time, exactly: good, bad and all events of any slice."""
    found: dict[int, int] = {}
    with _moment(db, asked) as histograms:
        pieces = cover(from_ms, to_ms, histograms.frontiers, asked.now_ms)
        for _, all_columns in histograms.of(pieces, TIERS[-1].bucket_ms):
            for columns in all_columns:
                _count(columns, asked, found)
    return found


def _count(columns: Columns, asked: Asked, found: dict[int, int]) -> None:
    tails, series = asked.condition.tails, asked.series
    for low, high in asked.condition.ranges:
        start, end = bisect_left(columns.keys, low), bisect_left(columns.keys, high)
        for key, one, count in zip(
            columns.keys[start:end], columns.series[start:end], columns.counts[start:end], strict=True
        ):
            if (tails is None or tails[key & TAIL_MASK]) and (series is None or one in series):
                found[one] = found.get(one, 0) + count


def _runs(starts: Sequence[int], bucket_ms: int) -> Iterator[tuple[int, int]]:
    """Neighbouring columns as spans of time."""
    low = high = None
    for start in starts:
        if low is None or high is None:
            low = start
        elif start != high:
            yield low, high
            low = start
        high = start + bucket_ms
    if low is not None and high is not None:
        yield low, high
