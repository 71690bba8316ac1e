"""Conditions in SQL: a filter of steps, a span of time, and where a list goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from ... import semconv
from ..filters import StepFilter
from ..records import label_json

__all__ = ["Cursor", "Where", "add_run_hints", "add_step_filter", "label_of", "read_cursor"]

_CURSOR: Final = re.compile(r"(-?\d{1,18}|-?\d{1,18}\.\d{1,20}(?:e-?\d{1,3})?|-?\de-\d{1,3})\.(\d{1,18})", re.ASCII)


class Cursor(NamedTuple):
    """The last row of a page: what the list is sorted by, and the row's id."""

    key: float
    row: int

    def __str__(self) -> str:
        return f"{self.key!r}.{self.row}"


def read_cursor(text: str) -> Cursor:
    """The cursor that ``str`` wrote. Raises ValueError that says what is taken."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise ValueError("the `next` of the page before")
    key, row = match.groups()
    return Cursor(int(key) if key.lstrip("-").isdigit() else float(key), int(row))


def label_of(labels: str, key: str) -> str:
    """The value of a label in the JSON of a series, or the empty string. In SQL: ``label_of(labels, key)``."""
    return str(orjson.loads(labels).get(key, "")) if labels else ""


class Where:
    """Conditions that must all hold, with their values."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self.values: list[Any] = []

    def add(self, term: str, *values: Any) -> None:
        """Adds a condition that has a mark for each value."""
        self._terms.append(term)
        self.values += values

    def among(self, expression: str, choices: Iterable[Any]) -> None:
        """Adds that an expression is one of some values; nothing for no values."""
        values = sorted(choices)
        if values:
            self.add(f"{expression} IN ({', '.join('?' * len(values))})", *values)

    def between(self, column: str, from_ms: int | None, to_ms: int | None) -> None:
        """Adds from (inclusive) and to (exclusive)."""
        if from_ms is not None:
            self.add(f"{column} >= ?", from_ms)
        if to_ms is not None:
            self.add(f"{column} < ?", to_ms)

    def after(self, key: str, row: str, cursor: Cursor | None, descending: bool) -> None:
        """Adds that a row comes after the cursor's."""
        if cursor is not None:
            self.add(f"({key}, {row}) {'<' if descending else '>'} (?, ?)", *cursor)

    def __bool__(self) -> bool:
        return bool(self._terms)

    def __str__(self) -> str:
        """The conditions joined by AND; ``TRUE`` without any."""
        return " AND ".join(self._terms) or "TRUE"


def add_step_filter(where: Where, wanted: StepFilter) -> None:
    """Adds what ``wanted`` says of the steps ``s``; the same that ``StepFilter.matches`` says of records."""
    # A plus keeps a column from being searched in the index, which is read from end to end instead, or a run's part
    # of it: for each of a thousand series it would be searched once.
    series = _series(wanted)
    if series:
        where.add(f"+s.series IN (SELECT id FROM series WHERE {series})", *series.values)
    if wanted.index:
        cap = semconv.INDEX_CAP
        below = ", ".join(str(int(index)) for index in sorted(wanted.index) if index < cap)
        above = f" OR +s.step_index >= {cap}" if cap in wanted.index else ""
        where.add(f"(+s.step_index IN ({below}){above})")
    if wanted.valid:
        known = ", ".join(str(int(valid)) for valid in wanted.valid if valid is not None)
        unknown = " OR +s.is_valid IS NULL" if None in wanted.valid else ""
        where.add(f"(+s.is_valid IN ({known}){unknown})")
    if wanted.confidence_known is not None:
        where.add(f"+s.confidence IS {'NOT ' if wanted.confidence_known else ''}NULL")
    if wanted.confidence_min is not None:
        where.add("+s.confidence >= ?", wanted.confidence_min)
    if wanted.confidence_max is not None:
        where.add("+s.confidence < ?", wanted.confidence_max)
    if wanted.latency_min_us is not None:
        where.add("+s.latency_us >= ?", wanted.latency_min_us)
    if wanted.latency_max_us is not None:
        where.add("+s.latency_us < ?", wanted.latency_max_us)
    if wanted.latency_min_us is not None or wanted.latency_max_us is not None:
        where.add("(+s.latency_us <> 0 OR s.latency_source IS NOT NULL)")  # a batch's result has no time at all


def _series(wanted: StepFilter) -> Where:
    where = Where()
    where.among("service", wanted.service)
    where.among("model", wanted.model)
    where.among("kind", wanted.kind)
    where.among("tool", wanted.tool)
    where.among("failed_check", wanted.check)
    by_key: dict[str, list[str]] = {}
    for key, value in sorted(wanted.labels):
        by_key.setdefault(key, []).append(value)
    for key, values in by_key.items():
        if "" not in values:  # cheap, and leaves few for the exact question below
            spots = [label_json({key: value})[1:-1] for value in values]
            where.add("(" + " OR ".join(["instr(labels, ?)"] * len(spots)) + ")", *spots)
        where.add(f"label_of(labels, ?) IN ({', '.join('?' * len(values))})", key, *values)
    return where


def add_run_hints(where: Where, wanted: StepFilter) -> None:
    """Adds what must hold for a run ``r`` that has a step as wanted: its own row says whether it is worth a look."""
    if wanted.valid == {False}:
        where.add("r.invalid > 0")
    if wanted.index:
        where.add("r.max_index >= ?", min(wanted.index))
    if wanted.confidence_known or wanted.confidence_min is not None:
        where.add("r.min_confidence IS NOT NULL")
    if wanted.confidence_max is not None:
        where.add("r.min_confidence < ?", wanted.confidence_max)
    if wanted.latency_min_us is not None:
        where.add("r.max_latency_us >= ?", wanted.latency_min_us)
