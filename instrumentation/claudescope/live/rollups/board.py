"""The roll-ups as the server has them: counts what is committed, hands it to the writer, answers questions."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

import orjson

from ... import semconv
from ..filters import StepFilter
from ..records import Dims
from .bands import INVALID, QUANTILE_ERROR, UNKNOWN, VALID
from .cache import ColumnCache
from .condition import condition_of
from .pending import Counted, Flush, Pending
from .persist import State, recount
from .query import Asked, count_by_series, figures, heat
from .series import FIELDS, SeriesTable
from .tiers import AHEAD_MS, BUCKET_MS, KEPT_MS, TIERS, coarser, floor

__all__ = ["RANGES", "Ask", "Rollups"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

RANGES: Final = {
    "5m": (5 * 60_000, 10_000),
    "15m": (15 * 60_000, 10_000),
    "1h": (60 * 60_000, 10_000),
    "6h": (6 * 3_600_000, 60_000),
    "24h": (24 * 3_600_000, 5 * 60_000),
    "7d": (7 * 86_400_000, 3_600_000),
    "30d": (30 * 86_400_000, 6 * 3_600_000),
}
"""The page's ranges: how long, and the bucket of the heat strip, in ms."""

_FLUSH_S: Final = 5.0
_RETRY_S: Final = 1.0
_MAX_ENTRIES: Final = 50_000
"""Of pending histograms: with more, they are flushed before their time."""
_RECOUNT: Final = 20_000
"""Stored steps that are counted in one transaction."""
_MAX_COLUMNS: Final = 2000
_COLUMNS: Final = 360
"""Columns where nobody says how long a bucket is, at most."""
_MAX_CHANGED: Final = 60
_WINDOW_MS: Final = 3_600_000
_AHEAD_MS: Final = 60_000
_VALUES: Final = 50
_EVERYTHING: Final = StepFilter()


