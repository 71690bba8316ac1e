"""Exporters that do not lose and do not lie: OTLP through a bounded buffer, sent again until delivered or counted lost.

``export`` encodes once, appends to the buffer and returns at once. ``force_flush`` is True only when all that was
exported before has been delivered and nothing was dropped since the last call.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TextIO, TypeVar

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics import Counter, Histogram, ObservableCounter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult

from ..settings import Settings
from .endpoint import Endpoint, Signal, resolve
from .otel_env import exporter_name
from .sender import Kind, OnDrop, Sender
from .transport import HttpTransport, Transport

__all__ = [
    "LARGEST_REQUEST",
    "OtlpLogExporter",
    "OtlpMetricExporter",
    "OtlpSpanExporter",
    "make_log_exporter",
    "make_metric_exporter",
    "make_span_exporter",
    "say_losses",
]

_logger = logging.getLogger(__name__)

T = TypeVar("T")
LARGEST_REQUEST: Final = 2 << 20
"""Encoded bytes above which a batch is split in two: servers refuse what is too large, gRPC ones at 4 MiB."""
_KINDS: Final[dict[Signal, Kind]] = {"traces": "span", "logs": "log", "metrics": "metric"}


def _open_transport(endpoint: Endpoint) -> Transport:
    """The transport that the endpoint's protocol asks for. gRPC is imported only here and only when it is asked for."""
    if endpoint.protocol == "grpc":
        from .grpc_transport import GrpcTransport

        return GrpcTransport(endpoint)
    return HttpTransport(endpoint)


class _Otlp:
    """What the three exporters share: endpoint, sender, and the honest answers about them."""

    def __init__(self, endpoint: Endpoint, settings: Settings, on_drop: OnDrop | None = None) -> None:
        self.endpoint: Final = endpoint
        self._exit_wait = settings.exit_wait
        self.sender: Final = Sender(
            _open_transport(endpoint),
            _KINDS[endpoint.signal],
            endpoint.address,
            buffer=settings.export_buffer,
            retry=settings.export_retry,
            timeout=endpoint.timeout,
            longest_backoff=1.0 if endpoint.loopback else 5.0,
            join=endpoint.signal != "metrics",  # the samples of a series stay in requests of their own, in order
            on_drop=on_drop,
        )

    @property
    def losses(self) -> dict[str, int]:
        """Items lost so far in this process, by reason."""
        return self.sender.losses

    def _submit(self, items: Sequence[T], encode: Callable[[Sequence[T]], bytes]) -> bool:
        payload = b""
        why = ""
        try:
            payload = encode(items)
        except Exception as error:  # noqa: BLE001 - one item that cannot be encoded must not take the others with it
            why = f"it cannot be encoded: {error}"
        if len(items) > 1 and (why or len(payload) > LARGEST_REQUEST):
            half = len(items) // 2
            first = self._submit(items[:half], encode)
            return self._submit(items[half:], encode) and first
        if why:
            self.sender.lost("rejected", len(items), why)
            return False
        return self.sender.submit(payload, len(items))

    def _flush(self, timeout_millis: float) -> bool:
        return self.sender.flush(timeout_millis / 1000)

    def _shutdown(self, timeout_millis: float | None) -> None:
        self.sender.shutdown(self._exit_wait if timeout_millis is None else timeout_millis / 1000)


class OtlpSpanExporter(_Otlp, SpanExporter):
    """Spans over OTLP/HTTP or gRPC."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Buffers the spans; FAILURE when some found no room."""
        kept = self._submit(spans, lambda items: encode_spans(items).SerializeToString())
        return SpanExportResult.SUCCESS if kept else SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """True when all is delivered and nothing was dropped since the last call."""
        return self._flush(timeout_millis)

    def shutdown(self, timeout_millis: float | None = None) -> None:
        """Waits for the last batches, by default ``CLAUDESCOPE_EXIT_WAIT``; what is left counts as lost."""
        self._shutdown(timeout_millis)


class OtlpLogExporter(_Otlp, LogRecordExporter):
    """Log records over OTLP/HTTP or gRPC."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Buffers the records; FAILURE when some found no room."""
        kept = self._submit(batch, lambda items: encode_logs(items).SerializeToString())
        return LogRecordExportResult.SUCCESS if kept else LogRecordExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """True when all is delivered and nothing was dropped since the last call."""
        return self._flush(timeout_millis)

    def shutdown(self, timeout_millis: float | None = None) -> None:
        """Waits for the last batches, by default ``CLAUDESCOPE_EXIT_WAIT``; what is left counts as lost."""
        self._shutdown(timeout_millis)


