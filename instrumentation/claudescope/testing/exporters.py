"""What an instrumented app emits, kept in memory: spans, metrics and log events of the OpenTelemetry SDK."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from .. import semconv

__all__ = ["Telemetry"]

_CALLS = ("chat", "text_completion", "generate_content")


class Telemetry:
    """Three SDK providers that export to memory, and what came out of them. Nothing global is set.

    As a context manager it shuts the providers down at the end; what was collected stays readable.
    """

    def __init__(self, resource: Mapping[str, str] | None = None) -> None:
        attributes = Resource({"service.name": "test", **(resource or {})})
        self._span_exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self._log_exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self.tracer_provider = TracerProvider(resource=attributes, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._span_exporter))
        self.meter_provider = MeterProvider(metric_readers=[self._reader], resource=attributes, shutdown_on_exit=False)
        self.logger_provider = LoggerProvider(resource=attributes, shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._log_exporter))
        self._last: dict[str, list[Any]] = {}
        self._open = True

    @property
    def spans(self) -> list[ReadableSpan]:
        """Every span that has ended, in the order in which they ended."""
        return list(self._span_exporter.get_finished_spans())

    @property
    def steps(self) -> list[ReadableSpan]:
        """The spans of reasoning steps, by their chain's step number."""
        spans = [span for span in self.spans if span.name.split(" ")[0] == semconv.STEP_SPAN]
        return sorted(spans, key=lambda span: int((span.attributes or {}).get(semconv.STEP_INDEX, 0)))  # type: ignore[arg-type]

    @property
    def calls(self) -> list[ReadableSpan]:
        """The spans of API calls, whoever made them: an operation of a model, or a client span of the SDK."""
        return [span for span in self.spans if _is_call(span)]

    @property
    def events(self) -> list[ReadableLogRecord]:
        """Every log record that is an event: ``event.log_record`` has its name, attributes and ids."""
        return [log for log in self._log_exporter.get_finished_logs() if log.log_record.event_name]

    def metric(self, name: str) -> list[Any]:
        """The data points of a metric as they stand now, cumulative; empty when nothing was recorded."""
        self._collect()
        return list(self._last.get(name, ()))

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that have points, sorted."""
        self._collect()
        return sorted(self._last)

    def _collect(self) -> None:
        data = self._reader.get_metrics_data() if self._open else None
        if data is None:
            return
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        self._last = found

    def clear(self) -> None:
        """Forgets spans and events. Metrics are cumulative and stay."""
        self._span_exporter.clear()
        self._log_exporter.clear()

    def shutdown(self) -> None:
        """Shuts the providers down, after a last look at the metrics."""
        if self._open:
            self._collect()
            self._open = False
            self.tracer_provider.shutdown()
            self.meter_provider.shutdown()
            self.logger_provider.shutdown()

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shutdown()


def _is_call(span: ReadableSpan) -> bool:
    if (span.attributes or {}).get(semconv.OPERATION_NAME) in _CALLS:
        return True
    scope = span.instrumentation_scope
    native = scope is not None and scope.name.startswith(semconv.NATIVE_SCOPE)
    return native and span.kind is SpanKind.CLIENT
