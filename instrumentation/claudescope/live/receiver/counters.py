"""Logs and metrics of a request: evaluation events and others as sent, and the latest values of our counters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any, Final

import orjson
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from ... import semconv
from ..attributes import plain_attributes
from ..records import service_of
from ..store.jobs import CounterPoint, LogEvent

__all__ = ["Counters", "read_logs"]

_KEPT: Final = frozenset({semconv.STEPS.name, semconv.DROPPED.name})
_MAX_SERIES: Final = 10_000
_MAX_LABELS: Final = 4096
"""Characters of one series."""


def read_logs(request: ExportLogsServiceRequest) -> list[LogEvent]:
    """The log records of a request; one without a name has the empty name."""
    events: list[LogEvent] = []
    for resource_logs in request.resource_logs:
        service = service_of(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                data = record.SerializeToString(deterministic=True)
                digest = hashlib.blake2b(data + service.encode(), digest_size=16).digest()
                name = record.event_name or next(
                    (a.value.string_value for a in record.attributes if a.key == "event.name"), ""
                )
                time_ns = record.time_unix_nano or record.observed_time_unix_nano
                events.append(
                    LogEvent(digest, record.trace_id, record.span_id, time_ns // 1_000_000, name, service, data)
                )
    return events


class Counters:
    """The latest value of each series of ``claudescope.steps`` and ``claudescope.dropped``, by sender.

    A series is one label set of one sender and one start; ``items`` sums over senders, so a restart of an app adds.
    Used by the event loop only.
    """

    def __init__(self, stored: Iterable[tuple[str, float]] = ()) -> None:
        self._values: dict[str, float] = dict(stored)
        self._drops: dict[str, tuple[str, str]] = {}
        """Series of ``claudescope.dropped``, with reason and kind: asked for each second."""
        self.senders: set[str] = set()
        """Services that count their steps themselves, now or before."""
        for series in self._values:
            self._note(series)

    def read(self, request: ExportMetricsServiceRequest) -> tuple[list[CounterPoint], int]:
        """Takes the points of a request; returns those to store, and how many did not fit."""
        points: list[CounterPoint] = []
        refused = 0
        for resource_metrics in request.resource_metrics:
            resource = resource_metrics.resource
            service = service_of(resource.attributes)
            sender = hashlib.blake2b(resource.SerializeToString(deterministic=True), digest_size=8).hexdigest()
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    if metric.name not in _KEPT or not metric.HasField("sum"):
                        continue
                    delta = metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
                    for point in metric.sum.data_points:
                        value = float(point.as_int) if point.HasField("as_int") else point.as_double
                        if not math.isfinite(value) or value < 0:
                            refused += 1
                            continue
                        start = 0 if delta else point.start_time_unix_nano
                        labels = sorted(plain_attributes(point.attributes).items())
                        series = orjson.dumps([sender, str(start), metric.name, service, labels]).decode()
                        if len(series) > _MAX_LABELS or (
                            series not in self._values and len(self._values) >= _MAX_SERIES
                        ):
                            refused += 1
                            continue
                        if delta:
                            value += self._values.get(series, 0.0)
                        if series not in self._values:
                            self._note(series)
                        self._values[series] = value
                        points.append(CounterPoint(series, value, point.time_unix_nano // 1_000_000))
        return points, refused

    def _note(self, series: str) -> None:
        _, _, name, service, labels = orjson.loads(series)
        if name == semconv.STEPS.name:
            self.senders.add(service)
        else:
            given = dict(labels)
            self._drops[series] = str(given.get(semconv.DROPPED_REASON, "")), str(given.get(semconv.DROPPED_KIND, ""))

    def items(self) -> list[dict[str, Any]]:
        """``{"name", "labels", "value"}`` of each label set, summed over senders."""
        sums: dict[str, float] = {}
        for series, value in self._values.items():
            _, _, name, service, labels = orjson.loads(series)
            key = orjson.dumps([name, service, labels]).decode()
            sums[key] = sums.get(key, 0.0) + value
        found = []
        for key, value in sorted(sums.items()):
            name, service, labels = orjson.loads(key)
            found.append({"name": name, "labels": {"service": service, **dict(labels)}, "value": value})
        return found

    def dropped(self) -> list[dict[str, Any]]:
        """What senders say that they dropped, summed over senders: ``{"reason", "kind", "value"}``."""
        sums: dict[tuple[str, str], float] = {}
        for series, key in self._drops.items():
            sums[key] = sums.get(key, 0.0) + self._values[series]
        return [
            {"reason": reason, "kind": kind, "value": value} for (reason, kind), value in sorted(sums.items()) if value
        ]