class OtlpMetricExporter(_Otlp, MetricExporter):
    """Metrics over OTLP/HTTP or gRPC. Exports wait like spans do: the sample of 0 before a first failure must arrive.

    Temporality and histogram aggregation follow ``OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`` and
    ``OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION``.
    """

    def __init__(
        self, endpoint: Endpoint, settings: Settings, env: Mapping[str, str], on_drop: OnDrop | None = None
    ) -> None:
        _Otlp.__init__(self, endpoint, settings, on_drop)
        MetricExporter.__init__(self, _temporality(env), _aggregation(env))

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """Buffers one collection; FAILURE when it found no room."""
        points = sum(
            len(metric.data.data_points)
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        )
        kept = self.sender.submit(encode_metrics(metrics_data).SerializeToString(), points)
        return MetricExportResult.SUCCESS if kept else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """True when all is delivered and nothing was dropped since the last call."""
        return self._flush(timeout_millis)

    def shutdown(self, timeout_millis: float | None = None, **kwargs: Any) -> None:
        """Waits for the last collection; the SDK's periodic reader says ``timeout`` (ms) for the same."""
        self._shutdown(kwargs.get("timeout", timeout_millis))


def _temporality(env: Mapping[str, str]) -> dict[type, AggregationTemporality] | None:
    preference = env.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "").strip().lower()
    if preference not in ("delta", "lowmemory"):
        return None
    delta = [Counter, Histogram] + ([ObservableCounter] if preference == "delta" else [])
    return dict.fromkeys(delta, AggregationTemporality.DELTA)


def _aggregation(env: Mapping[str, str]) -> dict[type, Any] | None:
    wanted = env.get("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "").strip().lower()
    if wanted == "base2_exponential_bucket_histogram":
        return {Histogram: ExponentialBucketHistogramAggregation()}
    return None


def make_span_exporter(
    settings: Settings, env: Mapping[str, str], on_drop: OnDrop | None = None
) -> SpanExporter | None:
    """The span exporter that ``OTEL_TRACES_EXPORTER`` asks for; None for ``none``."""
    name = exporter_name("traces", env)
    if name == "otlp":
        return OtlpSpanExporter(resolve("traces", env), settings, on_drop)
    return ConsoleSpanExporter() if name == "console" else None


def make_log_exporter(
    settings: Settings, env: Mapping[str, str], on_drop: OnDrop | None = None
) -> LogRecordExporter | None:
    """The log exporter that ``OTEL_LOGS_EXPORTER`` asks for; None for ``none``."""
    name = exporter_name("logs", env)
    if name == "otlp":
        return OtlpLogExporter(resolve("logs", env), settings, on_drop)
    return ConsoleLogRecordExporter() if name == "console" else None


def make_metric_exporter(
    settings: Settings, env: Mapping[str, str], on_drop: OnDrop | None = None
) -> MetricExporter | None:
    """The metric exporter that ``OTEL_METRICS_EXPORTER`` asks for; None for ``none``."""
    name = exporter_name("metrics", env)
    if name == "otlp":
        return OtlpMetricExporter(resolve("metrics", env), settings, env, on_drop)
    return ConsoleMetricExporter() if name == "console" else None


def say_losses(exporters: Iterable[object], stream: TextIO | None = None) -> int:
    """Writes one line for each endpoint that did not get everything; gives the number of spans and logs lost.

    ``claudescope: 123 spans and 4 logs were not delivered to http://127.0.0.1:4318: connection refused``. Call it once,
    after the exporters' shutdown. Others than this module's exporters are passed over. ``stream`` is standard error
    by default.
    """
    out = sys.stderr if stream is None else stream
    found: dict[str, dict[Literal["span", "log", "metric"], int]] = {}
    reasons: dict[str, str] = {}
    for exporter in exporters:
        if isinstance(exporter, _Otlp) and (lost := sum(exporter.losses.values())):
            sender = exporter.sender
            counts = found.setdefault(sender.address, {})
            counts[sender.kind] = counts.get(sender.kind, 0) + lost
            reasons[sender.address] = reasons.get(sender.address) or sender.last_error
    total = 0
    for address, counts in found.items():
        words = [
            f"{counts[kind]:,} {kind}{'' if counts[kind] == 1 else 's'}" for kind in ("span", "log") if kind in counts
        ]
        total += counts.get("span", 0) + counts.get("log", 0)
        if "metric" in counts:
            words.append("some metrics")
        verb = "was" if words == ["1 span"] or words == ["1 log"] else "were"
        why = f": {reasons[address]}" if reasons[address] else ""
        listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        out.write(f"claudescope: {listed} {verb} not delivered to {address}{why}\n")
    return total
