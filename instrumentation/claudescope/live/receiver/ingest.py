"""From a decoded request to everything that shows it: events, store, aggregates. Runs on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ..records import Batch, read_spans, service_of
from ..rollups.board import Rollups
from ..store.jobs import Job, Stored
from ..store.writer import BacklogError, StoreError, Writer
from ..stream import Hub
from .counters import Counters, read_logs
from .otlp import OtlpError, decode
from .points import Points

__all__ = ["SIGNALS", "Ingest", "Outcome"]

SIGNALS: Final = ("traces", "metrics", "logs")
_MAX_DIRTY: Final = 200
_MAX_HEARD: Final = 1000
_LARGE: Final = 2**18
"""Bytes of a body from which on it is decoded on a thread, so that the event loop stays free."""
_DECODERS: Final = 1
"""At once: 16 MiB of empty messages take over half a GiB decoded, before they can be counted and refused."""

_REFUSED_POINTS: Final = (
    "A counter's value must be finite and not negative, a histogram's counts must fit its bounds, labels must be short."
)

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

    def __init__(self, writer: Writer, hub: Hub, rollups: Rollups, counters: Counters) -> None:
        self._writer = writer
        self._hub = hub
        self._rollups = rollups
        self._counters = counters
        self._decoders = asyncio.Semaphore(_DECODERS)
        self.dirty_runs: dict[str, None] = {}
        """Runs that changed since they were last published, the latest last."""
        self.spans = 0
        self.duplicates = 0
        self.rejected = 0
        """Spans without a usable id."""
        self.points = Points()
        self.heard: dict[str, int] = {}
        """When metrics of a service last came, in ms; of the first so many services."""
        self.last_ms: int | None = None
        """When the latest span came."""
        self._uncounted: dict[object, int] = {}
        """Number of the first event of each batch whose steps the roll-ups may not count yet."""

    @property
    def counted(self) -> int:
        """Number of an event: the roll-ups count the steps of all events up to it, but for those not stored."""
        return min(self._uncounted.values(), default=self._hub.next_number) - 1

    async def take(self, signal: str, body: bytes, encoding: str) -> Outcome:
        """Decodes, publishes and stores one request of a signal. Raises OtlpError."""
        if self._writer.full:
            raise _behind()
        if signal == "traces":
            return await self._traces(
                await self._off_loop(body, lambda: decode(ExportTraceServiceRequest, body, encoding))
            )
        if signal == "metrics":
            request = await self._off_loop(body, lambda: decode(ExportMetricsServiceRequest, body, encoding))
            points, refused = self._counters.read(request)
            if points:
                await self._store(Job(counters=points, size=len(body)))
            self._hear(request)
            refused += self.points.read(request)  # after the store: what comes again counts once
            return Outcome(refused, _REFUSED_POINTS if refused else "")
        events = await self._off_loop(body, lambda: read_logs(decode(ExportLogsServiceRequest, body, encoding)))
        if events:
            await self._store(Job(events=events, size=len(body)))
        return Outcome()

    def _hear(self, request: ExportMetricsServiceRequest) -> None:
        now = int(time.time() * 1000)
        for resource_metrics in request.resource_metrics:
            service = service_of(resource_metrics.resource.attributes)
            if service in self.heard or len(self.heard) < _MAX_HEARD:
                self.heard[service] = now

    async def _off_loop(self, body: bytes, work: Callable[[], T]) -> T:
        if len(body) < _LARGE:
            return work()
        async with self._decoders:
            return await asyncio.to_thread(work)

    async def _traces(self, request: ExportTraceServiceRequest) -> Outcome:
        batch = Batch()
        mark = object()
        self._uncounted[mark] = self._hub.next_number
        try:
            await self._publish(request, batch)
            self.spans += batch.spans
            self.rejected += batch.rejected
            if batch.spans:
                self.last_ms = int(time.time() * 1000)
                stored = await self._store(Job(batch=batch, size=batch.size))
                self.duplicates += stored.duplicates
                self._note(stored.runs)
        finally:
            del self._uncounted[mark]
        return Outcome(batch.rejected, "A span needs a trace id and a span id." if batch.rejected else "")

    async def _publish(self, request: ExportTraceServiceRequest, batch: Batch) -> None:
        """Reads the spans and publishes the steps before they are stored: each is on the page as soon as it is known.

        A batch that is sent again is published again: readers of the stream tell steps apart by trace and span id.
        """
        published = 0
        for _ in read_spans(request, batch):
            for step in batch.steps[published:]:
                self._hub.publish_step(step)
            published = len(batch.steps)
            if batch.spans >= 1000:
                await asyncio.sleep(0)

    def _note(self, runs: Iterable[str]) -> None:
        for run in runs:
            self.dirty_runs.pop(run, None)
            self.dirty_runs[run] = None
        while len(self.dirty_runs) > _MAX_DIRTY:
            del self.dirty_runs[next(iter(self.dirty_runs))]

    async def _store(self, job: Job) -> Stored:
        try:
            done = self._writer.submit(job)
            done.add_done_callback(self._count)
            # What is committed counts, also when the sender has gone: the future's result must not be cancelled.
            return await asyncio.shield(asyncio.wrap_future(done))
        except BacklogError:
            raise _behind() from None
        except StoreError as error:
            raise OtlpError(
                503, "store_failed", f"The store did not take it: {error}.", "Look at the disk, then send again.", 5
            ) from None

    def _count(self, done: Future[Stored]) -> None:
        """Counts what is committed, in the order of the commits."""
        if done.exception() is None:
            stored = done.result()
            self._rollups.add(stored.steps, stored.series)
