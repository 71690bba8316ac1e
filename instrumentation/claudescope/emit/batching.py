"""Span and log processors that hand finished items to an exporter in batches, from their own thread.

The SDK's batch processors drop what their queue has no room for without telling anybody, and wake up at every delay
even with nothing to do. These count each drop and sleep while there is nothing; they honour the same variables.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter

from .endpoint import Endpoint

__all__ = ["BatchLimits", "LogBatchProcessor", "SpanBatchProcessor", "schedule_delay_millis"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")
_LOOPBACK_DELAY: Final = 20
_DEFAULTS: Final = {"SCHEDULE_DELAY": 5000, "MAX_QUEUE_SIZE": 8192, "MAX_EXPORT_BATCH_SIZE": 512}


@dataclass(frozen=True)
class BatchLimits:
    """Delay in milliseconds from a batch's first item to its export, items a batch, items that may wait."""

    delay_millis: float
    batch: int
    queue: int

    @classmethod
    def read(cls, endpoint: Endpoint | None, env: Mapping[str, str], prefix: str = "OTEL_BSP") -> BatchLimits:
        """From ``OTEL_BSP_*`` (spans) or ``OTEL_BLRP_*`` (logs). A value that does not parse is as good as none."""
        queue = _whole(env, f"{prefix}_MAX_QUEUE_SIZE") or _DEFAULTS["MAX_QUEUE_SIZE"]
        batch = _whole(env, f"{prefix}_MAX_EXPORT_BATCH_SIZE") or _DEFAULTS["MAX_EXPORT_BATCH_SIZE"]
        return cls(schedule_delay_millis(endpoint, env, prefix), min(batch, queue), queue)


def schedule_delay_millis(endpoint: Endpoint | None, env: Mapping[str, str], prefix: str = "OTEL_BSP") -> int:
    """The delay that the environment asks for, else 20 ms to an endpoint on this machine, else 5,000 ms."""
    default = _LOOPBACK_DELAY if endpoint is not None and endpoint.loopback else _DEFAULTS["SCHEDULE_DELAY"]
    return _whole(env, f"{prefix}_SCHEDULE_DELAY") or default


def _whole(env: Mapping[str, str], name: str) -> int | None:
    value = env.get(name, "").strip()
    if not value:
        return None
    if value.isdigit() and int(value) > 0:
        return int(value)
    _logger.warning("%s=%s is not a whole number above 0; the default is used.", name, value)
    return None


class _Batching(Generic[T]):
    """The queue and the thread behind both processors. A queue that is full drops the newest item, counted."""

    def __init__(
        self,
        export: Callable[[list[T]], object],
        limits: BatchLimits,
        on_full: Callable[[int], None] | None,
        name: str,
    ) -> None:
        self._export = export
        self._limits = limits
        self._on_full = on_full
        self._name = name
        self._reset()
        if hasattr(os, "register_at_fork"):
            weak = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (method := weak()) and method())

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._exporting = threading.Lock()
        self._items: deque[T] = deque()
        self._filled = threading.Event()
        """There is at least one item."""
        self._hurry = threading.Event()
        """There is a whole batch, or an end."""
        self._thread: threading.Thread | None = None
        self._ended = False

    def add(self, item: T) -> None:
        with self._lock:
            waiting = len(self._items)
            if full := waiting >= self._limits.queue or self._ended:
                pass
            else:
                self._items.append(item)
                if self._thread is None:
                    self._start()
        if full:
            if self._on_full is not None:
                self._on_full(1)
        elif waiting == 0:
            self._filled.set()
        if waiting + 1 == self._limits.batch:
            self._hurry.set()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending: the flush at exit exports
            return
        self._thread = thread

    def _run(self) -> None:
        while not self._ended:
            self._filled.wait()
            self._hurry.wait(self._limits.delay_millis / 1000)
            self._hurry.clear()
            self.drain()

    def drain(self) -> None:
        """Exports all that waits, on the calling thread."""
        with self._exporting, suppress_instrumentation():
            while True:
                with self._lock:
                    self._filled.clear()
                    batch = [self._items.popleft() for _ in range(min(self._limits.batch, len(self._items)))]
                if not batch:
                    return
                try:
                    self._export(batch)
                except Exception:
                    _logger.exception("claudescope: exporting a batch failed")

    def end(self, timeout: float) -> None:
        with self._lock:
            self._ended = True
        self._filled.set()
        self._hurry.set()
        self.drain()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)


class _Processor(Generic[T]):
    """What both processors do with their exporter: the SDK's names for flushing and ending it."""

    def __init__(self, exporter: Any, limits: BatchLimits, on_full: Callable[[int], None] | None, name: str) -> None:
        self.exporter: Final = exporter
        self._batching: _Batching[T] = _Batching(exporter.export, limits, _count(exporter, on_full), name)

    def force_flush(self, timeout_millis: int | None = 30_000) -> bool:
        """Exports what waits and gives the exporter's own answer."""
        start = time.monotonic()
        self._batching.drain()
        delivered: bool = self.exporter.force_flush(_left(timeout_millis, start))
        return delivered

    def shutdown(self, timeout_millis: float = 5_000) -> None:
        """Exports what waits, then shuts the exporter down."""
        self._batching.end(1.0)
        _shutdown(self.exporter, timeout_millis)


class SpanBatchProcessor(_Processor[ReadableSpan], SpanProcessor):
    """Batches the ended, sampled spans.

    claudescope's own exporters count the spans that find no room (``queue_full``); for others, ``on_full(n)`` does.
    """

    def __init__(
        self, exporter: SpanExporter, limits: BatchLimits, on_full: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(exporter, limits, on_full, "claudescope-spans")

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queues a sampled span."""
        if span.context is not None and span.context.trace_flags.sampled:
            self._batching.add(span)


class LogBatchProcessor(_Processor[ReadableLogRecord], LogRecordProcessor):
    """Batches log records; see SpanBatchProcessor."""

    def __init__(
        self, exporter: LogRecordExporter, limits: BatchLimits, on_full: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(exporter, limits, on_full, "claudescope-logs")

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Queues a record, without the context that it was made in (which can hold much)."""
        record = copy.copy(log_record.log_record)
        record.context = Context()
        self._batching.add(
            ReadableLogRecord(
                log_record=record,
                resource=log_record.resource or Resource.create({}),
                instrumentation_scope=log_record.instrumentation_scope,
                limits=log_record.limits,
            )
        )


def _count(exporter: object, on_full: Callable[[int], None] | None) -> Callable[[int], None] | None:
    """Our own exporters' flush must know of these losses too."""
    sender = getattr(exporter, "sender", None)
    return on_full if sender is None else lambda number: sender.lost("queue_full", number)


def _left(timeout_millis: float | None, start: float) -> int:
    whole = 30_000.0 if timeout_millis is None else timeout_millis
    return max(0, int(whole - (time.monotonic() - start) * 1000))


def _shutdown(exporter: Any, timeout_millis: float) -> None:
    """Ours take the time that is left; the SDK's own, such as the console's, take nothing."""
    if hasattr(exporter, "losses"):
        exporter.shutdown(timeout_millis=timeout_millis)
    else:
        exporter.shutdown()