class Ask(Protocol):
    """Asks the store on a thread that reads."""

    async def __call__(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """What ``question`` returns."""


class Rollups:
    """Figures by time and step over all that is committed. Used by the event loop only.

    ``submit`` has the writer call ``persist.write`` and returns after the commit; it raises where that failed.
    ``last_row`` is the last step stored before this start: ``run`` counts those up to it that the tables do not.
    """

    def __init__(
        self,
        state: State,
        series: Iterable[tuple[int, Dims]],
        submit: Callable[[Flush], Awaitable[object]],
        ask: Ask,
        last_row: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._last_row = last_row
        self._verdicts = list(state.verdicts)
        self._watermark = state.watermark
        self._series = SeriesTable(series)
        self._submit = submit
        self._ask = ask
        self._clock = clock
        self._pending = Pending()
        self._unwritten: Flush | None = None
        self._writing = asyncio.Lock()
        self._counting_stored = state.watermark < last_row
        self._columns = ColumnCache()
        self._changed: set[int] = set()

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def add(self, steps: Sequence[Counted], series: Iterable[tuple[int, Dims]]) -> None:
        """Counts steps that were committed, in the order of their rows; ``series`` are new among the counted ones."""
        self._series.add(series)
        self._pending.add(steps, self._now())

    @property
    def series(self) -> SeriesTable:
        """The counted series."""
        return self._series

    def totals(self) -> dict[str, int]:
        """Steps since the store was made, by verdict."""
        parts = [self._verdicts, self._pending.verdicts]
        if self._unwritten is not None:
            parts.append(list(self._unwritten.verdicts))
        unknown, valid, invalid = (sum(part[verdict] for part in parts) for verdict in (UNKNOWN, VALID, INVALID))
        return {"steps": unknown + valid + invalid, "valid": valid, "invalid": invalid, "unknown": unknown}

    # ------------------------------------------------------------------------------------------ to the tables

    async def run(self) -> None:
        """Counts stored steps that the tables do not, then flushes now and then, until it is cancelled."""
        await self._count_stored()
        if self._last_row:
            await self._warm_up()
        waited = 0.0
        while True:
            await asyncio.sleep(_RETRY_S / 4)
            waited += _RETRY_S / 4
            if waited >= _FLUSH_S or self._pending.entries >= _MAX_ENTRIES:
                waited = 0.0
                await self.flush()

    async def _warm_up(self) -> None:
        """Asks what a page asks first, so that it need not wait."""
        try:
            for length, bucket_ms in RANGES.values():
                to_ms = self._now() + BUCKET_MS
                await self.heat(_EVERYTHING, to_ms - length, to_ms, bucket_ms)
        except Exception:
            logger.exception("the figures of before this start could not be read")

    async def flush(self) -> bool:
        """Has all that was counted written. False where the writer could not; nothing is lost then."""
        async with self._writing:
            while self._unwritten is not None or (self._pending and not self._counting_stored):
                if self._unwritten is None:
                    self._take(self._pending.packed(), self._pending.touched)
                    self._pending = Pending()
                if not await self._write():
                    return False
        return True

    def _take(self, flush: Flush, touched: Iterable[int]) -> None:
        self._note(touched)
        self._columns.touch(flush.cells)
        self._unwritten = flush

    async def _write(self) -> bool:
        flush = self._unwritten
        assert flush is not None
        try:
            await self._submit(flush)
        except Exception as error:  # noqa: BLE001 - a full disk, or the writer is behind: the same again, later
            logger.debug("the roll-ups are not written: %s", error)
            return False
        self._unwritten = None
        self._watermark = flush.watermark
        self._verdicts = [had + more for had, more in zip(self._verdicts, flush.verdicts, strict=True)]
        return True

    async def _count_stored(self) -> None:
        # What is committed meanwhile waits, since the tables count without gaps up to their watermark.
        while self._watermark < self._last_row:
            try:
                if not await self._count_some():
                    break
            except Exception:
                logger.exception("steps of before this start are not counted yet")
                await asyncio.sleep(_RETRY_S)
        self._counting_stored = False

    async def _count_some(self) -> bool:
        after, last_row, now_ms = self._watermark, self._last_row, self._now()
        async with self._writing:
            if self._unwritten is None:
                flush = await self._ask(lambda db: recount(db, after, last_row, _RECOUNT, now_ms))
                if flush is None:
                    return False
                self._take(flush, flush.cells)
            if await self._write():
                return True
        await asyncio.sleep(_RETRY_S)
        return True

    # ---------------------------------------------------------------------------------------------- questions

    def _unwritten_now(self) -> list[Flush]:
        pending = [self._pending.packed()] if self._pending else []
        return [self._unwritten, *pending] if self._unwritten is not None else pending

    def _asked(self, filter: StepFilter, now_ms: int) -> Asked:
        return Asked(condition_of(filter), self._series.match(filter).series, self._unwritten_now(), now_ms)

    async def heat(self, filter: StepFilter, from_ms: int, to_ms: int, bucket_ms: int | None = None) -> dict[str, Any]:
        """The heat strip: ``items`` (ready JSON), ``bucket_ms``, the span of whole buckets, and how exact it is.

        ``bucket_ms`` is a multiple of ``BUCKET_MS``; the answer's may be longer, where the tiers are no finer any more.
        """
        now_ms = self._now()
        from_ms, to_ms = _within(from_ms, to_ms, now_ms)
        wanted = bucket_ms or next(
            (tier.bucket_ms for tier in TIERS if to_ms - from_ms <= _COLUMNS * tier.bucket_ms), TIERS[-1].bucket_ms
        )
        wanted = max(wanted, -(-(to_ms - from_ms) // (_MAX_COLUMNS * BUCKET_MS)) * BUCKET_MS)
        tier_ms, length = coarser(wanted, from_ms, now_ms)
        starts = range(floor(from_ms, length), to_ms, length)
        columns = await self._cells(filter, tier_ms, length, starts, now_ms)
        return {
            "items": _list(columns[start] for start in starts if columns.get(start)),
            "next": None,
            "bucket_ms": length,
            "from_ms": starts.start,
            "to_ms": starts[-1] + length if starts else to_ms,
            "quantile_error": QUANTILE_ERROR,
            **self._quality(filter),
        }

    async def changed_cells(self) -> Any:
        """The cells of ``BUCKET_MS`` that changed in the last hour since this was last asked, as ready JSON."""
        self._note(self._pending.touched)
        self._pending.touched.clear()
        now_ms = self._now()
        starts = sorted(self._changed)[-_MAX_CHANGED:]
        self._changed.difference_update(starts)
        columns = await self._cells(_EVERYTHING, BUCKET_MS, BUCKET_MS, starts, now_ms)
        return _list(columns[start] for start in starts if columns.get(start))

    def _note(self, touched: Iterable[int]) -> None:
        now_ms = self._now()
        self._changed.update(touched)
        self._changed = {start for start in self._changed if now_ms - _WINDOW_MS <= start <= now_ms + _AHEAD_MS}

    async def _cells(
        self, filter: StepFilter, tier_ms: int, length: int, starts: Sequence[int], now_ms: int
    ) -> dict[int, bytes]:
        """JSON of the columns that begin at ``starts``."""
        dirty = {floor(start, length) for start in self._pending.buckets()}
        if self._unwritten is not None:
            dirty.update(floor(start, length) for start in self._unwritten.cells)
        known = self._columns.get(filter, length, (start for start in starts if start not in dirty))
        missing = [start for start in starts if start not in known]
        if missing:
            moment = self._columns.now
            asked = self._asked(filter, now_ms)
            found = await self._ask(lambda db: heat(db, asked, tier_ms, length, missing))
            if length == tier_ms:
                self._columns.put(filter, length, moment, missing, found)
            known.update(found)
        return known

    async def distribution(self, filter: StepFilter, from_ms: int, to_ms: int) -> dict[str, Any]:
        """Latency and confidence by step number and of all, over a span of time."""
        now_ms = self._now()
        from_ms, to_ms = _within(from_ms, to_ms, now_ms)
        asked = self._asked(filter, now_ms)

        def question(db: sqlite3.Connection) -> dict[str, Any]:
            found = figures(db, asked, from_ms, to_ms)
            items = [
                {"step_index": semconv.index_label(index), **some.distribution()}
                for index, some in sorted(found.figures.items())
            ]
            total = found.figures.total().distribution()
            return {"items": items, "total": total, "from_ms": found.from_ms, "to_ms": found.to_ms}

        return {**await self._ask(question), "quantile_error": QUANTILE_ERROR, **self._quality(filter)}

    async def facets(self, filter: StepFilter, from_ms: int, to_ms: int) -> dict[str, Any]:
        """How many steps each value of a field has, with the filter's other conditions; most first."""
        now_ms = self._now()
        from_ms, to_ms = _within(from_ms, to_ms, now_ms)
        series = self._series
        asked = self._asked(filter, now_ms)
        by_figures = asked._replace(series=None)
        any_index = asked._replace(condition=condition_of(replace(filter, index=frozenset())))
        any_verdict = asked._replace(condition=condition_of(replace(filter, valid=frozenset())))
        nothing: dict[str, Any] = dict.fromkeys(FIELDS, frozenset())
        matches = {field: series.match(replace(filter, **{field: nothing[field]})).series for field in FIELDS}
        by_label = {
            key: series.match(
                replace(filter, labels=frozenset(pair for pair in filter.labels if pair[0] != key))
            ).series
            for key, _ in filter.labels
        }

        def question(db: sqlite3.Connection) -> dict[str, Any]:
            counts = count_by_series(db, by_figures, from_ms, to_ms)
            found = figures(db, any_index, from_ms, to_ms)
            verdicts = found if not filter.index and not filter.valid else figures(db, any_verdict, from_ms, to_ms)
            unknown, valid, invalid = verdicts.figures.total().verdicts
            labels = series.label_values(_of(counts, asked.series))
            for key, match in by_label.items():
                labels[key] = series.label_values(_of(counts, match)).get(key, {})
            return {
                **{field: _most(series.values(_of(counts, match), field)) for field, match in matches.items()},
                "index": _most({str(index): some.count for index, some in found.figures.items()}),
                "valid": _most({"true": valid, "false": invalid, "unknown": unknown}),
                "labels": {key: _most(values) for key, values in sorted(labels.items())[:_VALUES]},
                "from_ms": found.from_ms,
                "to_ms": found.to_ms,
            }

        return {**await self._ask(question), **self._quality(filter)}

    def _quality(self, filter: StepFilter) -> dict[str, bool]:
        return {"exact": condition_of(filter).exact, "partial": self._series.match(filter).partial}


def _within(from_ms: int, to_ms: int, now_ms: int) -> tuple[int, int]:
    """A span of time without what no tier has."""
    oldest, newest = now_ms - KEPT_MS - 86_400_000, now_ms + AHEAD_MS + 86_400_000
    from_ms = min(max(from_ms, oldest), newest)
    return from_ms, min(max(to_ms, from_ms + 1), newest + 1)


def _list(columns: Iterable[bytes]) -> orjson.Fragment:
    return orjson.Fragment(b"[" + b",".join(columns) + b"]")


def _of(counts: dict[int, int], series: Any) -> dict[int, int]:
    return counts if series is None else {one: count for one, count in counts.items() if one in series}


def _most(values: dict[str, int]) -> list[dict[str, Any]]:
    ordered = sorted(((value, count) for value, count in values.items() if count), key=lambda item: (-item[1], item[0]))
    return [{"value": value, "count": count} for value, count in ordered[:_VALUES]]
