"""``/metrics``: what a Prometheus scrapes. The names and labels are those that the same apps have through OTLP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from prometheus_client import Metric
from starlette.responses import Response

from ..receiver.counters import Counters
from ..receiver.ingest import Ingest
from ..rollups.board import Rollups
from ..store.writer import Writer
from ..stream import Hub
from .endpoint import Asked, Endpoint, compressed
from .exposition import Exposition, figure
from .spanmetrics import StepTotals

__all__ = ["OWN", "Metrics", "Own"]


class Own(NamedTuple):
    """One of the server's own figures."""

    name: str
    kind: str
    text: str


OWN: Final = {
    own.name: own
    for own in (
        Own("claudescope_live_spans", "counter", "Spans taken."),
        Own("claudescope_live_duplicate_spans", "counter", "Spans that were stored already."),
        Own("claudescope_live_rejected_spans", "counter", "Spans without a usable id."),
        Own("claudescope_live_refused_points", "counter", "Metric points that did not fit."),
        Own("claudescope_live_lagged_events", "counter", "Events that clients of the stream missed."),
        Own("claudescope_live_metric_series", "gauge", "Series of senders' metrics."),
        Own("claudescope_live_stream_clients", "gauge", "Clients of the stream."),
        Own("claudescope_live_backlog_bytes", "gauge", "Bytes that wait to be stored."),
        Own("claudescope_live_store_bytes", "gauge", "Size of the store's files."),
        Own("claudescope_live_store_failing", "gauge", "1 when the last write to the store failed."),
        Own("claudescope_live_start_time_seconds", "gauge", "When the server started."),
    )
}
"""The server's own figures, all without labels."""


class Metrics:
    """The text for a scrape, made on a thread, one at a time."""

    def __init__(
        self,
        *,
        ingest: Ingest,
        counters: Counters,
        rollups: Rollups,
        totals: StepTotals,
        writer: Writer,
        hub: Hub,
        store_bytes: Callable[[], int],
        slos: Callable[[], list[Metric]] = list,
    ) -> None:
        self._ingest = ingest
        self._counters = counters
        self._rollups = rollups
        self._totals = totals
        self._writer = writer
        self._hub = hub
        self._store_bytes = store_bytes
        self._slos = slos
        self._started = time.time()
        self._one = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The one endpoint."""
        return [
            Endpoint(
                "/metrics",
                "OpenMetrics, or the classic text for who does not ask for it.",
                self._scrape,
                {"type": "string"},
                media="text/plain",
            )
        ]

    async def _scrape(self, asked: Asked) -> Response:
        async with self._one:
            await self._rollups.flush()  # a full disk fails it, and there is only less to tell
            families = self._totals.families(self._counters.senders)
            for name, series in self._ingest.points.families().items():
                families[name] = [*families.get(name, ()), *series]
            own = [*self._slos(), *await asyncio.to_thread(self._own)]
            exposition = Exposition(families, own)
            accept = asked.request.headers.get("accept", "")
            body, media = await asyncio.to_thread(exposition.render, accept)
        return await compressed(body, media, asked.request)

    def _own(self) -> list[Metric]:
        values: dict[str, float] = {
            "claudescope_live_spans": self._ingest.spans,
            "claudescope_live_duplicate_spans": self._ingest.duplicates,
            "claudescope_live_rejected_spans": self._ingest.rejected,
            "claudescope_live_refused_points": self._ingest.points.refused,
            "claudescope_live_lagged_events": self._hub.lagged,
            "claudescope_live_metric_series": len(self._ingest.points),
            "claudescope_live_stream_clients": self._hub.clients,
            "claudescope_live_backlog_bytes": self._writer.backlog,
            "claudescope_live_store_bytes": self._store_bytes(),
            "claudescope_live_store_failing": int(self._writer.failing is not None),
            "claudescope_live_start_time_seconds": self._started,
        }
        return [figure(own.name, own.kind, own.text, values[own.name]) for own in OWN.values()]
