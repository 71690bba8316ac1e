"""From a decoded request to everything that shows it: events, store, aggregates. Runs on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ..records import Batch, read_spans
from ..rollups.aggregates import HeatMap
from ..store.jobs import Job, Stored
from ..store.writer import BacklogError, StoreError, Writer
from ..stream import Hub
from .counters import Counters, read_logs
from .otlp import OtlpError, decode

__all__ = ["SIGNALS", "Ingest", "Outcome"]

SIGNALS: Final = ("traces", "metrics", "logs")
_MAX_DIRTY: Final = 200
_LARGE: Final = 2**18
"""Bytes of a body from which on it is decoded on a thread, so that the event loop stays free."""
_DECODERS: Final = 1
"""At once: 16 MiB of empty messages take over half a GiB decoded, before they can be counted and refused."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How much of a request was not taken, and why."""

    rejected: int = 0
    why: str = ""


def _behind() -> OtlpError:
    return OtlpError(503, "writer_behind", "The store is behind.", "Send the same batch again after a second.", 1)


class Ingest:
    """Takes OTLP requests. What ``take`` returned for is committed."""

    def __init__(self, writer: Writer, hub: Hub, heat: HeatMap, counters: Counters) -> None:
        self._writer = writer
        self._hub = hub
        self._heat = heat
        self._counters = counters
        self._decoders = asyncio.Semaphore(_DECODERS)
        self.dirty_runs: dict[str, None] = {}
        """Runs that changed since they were last published, the latest last."""
        self.spans = 0
        self.duplicates = 0
        self.last_ms: int | None = None
        """When the latest span came."""

    async def take(self, signal: str, body: bytes, encoding: str) -> Outcome:
        """Decodes, publishes and stores one request of a signal. Raises OtlpError."""
        if self._writer.full:
            raise _behind()
        if signal == "traces":
            return await self._traces(
                await self._off_loop(body, lambda: decode(ExportTraceServiceRequest, body, encoding))
            )
        if signal == "metrics":
            points, refused = self._counters.read(
                await self._off_loop(body, lambda: decode(ExportMetricsServiceRequest, body, encoding))
            )
            if points:
                await self._store(Job(counters=points, size=len(body)))
            return Outcome(
                refused, "A counter's value must be finite and not negative, and its labels short." if refused else ""
            )
        events = await self._off_loop(body, lambda: read_logs(decode(ExportLogsServiceRequest, body, encoding)))
        if events:
            await self._store(Job(events=events, size=len(body)))
        return Outcome()

    async def _off_loop(self, body: bytes, work: Callable[[], T]) -> T:
        if len(body) < _LARGE:
            return work()
        async with self._decoders:
            return await asyncio.to_thread(work)

    async def _traces(self, request: ExportTraceServiceRequest) -> Outcome:
        batch = Batch()
        published = 0
        for _ in read_spans(request, batch):
            # Before the store, so that a step is on the page as soon as it is known. A batch that is sent again is
            # published again: readers of the stream tell steps apart by trace and span id.
            for step in batch.steps[published:]:
                self._hub.publish("step", step)
            published = len(batch.steps)
            if batch.spans >= 1000:
                await asyncio.sleep(0)
        self.spans += batch.spans
        if batch.spans:
            self.last_ms = int(time.time() * 1000)
            stored = await self._store(Job(batch=batch, size=batch.size))
            self._heat.add(stored.steps, self.last_ms)
            self.duplicates += stored.duplicates
            for run in stored.runs:
                self.dirty_runs.pop(run, None)
                self.dirty_runs[run] = None
            while len(self.dirty_runs) > _MAX_DIRTY:
                del self.dirty_runs[next(iter(self.dirty_runs))]
        return Outcome(batch.rejected, "A span needs a trace id and a span id." if batch.rejected else "")

    async def _store(self, job: Job) -> Stored:
        try:
            return await asyncio.wrap_future(self._writer.submit(job))
        except BacklogError:
            raise _behind() from None
        except StoreError as error:
            raise OtlpError(
                503, "store_failed", f"The store did not take it: {error}.", "Look at the disk, then send again.", 5
            ) from None
