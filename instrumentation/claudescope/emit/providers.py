"""Which OpenTelemetry providers are used: the app's where it has real ones, else private ones. None is ever set.

Setting a global provider would make the app's own later set-up fail with "Overriding..." and lose its spans. So each
use asks anew what the app has. With export mode ``both``, our exporting processor is added to the app's own providers,
whose spans then go where they went and to our endpoint too; so do its metrics, and the events of our own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import LoggerProvider, NoOpLoggerProvider
from opentelemetry._logs._internal import ProxyLoggerProvider
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.metrics._internal import _ProxyMeterProvider
from opentelemetry.sdk._logs import LoggerProvider as SdkLoggerProvider
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, SpanContext, TracerProvider

from .. import semconv
from ..settings import Settings
from .batching import BatchLimits, LogBatchProcessor, SpanBatchProcessor
from .exporter import make_log_exporter, make_metric_exporter, make_span_exporter, say_losses
from .holding import HoldingProcessor, Late
from .otel_env import resource, sampler
from .reader import IntervalReader, interval

__all__ = ["Providers"]

_logger = logging.getLogger("claudescope")
OnDrop = Callable[[Any, Any, int], None]
T = TypeVar("T")


class _Flushable(Protocol):
    def force_flush(self, timeout_millis: int = 30_000) -> bool: ...


class _ByIdentity(Generic[T]):
    """What belongs to each provider met, for as long as it lives. Some, such as logfire's, have no hash."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Any], T]] = {}

    def __contains__(self, provider: object) -> bool:
        return id(provider) in self._entries

    def __setitem__(self, provider: Any, value: T) -> None:
        key = id(provider)
        try:
            known: Callable[[], Any] = weakref.ref(provider, lambda _: self._entries.pop(key, None))
        except TypeError:
            known = lambda: provider  # noqa: E731
        self._entries[key] = (known, value)

    def get(self, provider: object) -> T | None:
        entry = self._entries.get(id(provider))
        return None if entry is None else entry[1]

    def values(self) -> list[T]:
        return [value for _, value in tuple(self._entries.values())]

    def __iter__(self) -> Iterator[Any]:
        providers = [known() for known, _ in tuple(self._entries.values())]
        return iter([provider for provider in providers if provider is not None])


class _OurEvents(LogRecordProcessor):
    """Passes on what claudescope emits, and nothing else of the app's log."""

    def __init__(self, inner: LogBatchProcessor) -> None:
        self.inner = inner

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        scope = log_record.instrumentation_scope
        if scope is not None and scope.name == semconv.SCOPE:
            self.inner.on_emit(log_record)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.inner.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self.inner.shutdown()


