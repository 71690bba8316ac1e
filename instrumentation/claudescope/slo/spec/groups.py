"""Labels that people write, in the spelling of Prometheus, and which of them a measure has."""

from __future__ import annotations

from typing import Final

from ... import semconv
from ...semconv.prometheus import SERVICE_LABEL, prometheus_label
from ...semconv.registry import Metric
from ..objective import Measure

__all__ = ["RESOURCE_LABELS", "SHORT", "has_label", "label_named", "labels_of", "metrics_of"]

SHORT: Final = {
    "service": SERVICE_LABEL,
    "model": prometheus_label(semconv.REQUEST_MODEL),
    "kind": prometheus_label(semconv.STEP_KIND),
    "tool": prometheus_label(semconv.TOOL_NAME),
    "index": prometheus_label(semconv.STEP_INDEX),
}
"""The names of filters and groups, and their labels."""
_BUSINESS: Final = prometheus_label(semconv.LABEL_PREFIX)
RESOURCE_LABELS: Final = frozenset({"job", "instance", SERVICE_LABEL, "service_version", "deployment_environment_name"})
"""Labels of every series of the shipped Prometheus."""

_METRICS: Final[dict[Measure, tuple[Metric, ...]]] = {
    "step_validity": (semconv.STEPS,),
    "step_confidence": (semconv.STEP_CONFIDENCE_METRIC, semconv.STEP_BELOW),
    "step_latency": (semconv.STEP_DURATION, semconv.STEP_OVER),
    "errors": (semconv.CALLS,),
    "time_to_first_chunk": (semconv.FIRST_CHUNK,),
    "tool_success": (semconv.STEPS,),
    "saturation": (semconv.RATELIMIT_USED,),
}


def metrics_of(measure: Measure) -> tuple[Metric, ...]:
    """What counts a measure: the first where it can, else the counter that an app's setting switches on."""
    return _METRICS[measure]


def label_named(name: str) -> str:
    """The label of a short name (``model``, ``label.tier``); any other name is a label already."""
    if name.startswith("label."):
        return _BUSINESS + prometheus_label(name.removeprefix("label."))
    return SHORT.get(name, name)


def labels_of(metric: Metric) -> frozenset[str]:
    """Labels that a metric's series have; those of business labels are the prefix alone."""
    attributes = {semconv.LABEL: _BUSINESS}
    return RESOURCE_LABELS | {attributes.get(name) or prometheus_label(name) for name in metric.attributes}


def has_label(metric: Metric, label: str) -> bool:
    """Whether a metric's series have a label."""
    known = labels_of(metric)
    return label in known or (label.startswith(_BUSINESS) and _BUSINESS in known)
