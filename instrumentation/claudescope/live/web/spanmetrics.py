"""The step metrics of services that send spans and no metrics, from what the roll-ups count.

They count from the server's start on, as a counter of any process does. Their bounds are edges of the roll-ups' bands,
so the buckets are exact.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable
from typing import Any, Final, NamedTuple

from ... import semconv
from ..receiver.points import Count, Distribution, Series
from ..rollups.bands import (
    CONFIDENCE_BANDS,
    CONFIDENCE_BITS,
    CONFIDENCE_MASK,
    CONSUMER,
    INVALID,
    LATENCY_BITS,
    LATENCY_EDGES,
    LATENCY_MASK,
    TAIL_BITS,
    TAIL_MASK,
    UNKNOWN,
    VALID,
    confidence_upper,
)
from ..rollups.histogram import CONFIDENCE_UNIT, SERIES_BITS, unpack
from ..rollups.pending import Flush
from ..rollups.series import SeriesTable

__all__ = ["GRACE_S", "StepTotals"]

GRACE_S: Final = 90.0
"""So long after its first span a service without metrics is one that sends none: apps send theirs once a minute."""
MAX_SETS: Final = 10_000
"""Label sets of a metric; further ones are counted together: without check and business labels, the rest as `other`."""
OTHER: Final = "other"
_REMEMBERED: Final = 50_000
_VERDICTS: Final = {UNKNOWN: "unknown", VALID: "true", INVALID: "false"}
_SOURCES: Final = {1: "measured", 2: "apportioned", CONSUMER: "consumer"}
_DURATIONS: Final = semconv.STEP_DURATION.boundaries
_CONFIDENCES: Final = semconv.STEP_CONFIDENCE_METRIC.boundaries
_BOUNDS_US: Final = [round(bound * 1_000_000) for bound in _DURATIONS]
_LATENCY_PLACES: Final = [bisect_left(_BOUNDS_US, edge) for edge in LATENCY_EDGES]
_CONFIDENCE_PLACES: Final = [bisect_left(_CONFIDENCES, confidence_upper(band)) for band in range(CONFIDENCE_BANDS)]


class _Base(NamedTuple):
    """Labels of all three metrics."""

    service: str
    model: str
    kind: str
    number: int

    def attributes(self) -> dict[str, Any]:
        named = {semconv.REQUEST_MODEL: self.model, semconv.STEP_KIND: self.kind}
        return {**named, semconv.STEP_INDEX: semconv.index_label(self.number)}


class _Rest(NamedTuple):
    """Further labels of the counter."""

    tool: str
    check: str
    labels: tuple[tuple[str, str], ...]

    def attributes(self) -> dict[str, Any]:
        named = {semconv.TOOL_NAME: self.tool, semconv.CHECK: self.check}
        return {**named, **{semconv.LABEL_PREFIX + key: value for key, value in self.labels}}


_Rows = tuple[list[int], int, list[list[int]], list[int]]
"""Counts by verdict, which of them, durations by source, confidences."""


class StepTotals:
    """Steps since the start by the labels of the metrics. Used by the event loop only.

    ``keys`` are the business labels that metrics carry.
    """

    def __init__(self, keys: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = tuple(keys)
        self._clock = clock
        self._first: dict[str, float] = {}
        self._counts: dict[tuple[_Base, _Rest], list[int]] = {}
        self._durations: dict[_Base, list[list[int]]] = {}
        self._confidences: dict[_Base, list[int]] = {}
        self._rows: dict[int, _Rows] = {}

    def add(self, flush: Flush, table: SeriesTable) -> None:
        """Counts what the roll-ups have just written, whose series are in ``table``."""
        known = self._rows
        for cell in flush.cells.values():
            for key, series, count, confidence, latency in zip(*unpack(cell), strict=True):
                head = key >> TAIL_BITS
                rows = known.get(head >> CONFIDENCE_BITS << SERIES_BITS | series)
                if rows is None:
                    rows = self._find(head >> CONFIDENCE_BITS, series, table)
                counts, verdict, durations, confidences = rows
                counts[verdict] += count
                band = head & CONFIDENCE_MASK
                if band:
                    confidences[_CONFIDENCE_PLACES[band]] += count
                    confidences[-1] += confidence
                tail = key & TAIL_MASK
                if tail > LATENCY_MASK:
                    row = durations[tail >> LATENCY_BITS]
                    row[_LATENCY_PLACES[tail & LATENCY_MASK]] += count
                    row[-1] += latency

    def _find(self, start: int, series: int, table: SeriesTable) -> _Rows:
        """The rows that count a step number and verdict (the start of a key) of a series; remembered."""
        dims, own = table.dims[series], table.labels[series]
        self._first.setdefault(dims.service, self._clock())
        base = _Base(dims.service, dims.model, dims.kind, start >> 2)
        if base not in self._durations and len(self._durations) >= MAX_SETS:
            base = _Base(dims.service, OTHER, OTHER, semconv.INDEX_CAP)
        verdict = start & 3
        check = dims.failed_check if verdict == INVALID else ""
        rest = _Rest(dims.tool, check, tuple((key, own[key]) for key in self._keys if key in own))
        if (base, rest) not in self._counts and len(self._counts) >= MAX_SETS:
            rest = _Rest(OTHER if rest.tool else "", "", ())
        durations = self._durations.get(base)
        if durations is None:
            durations = self._durations[base] = [[0] * (len(_DURATIONS) + 2) for _ in range(CONSUMER + 1)]
        confidences = self._confidences.get(base)
        if confidences is None:
            confidences = self._confidences[base] = [0] * (len(_CONFIDENCES) + 2)
        if len(self._rows) >= _REMEMBERED:
            self._rows.clear()
        counts = self._counts.setdefault((base, rest), [0, 0, 0])
        rows = self._rows[start << SERIES_BITS | series] = (counts, verdict, durations, confidences)
        return rows

    def families(self, senders: Container[str]) -> dict[str, list[Series]]:
        """The series of each metric, of services that are not among ``senders`` of metrics."""
        now = self._clock()
        resources = {
            service: {semconv.SERVICE_NAME: service}
            for service, first in self._first.items()
            if service not in senders and now - first >= GRACE_S
        }
        return {
            semconv.STEP_DURATION.name: [
                Series(
                    resources[base.service],
                    {**base.attributes(), semconv.STEP_LATENCY_SOURCE: _SOURCES[source]},
                    Distribution(_DURATIONS, tuple(row[:-1]), row[-1] / 1e6, {}),
                )
                for base, rows in self._durations.items()
                if base.service in resources
                for source, row in enumerate(rows)
                if any(row)
            ],
            semconv.STEP_CONFIDENCE_METRIC.name: [
                Series(
                    resources[base.service],
                    base.attributes(),
                    Distribution(_CONFIDENCES, tuple(row[:-1]), row[-1] * CONFIDENCE_UNIT, {}),
                )
                for base, row in self._confidences.items()
                if base.service in resources and any(row)
            ],
            semconv.STEPS.name: [
                Series(
                    resources[base.service],
                    {**base.attributes(), **rest.attributes(), semconv.STEP_VALID: label},
                    Count(float(row[verdict]), None),
                )
                for (base, rest), row in self._counts.items()
                if base.service in resources
                for verdict, label in _VERDICTS.items()
                if not rest.check or verdict == INVALID
            ],
        }
