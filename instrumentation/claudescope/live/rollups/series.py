"""The counted series in memory: which of them a filter is about, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from ..filters import StepFilter
from ..records import Dims

__all__ = ["FIELDS", "OVERFLOW_LABEL", "Match", "SeriesTable"]

FIELDS: Final = {"service": "service", "model": "model", "kind": "kind", "tool": "tool", "check": "failed_check"}
"""The filter's fields that are dimensions, and how those are called."""
OVERFLOW_LABEL: Final = "claudescope.overflow"
"""The label of a series that stands for others."""


class Match(NamedTuple):
    """The series that a filter keeps; None for all. ``partial``: some steps that cannot be told apart are left out."""

    series: frozenset[int] | None
    partial: bool


class SeriesTable:
    """Dimensions by counted series. Only grows, so another thread may read it; written by the event loop only."""

    def __init__(self, known: Iterable[tuple[int, Dims]] = ()) -> None:
        self.dims: dict[int, Dims] = {}
        self.labels: dict[int, dict[str, str]] = {}
        self._matches: dict[StepFilter, tuple[int, Match]] = {}
        self.add(known)

    def add(self, made: Iterable[tuple[int, Dims]]) -> None:
        """Takes new series."""
        for number, dims in made:
            self.labels[number] = orjson.loads(dims.labels) if dims.labels else {}
            self.dims[number] = dims

    def match(self, filter: StepFilter) -> Match:
        """The series that the dimensions of a filter keep."""
        conditions = {field: getattr(filter, field) for field in FIELDS if getattr(filter, field)}
        if not conditions and not filter.labels:
            return Match(None, False)
        known = self._matches.get(filter)
        if known is not None and known[0] == len(self.dims):
            return known[1]
        if len(self._matches) > 64:
            self._matches.clear()
        size = len(self.dims)
        match = self._find(conditions, filter.labels)
        self._matches[filter] = size, match
        return match

    def _find(self, conditions: dict[str, frozenset[str]], labels: frozenset[tuple[str, str]]) -> Match:
        keys = {key for key, _ in labels}
        found: list[int] = []
        partial = False
        for number, dims in list(self.dims.items()):
            own = self.labels[number]
            stands_for_others = OVERFLOW_LABEL in own
            hidden = bool(keys) and stands_for_others
            for field, wanted in conditions.items():
                value = getattr(dims, FIELDS[field])
                if value not in wanted:
                    if value or not stands_for_others:
                        break
                    hidden = True  # it may stand for a wanted one
            else:
                if hidden:
                    partial = True
                elif all((key, own.get(key, "")) in labels for key in keys):
                    found.append(number)
        return Match(frozenset(found), partial)

    def values(self, counts: dict[int, int], field: str) -> dict[str, int]:
        """Steps by the value of a field of ``FIELDS``, without those that have none."""
        found: dict[str, int] = {}
        for number, count in counts.items():
            value: Any = getattr(self.dims[number], FIELDS[field])
            if value:
                found[value] = found.get(value, 0) + count
        return found

    def label_values(self, counts: dict[int, int]) -> dict[str, dict[str, int]]:
        """Steps by label and value."""
        found: dict[str, dict[str, int]] = {}
        for number, count in counts.items():
            for key, value in self.labels[number].items():
                if key != OVERFLOW_LABEL:
                    by_value = found.setdefault(key, {})
                    by_value[value] = by_value.get(value, 0) + count
        return found
