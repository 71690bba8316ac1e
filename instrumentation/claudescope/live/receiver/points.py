"""The latest metric points of each sender, for ``/metrics``: the instruments of ``semconv.METRICS``, exactly.

Exponential histograms, other metrics, and those in another unit than the conventions say are left out: by the names of
``semconv`` they would be figures of something else.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    HistogramDataPoint,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Exemplar as SentExemplar

from ... import semconv
from ..attributes import plain_attributes
from ..records import service_of

__all__ = ["MAX_SERIES", "Count", "Distribution", "Exemplar", "Points", "Series"]

MAX_SERIES: Final = 10_000
IDLE_S: Final = 3600.0
"""A series without an update for so long is dropped."""
_STALE_S: Final = 300.0
"""What a process is doing is not told any longer, so long after it said so last: as Prometheus forgets a series."""
_REPLACED_S: Final = 300.0
"""When all places are taken, one without an update for so long makes room for a new series."""
_MAX_BUCKETS: Final = 128
_MAX_LABELS: Final = 4096
"""Bytes of a series' attributes, and of a sender's resource."""
_MAX_EXEMPLAR: Final = 128
"""Characters of an exemplar's names and values, by OpenMetrics."""


class Exemplar(NamedTuple):
    """One measurement with its span."""

    value: float
    ts_s: float
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Count:
    """A counter's value since its start, or an up-down counter's as it is."""

    value: float
    exemplar: Exemplar | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's values since its start: ``counts`` of each bound (inclusive) and, last, of what is above all.

    ``exemplars`` are by place in ``counts``. ``sum`` is None where the sender does not say.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float | None
    exemplars: Mapping[int, Exemplar]


class Series(NamedTuple):
    """One series: its sender's resource and its own attributes as plain values, and its latest point."""

    resource: dict[str, Any]
    attributes: dict[str, Any]
    point: Count | Distribution


@dataclass(slots=True)
class _Slot:
    series: Series
    time_ns: int
    seen: float


_Key = tuple[str, bytes, bytes]


class Points:
    """The latest point of every series. Delta points are added up. Used by the event loop only.

    A series is replaced by each update, never changed, so what ``families`` gave may be read on another thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_series: int = MAX_SERIES) -> None:
        self._clock = clock
        self._max = max_series
        self._slots: dict[_Key, _Slot] = {}  # the one updated least recently first
        self.refused = 0
        """Points that did not fit."""

    def __len__(self) -> int:
        return len(self._slots)

    def read(self, request: ExportMetricsServiceRequest) -> int:
        """Takes the points of a request; returns how many of its histograms' points did not fit.

        Counters that do not fit are told by ``Counters``, which reads the same request.
        """
        refused = 0
        now = self._clock()
        self._expire(now)
        for resource_metrics in request.resource_metrics:
            sent = resource_metrics.resource
            sender = sent.SerializeToString(deterministic=True)
            resource: dict[str, Any] | None = None
            for scope_metrics in resource_metrics.scope_metrics:
                for metric in scope_metrics.metrics:
                    known = semconv.METRICS.get(metric.name)
                    if known is None or metric.unit not in ("", known.unit):
                        continue
                    if resource is None:
                        resource = {
                            semconv.SERVICE_NAME: service_of(sent.attributes),
                            **plain_attributes(sent.attributes),
                        }
                    if known.kind in ("counter", "updowncounter") and metric.HasField("sum"):
                        delta = _is_delta(metric.sum.aggregation_temporality)
                        for number in metric.sum.data_points:
                            self._take(metric.name, sender, resource, number, _count, delta, now)
                    elif known.kind == "histogram" and metric.HasField("histogram"):
                        delta = _is_delta(metric.histogram.aggregation_temporality)
                        for point in metric.histogram.data_points:
                            refused += self._take(metric.name, sender, resource, point, _distribution, delta, now)
        return refused

    def _take(
        self,
        name: str,
        sender: bytes,
        resource: dict[str, Any],
        point: Any,
        read: Callable[[Any, Any], Count | Distribution | None],
        delta: bool,
        now: float,
    ) -> int:
        attributes = b"".join(sorted([attribute.SerializeToString() for attribute in point.attributes]))
        key = (name, sender, attributes)
        slot = self._slots.get(key)
        if point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
            self._slots.pop(key, None)  # the series has ended
            return 0
        if slot is not None and slot.time_ns and point.time_unix_nano <= slot.time_ns:
            return 0  # sent again, or overtaken
        before = slot.series.point if slot is not None else None
        found = read(point, before)
        fits = len(attributes) <= _MAX_LABELS and len(sender) <= _MAX_LABELS
        if found is None or not fits or (slot is None and not self._has_room(now)):
            self.refused += 1
            return 1
        if delta and before is not None:
            found = _added(before, found)
        named = slot.series.attributes if slot is not None else plain_attributes(point.attributes)
        self._slots.pop(key, None)
        self._slots[key] = _Slot(Series(resource, named, found), point.time_unix_nano, now)
        return 0

    def _has_room(self, now: float) -> bool:
        if len(self._slots) < self._max:
            return True
        oldest = next(iter(self._slots))
        if now - self._slots[oldest].seen < _REPLACED_S:
            return False
        del self._slots[oldest]
        return True

    def _expire(self, now: float) -> None:
        while self._slots:
            oldest = next(iter(self._slots))
            if now - self._slots[oldest].seen < IDLE_S:
                return
            del self._slots[oldest]

    def families(self) -> dict[str, list[Series]]:
        """The series of each metric that has any, by the metric's name in ``semconv``."""
        now = self._clock()
        self._expire(now)
        found: dict[str, list[Series]] = {}
        for (name, _, _), slot in self._slots.items():
            if now - slot.seen < _STALE_S or semconv.METRICS[name].kind != "updowncounter":
                found.setdefault(name, []).append(slot.series)
        return found


