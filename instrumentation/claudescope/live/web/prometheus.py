"""OTLP's names, attributes and resources as Prometheus' OTLP receiver writes them.

The rules are those of ``translation_strategy: UnderscoreEscapingWithSuffixes`` with its other settings as they are by
default, and with ``keep_identifying_resource_attributes`` and the promoted attributes of ``PROMOTED``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ... import semconv

__all__ = ["PROMOTED", "family_name", "label_name", "label_value", "labels_of", "resource_labels", "target_labels"]

PROMOTED: Final = (semconv.SERVICE_NAME, "service.version", "deployment.environment.name")
"""Resource attributes that are labels of every series."""
_NAMESPACE: Final = "service.namespace"
_IDENTIFYING: Final = frozenset({_NAMESPACE, semconv.SERVICE_NAME, semconv.SERVICE_INSTANCE_ID})
_UNITS: Final = {"s": "seconds"}
_WORDS: Final = re.compile(r"[^a-zA-Z0-9:]+")
_INVALID: Final = re.compile(r"[^a-zA-Z0-9_]")


def family_name(metric: semconv.Metric) -> tuple[str, str]:
    """A metric's name without the ``_total`` of a counter, and its unit as a suffix: empty for ``1`` and ``{x}``."""
    words = [word for word in _WORDS.split(metric.name) if word]
    unit = _UNITS.get(metric.unit, "")
    if unit and unit not in words:
        words.append(unit)
    return "_".join(words), unit if words[-1] == unit else ""


@functools.lru_cache(1024)
def label_name(name: str) -> str:
    """An attribute's name as a label's."""
    clean = _INVALID.sub("_", name)
    if clean[:1].isdigit():
        return f"key_{clean}"
    return f"key{clean}" if clean.startswith("_") and not clean.startswith("__") else clean


def label_value(value: Any) -> str:
    """An attribute's value as a label's."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return "" if value is None else orjson.dumps(value).decode()


def labels_of(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Attributes as labels; the values of names that become one are joined by a semicolon, in the names' order."""
    labels: dict[str, str] = {}
    for key in sorted(attributes):
        name = label_name(key)
        if name.strip("_") and name != "__name__":
            value = label_value(attributes[key])
            labels[name] = f"{labels[name]};{value}" if labels.get(name) else value
    return labels


def resource_labels(resource: Mapping[str, Any]) -> dict[str, str]:
    """What a sender's resource adds to each of its series: the promoted attributes, job and instance."""
    labels = {label_name(key): label_value(resource[key]) for key in PROMOTED if resource.get(key) is not None}
    service, namespace = (label_value(resource.get(key)) for key in (semconv.SERVICE_NAME, _NAMESPACE))
    if service:
        labels["job"] = f"{namespace}/{service}" if namespace else service
    if instance := label_value(resource.get(semconv.SERVICE_INSTANCE_ID)):
        labels["instance"] = instance
    return labels


def target_labels(resource: Mapping[str, Any]) -> dict[str, str] | None:
    """The labels of ``target_info``, or None where a resource says no more than who it is."""
    identity = {name: value for name, value in resource_labels(resource).items() if name in ("job", "instance")}
    if not identity or not resource.keys() - _IDENTIFYING:
        return None
    return {**labels_of(resource), **identity}
