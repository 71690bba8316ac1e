"""What Prometheus has of the instruments and attributes of ``semconv``: their series, and the labels of each."""

from __future__ import annotations

from typing import Final

from .. import semconv
from ..semconv import Metric
from ..semconv.prometheus import SERVICE_LABEL, prometheus_label, prometheus_series

__all__ = ["LABEL_PREFIX", "RESOURCE_LABELS", "SERVICE", "label", "names_of", "our_labels", "series"]

_SUFFIXES: Final = ("_bucket", "_sum", "_count")

SERVICE: Final = SERVICE_LABEL
RESOURCE_LABELS: Final = frozenset(
    {"job", "instance", SERVICE, "service_version", "deployment_environment_name", "__name__"}
)
"""Labels of every series that comes by OTLP: the identity, and what the shipped Prometheus promotes."""


label = prometheus_label
LABEL_PREFIX: Final = label(semconv.LABEL_PREFIX)
"""What the label of every business label begins with."""


series = prometheus_series


def names_of(metric: Metric) -> tuple[str, ...]:
    """Every series that an instrument has."""
    name = series(metric)
    return tuple(name + suffix for suffix in _SUFFIXES) if metric.kind == "histogram" else (name,)


def our_labels() -> dict[str, frozenset[str]]:
    """Every series of our instruments with its labels; a business label stands as ``claudescope_label_``."""
    known = {}
    for metric in semconv.METRICS.values():
        labels = {LABEL_PREFIX if name == semconv.LABEL else label(name) for name in metric.attributes}
        for name in names_of(metric):
            bounds = {"le"} if name.endswith("_bucket") else set()
            known[name] = frozenset(labels | bounds | RESOURCE_LABELS)
    return known
