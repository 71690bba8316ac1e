"""The tables of names, filled by the modules beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ATTRIBUTES", "EVENTS", "METRICS", "Attribute", "Event", "Metric", "attribute", "metric"]


@dataclass(frozen=True)
class Attribute:
    """One attribute: its name, OTLP value type, the spans or records that carry it, its source and meaning."""

    name: str
    type: str
    where: str
    source: str
    brief: str


@dataclass(frozen=True)
class Metric:
    """One instrument: its name, kind, unit, attribute names, source and, for a histogram, its bucket boundaries."""

    name: str
    kind: str
    unit: str
    attributes: tuple[str, ...]
    source: str
    brief: str
    boundaries: tuple[float, ...] = ()


@dataclass(frozen=True)
class Event:
    """One log event: its name, attribute names, source and meaning."""

    name: str
    attributes: tuple[str, ...]
    source: str
    brief: str


ATTRIBUTES: Final[dict[str, Attribute]] = {}
METRICS: Final[dict[str, Metric]] = {}
EVENTS: Final[dict[str, Event]] = {}


def attribute(name: str, type: str, where: str, source: str, brief: str) -> str:
    """Registers an attribute and gives its name."""
    ATTRIBUTES[name] = Attribute(name, type, where, source, brief)
    return name


def metric(
    name: str,
    kind: str,
    unit: str,
    attributes: tuple[str, ...],
    source: str,
    brief: str,
    boundaries: tuple[float, ...] = (),
) -> Metric:
    """Registers an instrument."""
    METRICS[name] = found = Metric(name, kind, unit, attributes, source, brief, boundaries)
    return found
