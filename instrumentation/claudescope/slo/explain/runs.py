"""Runs as an explanation of nodes and clusters sees them: spans with a node, a time and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Run", "Span"]


@dataclass(frozen=True, slots=True)
class Span:
    """A chain, a call, a step or a tool's run."""

    id: str
    node: str
    """What it is an instance of, as a person says it: ``chain``, ``call claude-sonnet-4-5``, ``tool search``."""
    parent: str = ""
    """Id of the span that it is part of; empty for the first one, or where that span is not known."""
    links: tuple[str, ...] = ()
    """Ids of spans that it follows: the previous call of its chain."""
    seconds: float = 0.0
    bad: bool | None = None
    """Its own verdict: found invalid, or failed. None where nobody knows."""
    reason: str = ""
    """Code of what is wrong (``arithmetic.mismatch``), or the error's type."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: all its spans."""

    spans: tuple[Span, ...]
    trace: str = ""
    """Address or id of its trace."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Business labels and what else is the same for the whole run."""

    @property
    def failed(self) -> bool:
        """Whether any of its spans is bad."""
        return any(span.bad for span in self.spans)
