"""Series as a scrape takes them: OpenMetrics or the classic text, by prometheus-client."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as SampleExemplar
from prometheus_client.utils import floatToGoString

from ... import semconv
from ..receiver.points import Count, Distribution, Exemplar, Series
from .prometheus import family_name, labels_of, resource_labels, target_labels

__all__ = ["Exposition", "figure"]

_TARGET: Final = "target"

_Samples = list[tuple[str, dict[str, str], float, SampleExemplar | None]]


def figure(name: str, kind: str, text: str, value: float) -> Metric:
    """A family of one sample without labels; ``kind`` is ``counter`` or ``gauge``."""
    family = Metric(name, text, kind)
    family.add_sample(f"{name}_total" if kind == "counter" else name, {}, value)
    return family


class Exposition(Collector):
    """Families of ``semconv.METRICS`` by name and the server's own figures; rendering asks nobody else."""

    def __init__(self, families: Mapping[str, Iterable[Series]], own: Iterable[Metric]) -> None:
        self._families = families
        self._own = own

    def render(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type, by an Accept header."""
        encode, media = choose_encoder(accept)
        return encode(self), media

    def collect(self) -> Iterable[Metric]:
        """The families in the order of ``semconv``, the senders, the server's own figures."""
        targets: dict[int, dict[str, Any]] = {}
        for name, metric in semconv.METRICS.items():
            series = list(self._families.get(name, ()))
            if series:
                yield _family(metric, series)
            targets.update((id(one.resource), one.resource) for one in series)
        if targets:
            yield _targets(targets.values())
        yield from self._own


def _family(metric: semconv.Metric, series: Iterable[Series]) -> Metric:
    name, unit = family_name(metric)
    gauge = metric.kind == "updowncounter"
    family = Metric(name, metric.brief, "gauge" if gauge else metric.kind, unit)
    senders: dict[int, dict[str, str]] = {}
    found: dict[frozenset[tuple[str, str]], _Samples] = {}
    for one in series:
        sender = senders.get(id(one.resource))
        if sender is None:
            sender = senders[id(one.resource)] = resource_labels(one.resource)
        # the series' own come first, but for job and instance: as Prometheus does
        labels = {**sender, **labels_of(one.attributes), **{k: v for k, v in sender.items() if k in _IDENTITY}}
        labels = {key: value for key, value in labels.items() if value}
        if isinstance(one.point, Distribution):
            samples = _distribution(name, labels, one.point)
        elif gauge:
            samples = [(name, labels, one.point.value, None)]
        else:
            samples = _count(name, labels, one.point)
        found[frozenset(labels.items())] = samples
    for samples in found.values():  # once each: a scrape with a sample twice is refused as a whole
        for sample, labels, value, exemplar in samples:
            family.add_sample(sample, labels, value, exemplar=exemplar)
    return family


_IDENTITY: Final = frozenset({"job", "instance"})


def _count(name: str, labels: dict[str, str], point: Count) -> _Samples:
    return [(f"{name}_total", labels, point.value, _exemplar(point.exemplar))]


def _distribution(name: str, labels: dict[str, str], point: Distribution) -> _Samples:
    samples: _Samples = []
    total = 0
    for place, (bound, count) in enumerate(zip((*point.bounds, math.inf), point.counts, strict=True)):
        total += count
        edge = {**labels, "le": str(floatToGoString(bound))}  # type: ignore[no-untyped-call]
        samples.append((f"{name}_bucket", edge, total, _exemplar(point.exemplars.get(place))))
    samples.append((f"{name}_count", labels, total, None))
    if point.sum is not None:
        samples.append((f"{name}_sum", labels, point.sum, None))
    return samples


def _exemplar(exemplar: Exemplar | None) -> SampleExemplar | None:
    if exemplar is None:
        return None
    return SampleExemplar(dict(exemplar.labels), exemplar.value, exemplar.ts_s or None)


def _targets(resources: Iterable[dict[str, Any]]) -> Metric:
    family = Metric(_TARGET, "Who sends.", "info")
    seen: set[frozenset[tuple[str, str]]] = set()
    for resource in resources:
        labels = target_labels(resource)
        if labels is None or (key := frozenset(labels.items())) in seen:
            continue
        seen.add(key)
        family.add_sample(f"{_TARGET}_info", {k: v for k, v in labels.items() if v}, 1)
    return family
