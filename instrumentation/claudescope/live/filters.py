"""Which steps a question is about: the one filter that the store, the roll-ups, the API and the page share."""

from __future__ import annotations

from dataclasses import dataclass, field

from .records import StepRecord

__all__ = ["StepFilter"]


@dataclass(frozen=True, slots=True)
class StepFilter:
    """Conditions on steps; an empty one says nothing about its field. Hashable.

    Several values of one field are alternatives; different fields, and different label keys, must all hold.
    ``confidence_min`` and ``latency_min_us`` are inclusive, ``confidence_max`` and ``latency_max_us`` exclusive, and a
    step without the figure is outside such a range.
    """

    service: frozenset[str] = frozenset()
    model: frozenset[str] = frozenset()
    kind: frozenset[str] = frozenset()
    tool: frozenset[str] = frozenset()
    check: frozenset[str] = frozenset()
    """The check of the first reason: of invalid steps only."""
    index: frozenset[int] = frozenset()
    """Step numbers; 16 stands for 16 and all above, as in the roll-ups."""
    valid: frozenset[bool | None] = frozenset()
    confidence_min: float | None = None
    confidence_max: float | None = None
    confidence_known: bool | None = None
    latency_min_us: int | None = None
    latency_max_us: int | None = None
    labels: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def __bool__(self) -> bool:
        return self != _EVERYTHING

    def matches(self, step: StepRecord) -> bool:
        """Whether a step's record satisfies it: the definition that SQL and the roll-ups are tested against."""
        confidence, latency = step["confidence"], step["latency_us"]
        for wanted, value in (
            (self.service, step["service"]),
            (self.model, step["model"]),
            (self.kind, step["kind"]),
            (self.tool, step["tool"]),
        ):
            if wanted and value not in wanted:
                return False
        if self.check and not (step["reasons"] and step["reasons"][0]["check"] in self.check):
            return False
        if self.index and min(step["step_index"], 16) not in self.index:
            return False
        if self.valid and step["is_valid"] not in self.valid:
            return False
        if self.confidence_known is not None and (confidence is not None) != self.confidence_known:
            return False
        if self.confidence_min is not None and (confidence is None or confidence < self.confidence_min):
            return False
        if self.confidence_max is not None and (confidence is None or confidence >= self.confidence_max):
            return False
        ranged = self.latency_min_us is not None or self.latency_max_us is not None
        if ranged and step["latency_source"] is None and not latency:
            return False  # a batch's result has no time at all
        if self.latency_min_us is not None and latency < self.latency_min_us:
            return False
        if self.latency_max_us is not None and latency >= self.latency_max_us:
            return False
        keys = {key for key, _ in self.labels}
        return all((key, step["labels"].get(key, "")) in self.labels for key in keys)


_EVERYTHING = StepFilter()
