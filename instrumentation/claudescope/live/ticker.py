"""What the stream says without being asked: the runs that changed, and how things are."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

from .receiver.counters import Counters
from .receiver.ingest import Ingest
from .rollups.board import Rollups
from .store.reader import Reader
from .store.writer import Writer
from .stream import Hub

__all__ = ["Ticker"]

logger = logging.getLogger(__name__)

_TICK: Final = 0.25
_STATS_TICKS: Final = 4


class Ticker:
    """Publishes ``run`` events four times a second and ``stats`` once. Used by the event loop only."""

    def __init__(
        self, hub: Hub, ingest: Ingest, rollups: Rollups, counters: Counters, reader: Reader, writer: Writer
    ) -> None:
        self._hub = hub
        self._ingest = ingest
        self._rollups = rollups
        self._counters = counters
        self._reader = reader
        self._writer = writer
        self._spans = 0

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        tick = 0
        while True:
            await asyncio.sleep(_TICK)
            tick += 1
            try:
                self._hub.tell_left_out()
                await self._publish_runs()
                if not tick % _STATS_TICKS:
                    await self._publish_stats()
            except Exception:
                logger.exception("the live figures failed once")

    async def _publish_runs(self) -> None:
        runs = list(self._ingest.dirty_runs)
        self._ingest.dirty_runs.clear()
        if runs and self._hub.clients:
            for record in await self._reader.runs_by_id(runs):
                self._hub.publish("run", record)

    async def _publish_stats(self) -> None:
        spans = self._ingest.spans
        rate, self._spans = spans - self._spans, spans
        if self._hub.clients:
            through = self._ingest.counted  # what the cells count, so that a page keeps what it knows beyond
            cells = await self._rollups.changed_cells()
            self._hub.publish("stats", {**self._stats(rate), "through": through, "cells": cells})

    def _stats(self, rate: int) -> dict[str, Any]:
        return {
            "ts_ms": int(time.time() * 1000),
            **self._rollups.totals(),
            "spans_per_s": rate,
            "last_span_ms": self._ingest.last_ms,
            "backlog_bytes": self._writer.backlog,
            "store_error": self._writer.failing,
            "dropped": self._counters.dropped(),
            "clients": self._hub.clients,
        }
