"""Rules as data: what a file of rules holds, before it is text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..objective import Origin

__all__ = ["Alert", "Recording", "Rule", "RuleFile", "RuleGroup"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A series that Prometheus records under ``name``."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert for every series that ``expr`` gives."""

    name: str
    expr: str
    for_seconds: int = 0
    keep_firing_seconds: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Rule = Recording | Alert


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated one after the other, so that each sees what those before it have just recorded."""

    name: str
    interval_seconds: int
    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()
    """What a person who loads the group has to know; comments in the file."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """All rules of one output, and the specifications they are made from."""

    groups: tuple[RuleGroup, ...]
    origins: tuple[Origin, ...] = ()
    """One a source file, sorted by path."""
