"""Takes requests into a store that no server has: the same reading and the same writer, without a port."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ...prices import Prices
from ..records import Batch, read_spans
from ..store.folder import DataFolder
from ..store.jobs import Job
from ..store.migration import upgrade
from ..store.schema import connect
from ..store.writer import Writer
from .counters import read_logs

__all__ = ["OfflineStore"]


class OfflineStore:
    """The store of a folder, while no server has it. Steps count in the roll-ups from the server's next start on.

    Raises UsageError when a server has the folder, the store cannot be opened, or the price table is bad.
    """

    def __init__(self, folder: Path, prices: Path | None) -> None:
        costs = Prices.load(prices)
        self._folder = DataFolder(folder)
        try:
            upgrade(folder, costs)
            self._db = connect(folder)
        except BaseException:
            self._folder.close()
            raise
        self._writer = Writer(self._db, lambda done: done(), costs)

    def take(self, request: ExportTraceServiceRequest | ExportLogsServiceRequest) -> None:
        """Stores one request; what this returned for is committed. Raises StoreError when the store did not take it."""
        if isinstance(request, ExportTraceServiceRequest):
            batch = Batch()
            for _ in read_spans(request, batch):
                pass
            job = Job(batch=batch, size=batch.size)
        else:
            job = Job(events=read_logs(request), size=request.ByteSize())
        self._writer.submit(job).result()

    def close(self) -> None:
        """Gives store and folder back."""
        self._writer.close()
        self._folder.close()