class Providers:
    """The providers of one process.

    ``spotter`` is added to every tracer provider that is met; ``on_attach`` is called when one is met the first time.
    """

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        spotter: SpanProcessor,
        on_drop: OnDrop,
        on_attach: Callable[[], None],
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        self.both: Final = settings.export == "both"
        self._on_attach = on_attach
        self._settings = settings
        self._env = env
        # Made now: it starts threads, which cannot be done any more when the first call is worked on at exit.
        self.resource = resource(env)
        self._spotter = spotter
        self._lock = threading.RLock()
        self._on_drop = on_drop
        self._given = (tracer_provider, meter_provider, logger_provider)
        self._latest: TracerProvider | None = None
        """The global provider as it was met last."""
        self._attached: _ByIdentity[HoldingProcessor | None] = _ByIdentity()
        self._tracer_provider: SdkTracerProvider | None = None
        self._meter_provider: SdkMeterProvider | None = None
        self._logger_provider: SdkLoggerProvider | None = None
        self._readers: _ByIdentity[IntervalReader | None] = _ByIdentity()
        """Ours on each meter provider: the private one and, with export mode ``both``, the app's."""
        self._logs: _ByIdentity[LogBatchProcessor | None] = _ByIdentity()
        self._pipeline: HoldingProcessor | None = None
        self._exporters: list[Any] = []
        if tracer_provider is not None:
            self._attach(tracer_provider)
        self.real(None)

    # ------------------------------------------------------------------------------ traces

    def real(self, own: TracerProvider | None) -> TracerProvider | None:
        """The provider that the SDK's and the app's spans go to: a client's ``own``, else the global one, if set."""
        provider = own or trace.get_tracer_provider()
        if provider is self._latest:  # asked at each call: the common answer first
            return provider
        if isinstance(provider, (ProxyTracerProvider, NoOpTracerProvider)):
            return None
        if provider not in self._attached:
            with self._lock:
                if provider not in self._attached:
                    self._attach(provider)
        if own is None:
            self._latest = provider
        return provider

    def tracer_provider(self, own: TracerProvider | None) -> TracerProvider:
        """The provider for a span of ours: a client's own, the given, the app's, else the private one."""
        provider = own or self._given[0] or self.real(None)
        if provider is not None:
            return provider
        private = self._tracer_provider
        if private is not None:
            return private
        with self._lock:
            if self._tracer_provider is None:
                # atexit is ours: the worker must have drained first
                private = SdkTracerProvider(resource=self.resource, sampler=sampler(self._env), shutdown_on_exit=False)
                private.add_span_processor(self._spotter)
                private.add_span_processor(self._processor())
                self._tracer_provider = private
            return self._tracer_provider

    def _attach(self, provider: TracerProvider) -> None:
        """Under the lock. The provider counts as attached once it is: another thread's call waits for the spotter."""
        add = getattr(provider, "add_span_processor", None)
        processor = self._processor() if self.both and add is not None else None
        try:
            if add is not None:
                add(self._spotter)
            if add is not None and processor is not None:
                add(processor)
        finally:
            self._attached[provider] = processor
        self._on_attach()

    def _processor(self) -> HoldingProcessor:
        """The one exporting pipeline of the process, behind every provider that it is added to."""
        if self._pipeline is None:
            exporter = make_span_exporter(self._settings, self._env, self._on_drop)
            inner: SpanProcessor = SpanProcessor()
            if exporter is not None:
                self._exporters.append(exporter)
                limits = BatchLimits.read(getattr(exporter, "endpoint", None), self._env)
                inner = SpanBatchProcessor(exporter, limits, lambda n: self._on_drop("queue_full", "span", n))
            self._pipeline = HoldingProcessor(inner)
        return self._pipeline

    def expect(self, context: SpanContext) -> None:
        """The call span of ``context``, made by somebody else, waits for ``release`` before our export."""
        if self._pipeline is not None:
            self._pipeline.expect(context)

    def release(self, context: SpanContext, late: Late) -> None:
        """That span may be exported, with ``late`` attributes."""
        if self._pipeline is not None:
            self._pipeline.release(context, late)

    # ------------------------------------------------------------------------------ metrics and logs

    def meter_provider(self) -> MeterProvider:
        """The given meter provider, the app's, or the private one, made at first use."""
        with self._lock:
            return self._meters_go_to()

    def _meters_go_to(self) -> MeterProvider:
        provider = self._given[1] or metrics.get_meter_provider()
        if not isinstance(provider, (_ProxyMeterProvider, NoOpMeterProvider)):
            if self.both and provider not in self._readers:
                add = _adder(provider, "add_metric_reader")  # newer SDKs have it
                self._readers[provider] = reader = None if add is None else self._reader()
                if add is not None and reader is not None:
                    add(reader)
                self._on_attach()
            return provider
        if self._meter_provider is None:
            reader = self._reader()
            readers = () if reader is None else (reader,)
            self._meter_provider = SdkMeterProvider(readers, resource=self.resource, shutdown_on_exit=False)
            self._readers[self._meter_provider] = reader
        return self._meter_provider

    def _reader(self) -> IntervalReader | None:
        exporter = make_metric_exporter(self._settings, self._env, self._on_drop)
        if exporter is None:
            return None
        self._exporters.append(exporter)
        return IntervalReader(exporter, interval(self._env))

    def logger_provider(self) -> LoggerProvider:
        """The given logger provider, the app's, or the private one, made at first use."""
        with self._lock:
            return self._logs_go_to()

    def _logs_go_to(self) -> LoggerProvider:
        provider = self._given[2] or _logs.get_logger_provider()
        if not isinstance(provider, (ProxyLoggerProvider, NoOpLoggerProvider)):
            if self.both and provider not in self._logs:
                add = _adder(provider, "add_log_record_processor")
                self._logs[provider] = processor = None if add is None else self._log_processor()
                if add is not None and processor is not None:
                    add(_OurEvents(processor))
                self._on_attach()
            return provider
        if self._logger_provider is None:
            self._logger_provider = SdkLoggerProvider(resource=self.resource, shutdown_on_exit=False)
            self._logs[self._logger_provider] = processor = self._log_processor()
            if processor is not None:
                self._logger_provider.add_log_record_processor(processor)
        return self._logger_provider

    def _log_processor(self) -> LogBatchProcessor | None:
        exporter = make_log_exporter(self._settings, self._env, self._on_drop)
        if exporter is None:
            return None
        self._exporters.append(exporter)
        limits = BatchLimits.read(getattr(exporter, "endpoint", None), self._env, "OTEL_BLRP")
        return LogBatchProcessor(exporter, limits, lambda n: self._on_drop("queue_full", "log", n))

    # ------------------------------------------------------------------------------ end

    def collect(self) -> bool:
        """Collects the metrics now, into our own buffer; says whether nobody but us exports them."""
        provider = self.meter_provider()
        reader = self._readers.get(provider)
        if reader is not None:
            reader.collect()
        return reader is not None and provider is self._meter_provider

    def flush_metrics(self, timeout: float) -> bool:
        """Exports the metrics now, from whichever provider is used."""
        return _flush(self.meter_provider(), timeout)

    def flush(self, timeout: float) -> bool:
        """Delivers all that is waiting; False when something of our own exporters was lost or is still waiting."""
        deadline = time.monotonic() + timeout
        own = self._collected()
        delivered = sum(_flush(target, deadline - time.monotonic()) for target in own) == len(own)
        for target in (*self._attached, *self._readers, *self._logs, *self._given[1:]):
            try:
                _flush(target, deadline - time.monotonic())
            except Exception:  # the app's own exporter: what it lost is not for us to say
                _logger.warning("claudescope could not flush the app's %s", type(target).__name__, exc_info=True)
        return delivered

    def _collected(self) -> list[_Flushable]:
        """What of ours delivers, with the metrics collected: a flush of their provider does not say what was lost."""
        for reader in self._readers.values():
            if reader is not None:
                reader.collect()
        own: list[_Flushable] = [processor for processor in self._logs.values() if processor is not None]
        own += [reader.exporter for reader in self._readers.values() if reader is not None]
        return own if self._pipeline is None else [*own, self._pipeline]

    def shutdown(self, timeout: float) -> None:
        """Delivers what can be delivered in ``timeout`` seconds and says on standard error what was lost."""
        deadline = time.monotonic() + timeout
        if self._pipeline is not None:
            self._pipeline.let_go()
        for target in self._collected():
            _flush(target, max(0.0, deadline - time.monotonic()))
        for reader in self._readers.values():
            if reader is not None:
                reader.shutdown()  # the app's own provider goes on, and must not collect into a closed exporter
        for exporter in self._exporters:
            if hasattr(exporter, "losses"):
                exporter.shutdown(timeout_millis=max(0.0, deadline - time.monotonic()) * 1000)
        if self._pipeline is not None:
            self._pipeline.end()
        say_losses(self._exporters)

    def after_fork(self) -> None:
        """For the child of a fork: private providers of its own, so that its counts are not taken for its parent's.

        The span processor and the exporters start again by themselves.
        """
        self._lock = threading.RLock()
        own: dict[str, str | int] = {semconv.PROCESS_PID: os.getpid()}
        if semconv.SERVICE_INSTANCE_ID not in self._env.get("OTEL_RESOURCE_ATTRIBUTES", ""):
            own[semconv.SERVICE_INSTANCE_ID] = str(uuid.uuid4())
        self.resource = self.resource.merge(Resource(own))
        self._tracer_provider = self._meter_provider = self._logger_provider = None
        self._readers = _ByIdentity()
        if self._pipeline is not None:
            self._pipeline.after_fork()


def _adder(provider: Any, name: str) -> Callable[[Any], None] | None:
    """The method of a provider, or of the SDK's provider inside a proxy such as logfire's."""
    return getattr(provider, name, None) or getattr(getattr(provider, "provider", None), name, None)


def _flush(target: Any, timeout: float) -> bool:
    force_flush = getattr(target, "force_flush", None)
    if force_flush is None:
        return True
    return bool(force_flush(max(1, int(timeout * 1000))))
