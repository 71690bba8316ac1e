"""``/healthz``, ``/api/status`` and ``/api/counters``: who this is, how it does, and what apps counted."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from ...prices import Prices
from ...settings import Settings
from ..receiver.counters import Counters
from ..receiver.ingest import Ingest
from ..rollups.board import Rollups
from ..store.reader import Reader
from ..store.writer import Writer
from ..stream import Hub
from .endpoint import Asked, Endpoint
from .schemas import ref

__all__ = ["Status"]


class Status:
    """What the server says about itself."""

    def __init__(
        self,
        *,
        settings: Settings,
        version: str,
        prices: Prices,
        folder: Path,
        reader: Reader,
        writer: Writer,
        rollups: Rollups,
        hub: Hub,
        ingest: Ingest,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._version = version
        self._prices = prices
        self._folder = folder
        self._started_ms = int(time.time() * 1000)
        self._reader = reader
        self._writer = writer
        self._rollups = rollups
        self._hub = hub
        self._ingest = ingest
        self._counters = counters

    def endpoints(self) -> list[Endpoint]:
        """Health, status and counters."""
        return [
            Endpoint("/healthz", "Who this is; needs no token.", self._healthz, ref("Health")),
            Endpoint("/api/status", "How the server does.", self._tell, ref("Status")),
            Endpoint(
                "/api/counters",
                "The counters that apps sent, and the steps that were stored, by verdict.",
                self._count,
                ref("Counters"),
            ),
        ]

    async def _healthz(self, asked: Asked) -> Any:
        return {"service": "claudescope", "version": self._version, "started": self._started_ms}

    async def _tell(self, asked: Asked) -> Any:
        store = await self._reader.counts()
        settings = self._settings
        return {
            "version": self._version,
            "started_ms": self._started_ms,
            "data": str(self._folder.absolute()),
            "store": {
                **store,
                "retain_s": settings.retain,
                "max_bytes": settings.max_size,
                "error": self._writer.failing,
            },
            "backlog_bytes": self._writer.backlog,
            "last_span_ms": self._ingest.last_ms,
            "dropped": self._counters.dropped(),
            "clients": self._hub.clients,
            "jaeger_url": settings.jaeger or None,
            "prices_date": self._prices.date,
            "content": await self._reader.ask(_has_texts),
        }

    async def _count(self, asked: Asked) -> Any:
        return {"items": self._counters.items(), "next": None, "stored": self._rollups.totals()}


def _has_texts(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM texts)").fetchone()[0])
