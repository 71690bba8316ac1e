"""What Prometheus calls the instruments and attributes of ``semconv``.

It is the translation UnderscoreEscapingWithSuffixes, which the shipped Prometheus is set to.
"""

from __future__ import annotations

import re
from typing import Final

from .. import semconv
from ..semconv import Metric

__all__ = ["LABEL_PREFIX", "RESOURCE_LABELS", "SERVICE", "label", "names_of", "our_labels", "series"]

_UNITS: Final = {"s": "_seconds"}
_SUFFIXES: Final = ("_bucket", "_sum", "_count")

SERVICE: Final = "service_name"
"""The label with the service's name, which the shipped Prometheus promotes from the resource."""
RESOURCE_LABELS: Final = frozenset(
    {"job", "instance", SERVICE, "service_version", "deployment_environment_name", "__name__"}
)
"""Labels of every series that comes by OTLP: the identity, and what the shipped Prometheus promotes."""


def label(attribute: str) -> str:
    """The label of an attribute: every character but letters, digits and ``_`` becomes ``_``."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


LABEL_PREFIX: Final = label(semconv.LABEL_PREFIX)
"""What the label of every business label begins with."""


def series(metric: Metric) -> str:
    """The name of an instrument's series, without a histogram's ``_bucket``, ``_sum`` or ``_count``.

    A unit in braces is a note and adds nothing; unit 1 adds something to gauges only, of which there are none.
    """
    return label(metric.name) + _UNITS.get(metric.unit, "") + ("_total" if metric.kind == "counter" else "")


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
