"""Documents of OTLP/JSON on their way into a store: through its server, or straight where there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ..errors import UsageError
from ..live.receiver.offline import OfflineStore
from ..live.receiver.otlp_json import JsonError, fill
from ..live.store.folder import default_folder
from ..live.store.inventory import open_store
from ..live.store.known import KnownSpans
from ..live.store.writer import StoreError
from ..settings import Settings
from .documents import Document, kind_of, read_documents
from .progress import Progress
from .server import folder_server
from .uplink import RefusedError, Uplink

if TYPE_CHECKING:
    from typing import TypeAlias

    Request: TypeAlias = ExportTraceServiceRequest | ExportLogsServiceRequest

__all__ = ["Importer"]

_TAKEN: Final = "Give lines of `claudescope export`, or one OTLP/JSON document with resourceSpans or resourceLogs."
_REASONS: Final = {
    "records": "has records of steps, which lack the spans that a store is made of: use `export --format otlp`",
    "metrics": "has metrics, and the store counts the spans itself",
    "unknown": "is JSON, but not OTLP's",
}
_LEVELS: Final = {
    "spans": (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans",)),
    "logs": (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records")),
}
_LARGE: Final = 2**20
"""Bytes of a document that is sent in parts."""
_PART: Final = 100
"""Spans of a part."""
_REMEMBERED: Final = 500_000
"""Span ids that tell whether a span is new."""
_NAMED: Final = 10
"""Lines left out that are named."""


class _Target(Protocol):
    def take(self, request: Request) -> None: ...

    def close(self) -> None: ...


class Importer:
    """``new`` and ``known`` count spans, ``events`` log records; ``left_out`` is whether anything could not be taken.

    Raises UsageError when the store cannot be had.
    """

    def __init__(self, settings: Settings) -> None:
        folder = settings.data or default_folder()
        url = folder_server(folder)
        self._target: _Target = Uplink(url, settings.token) if url else OfflineStore(folder, settings.prices)
        try:
            self._db = open_store(folder)
        except BaseException:
            self._target.close()
            raise
        self._spans = KnownSpans(self._db, _REMEMBERED)
        self._progress = Progress()
        self._retain = settings.retain
        self._oldest_ns = int((time.time() - settings.retain) * 1e9)
        self.new = self.known = self.events = 0
        self._old = self._unusable = self._lines = 0
        self._places: list[str] = []

    @property
    def left_out(self) -> bool:
        """Whether something was not taken; ``notes`` say what."""
        return bool(self._lines or self._unusable)

    def close(self) -> None:
        """Gives back what is open."""
        self._progress.clear()
        self._db.close()
        self._target.close()

    def read(self, name: str, file: BinaryIO) -> None:
        """Takes the documents of a file. Raises UsageError when there is nothing in it that can be taken."""
        taken = False
        reason = ""
        for document in read_documents(file):
            problem = self._take(document)
            if problem is None:
                taken = True
                continue
            reason = reason or problem
            self._lines += 1
            if len(self._places) < _NAMED:
                self._places.append(f"{name}, line {document.line}: it {problem}")
        if reason and not taken:
            raise UsageError(f"Nothing of {name} can be taken: it {reason}.", _TAKEN)

    def summary(self) -> str:
        """What came in, as a sentence."""
        return f"{self.new:,} spans new, {self.known:,} known already, {self.events:,} log records."

    def notes(self) -> Iterator[str]:
        """What was left out, and what will not stay."""
        for place in self._places:
            yield f"left out {place}."
        if self._lines > len(self._places):
            yield f"left out {self._lines - len(self._places):,} lines more."
        if self._unusable:
            yield f"left out {self._unusable:,} spans without a trace id and a span id."
        if self._old:
            yield (
                f"{self._old:,} spans ended over {self._retain / 86_400:g} days ago: a server deletes them soon,"
                " unless it has a longer --retain."
            )

    def _take(self, document: Document) -> str | None:
        """Takes one document; None, or why it is left out."""
        if document.problem:
            return document.problem
        kind = kind_of(document.data)
        if kind in _REASONS:
            return _REASONS[kind]
        try:
            for data in _parts(document.data, kind) if document.size > _LARGE else (document.data,):
                if kind == "spans":
                    spans = ExportTraceServiceRequest()
                    fill(spans, data)
                    self._take_spans(spans)
                else:
                    logs = ExportLogsServiceRequest()
                    fill(logs, data)
                    self._target.take(logs)
                    self.events += sum(
                        len(scope.log_records) for resource in logs.resource_logs for scope in resource.scope_logs
                    )
        except JsonError as error:
            return f"is not OTLP/JSON: {error}"
        except RefusedError as error:
            return f"is refused: {error}"
        except StoreError as error:
            raise UsageError(f"The store did not take it: {error}.", "Look at the disk, then import again.") from None
        return None

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
        usable = [span for span in spans if _is_usable(span.trace_id, span.span_id)]
        new = self._spans.count_new([(span.trace_id, span.span_id) for span in usable])
        self._target.take(request)
        self.new += new
        self.known += len(usable) - new
        self._unusable += len(spans) - len(usable)
        self._old += sum(span.end_time_unix_nano < self._oldest_ns for span in usable)
        self._progress.tell(self.summary())


def _is_usable(trace_id: bytes, span_id: bytes) -> bool:
    return len(trace_id) == 16 and len(span_id) == 8 and any(trace_id) and any(span_id)


def _parts(data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """A document in several of the same form, by its records. Raises JsonError."""
    resources, scopes, records = _LEVELS[kind]
    name, listed = _objects(data, resources)
    for resource in listed:
        scopes_name, scopes_listed = _objects(resource, scopes)
        for scope in scopes_listed:
            records_name, found = _objects(scope, records)
            for at in range(0, len(found), _PART):
                part = {**scope, records_name: found[at : at + _PART]}
                yield {name: [{**resource, scopes_name: [part]}]}


def _objects(data: dict[str, Any], names: tuple[str, ...]) -> tuple[str, list[dict[str, Any]]]:
    name = next((name for name in names if name in data), names[0])
    listed = data.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise JsonError(f"{name} must be a list of objects")
    return name, listed