def _is_delta(temporality: int) -> bool:
    return temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


def _count(point: NumberDataPoint, before: Count | None) -> Count | None:
    value = float(point.as_int) if point.HasField("as_int") else point.as_double
    if not 0 <= value < math.inf:
        return None
    latest = _exemplar(point.exemplars[-1]) if point.exemplars else None
    return Count(value, latest or (before.exemplar if before is not None else None))


def _distribution(point: HistogramDataPoint, before: Distribution | None) -> Distribution | None:
    bounds = tuple(point.explicit_bounds)
    counts = tuple(point.bucket_counts)
    if not counts and not bounds:
        counts = (point.count,)  # a histogram without buckets
    if len(counts) != len(bounds) + 1 or len(counts) > _MAX_BUCKETS or sum(counts) != point.count:
        return None
    if not all(map(math.isfinite, bounds)) or any(low >= high for low, high in itertools.pairwise(bounds)):
        return None
    if point.HasField("sum") and not math.isfinite(point.sum):
        return None
    exemplars = dict(before.exemplars) if before is not None and before.bounds == bounds else {}
    for sent in point.exemplars:
        exemplar = _exemplar(sent)
        if exemplar is not None:
            exemplars[_place(bounds, exemplar.value)] = exemplar
    return Distribution(bounds, counts, point.sum if point.HasField("sum") else None, exemplars)


def _place(bounds: Sequence[float], value: float) -> int:
    return next((place for place, bound in enumerate(bounds) if value <= bound), len(bounds))


def _exemplar(sent: SentExemplar) -> Exemplar | None:
    value = float(sent.as_int) if sent.HasField("as_int") else sent.as_double
    if not math.isfinite(value) or not sent.trace_id:
        return None
    labels = {"trace_id": sent.trace_id.hex(), "span_id": sent.span_id.hex()}
    more = {key: str(item) for key, item in plain_attributes(_some(sent.filtered_attributes)).items()}
    labels = {**more, **labels} if _length(more) + _length(labels) <= _MAX_EXEMPLAR else labels
    return Exemplar(value, sent.time_unix_nano / 1e9, labels) if _length(labels) <= _MAX_EXEMPLAR else None


def _some(attributes: Sequence[KeyValue]) -> Iterable[KeyValue]:
    return attributes if len(attributes) <= _MAX_EXEMPLAR else ()


def _length(labels: Mapping[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in labels.items())


def _added(before: Count | Distribution, more: Count | Distribution) -> Count | Distribution:
    """``more`` with what there was before; other bounds start afresh."""
    if isinstance(before, Count) and isinstance(more, Count):
        return Count(before.value + more.value, more.exemplar)
    if isinstance(before, Distribution) and isinstance(more, Distribution) and before.bounds == more.bounds:
        counts = tuple(old + new for old, new in zip(before.counts, more.counts, strict=True))
        both = None if before.sum is None or more.sum is None else before.sum + more.sum
        return Distribution(more.bounds, counts, both, more.exemplars)
    return more
