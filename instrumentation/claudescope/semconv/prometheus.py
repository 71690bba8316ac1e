"""What Prometheus calls the instruments and attributes: the translation UnderscoreEscapingWithSuffixes, which the
shipped Prometheus is set to.
"""

from __future__ import annotations

import re
from typing import Final

from .registry import Metric

__all__ = ["SERVICE_LABEL", "prometheus_label", "prometheus_series"]

_UNITS: Final = {"s": "_seconds"}

SERVICE_LABEL: Final = "service_name"
"""The label with the service's name, which the shipped Prometheus promotes from the resource."""


def prometheus_label(attribute: str) -> str:
    """The label of an attribute: every character but letters, digits and ``_`` becomes ``_``."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", attribute)


def prometheus_series(metric: Metric) -> str:
    """The name of an instrument's series, without a histogram's ``_bucket``, ``_sum`` or ``_count``.

    A unit in braces is a note and adds nothing; unit 1 adds something to gauges only, of which there are none.
    """
    total = "_total" if metric.kind == "counter" else ""
    return prometheus_label(metric.name) + _UNITS.get(metric.unit, "") + total
