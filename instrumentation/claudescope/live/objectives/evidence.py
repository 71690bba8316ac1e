"""Why an objective burns, from the stored steps and calls: which slices of them the bad ones are in, with examples."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from ... import semconv
from ...semconv.prometheus import prometheus_label
from ...slo.explain.cells import Cells, Sample
from ...slo.explain.explanation import Explanation, Trace
from ...slo.objective import Objective
from ..records import Dims
from .ask import Ask
from .judge import DIMENSIONS, INDEX, LABEL_PREFIX, Judge

__all__ = ["Answer", "Evidence", "collect"]

_MOST_WINDOWS: Final = 24
_FURTHEST_MS: Final = 7 * 86_400_000
"""How far the baseline goes back, where that is one window or more."""
_MAX_VALUES: Final = 200
"""A business label with more values is an id, and tells no slices apart."""
_MAX_LABELS: Final = 6
_EXAMPLES: Final = 3
_LOOKED_AT: Final = 60
"""Bad events that are read to find examples of different traces."""
_CAP: Final = semconv.INDEX_CAP

Labels = dict[str, str]


class Answer(NamedTuple):
    """An explanation and what it is about. The baseline ends where the time begins; an empty one is no history."""

    explanation: Explanation
    from_ms: int
    to_ms: int
    baseline_from_ms: int


class _Events(NamedTuple):
    """The events of a measure in SQL, of a table that is called ``e``."""

    table: str
    time: str
    bad: str
    total: str
    values: tuple[float, ...]
    """For the mark in ``bad``, if it has one."""


def _events(judge: Judge) -> _Events:
    """What ``judge`` says of single events, for many at once. A bound that depends on load is the lowest load's."""
    measure, bound = judge.indicator.measure, judge.bound
    steps, calls = ("steps", "ts_ms"), ("calls", "ended_ms")
    known = "e.is_valid IS NOT NULL"
    if measure == "step_validity" and judge.indicator.unknown != "exclude":
        return _Events(
            *steps, "e.is_valid IS 0" if judge.indicator.unknown == "good" else "e.is_valid IS NOT 1", "1", ()
        )
    if measure in ("step_validity", "tool_success"):
        return _Events(*steps, "e.is_valid IS 0", known, ())
    if measure == "step_confidence":
        return _Events(*steps, "e.confidence < ?", "e.confidence IS NOT NULL", (bound,))
    if measure == "step_latency":
        timed = "(e.latency_source IS NOT 'consumer' AND (e.latency_source IS NOT NULL OR e.latency_us <> 0))"
        return _Events(*steps, "e.latency_us > ?", timed, (bound * 1_000_000,))
    if measure == "errors":
        return _Events(*calls, "(e.error_type IS NOT NULL AND e.error_type <> 'cancelled')", "1", ())
    if measure == "time_to_first_chunk":
        return _Events(*calls, "e.first_chunk_ms > ?", "e.first_chunk_ms IS NOT NULL", (bound * 1000,))
    return _Events(*calls, "e.limit_used > ?", "e.limit_used IS NOT NULL", (bound,))


class _Row(NamedTuple):
    """Events of one window, one set of dimensions and one step number."""

    window: int
    """0: the time that is explained, then backwards."""
    key: Any
    """A series, or service, model and labels of calls."""
    number: int
    bad: int
    total: int


class _Source:
    """The events of an objective in one store."""

    def __init__(self, db: sqlite3.Connection, objective: Objective, group: Mapping[str, str]) -> None:
        self._db = db
        self._judge = Judge(objective)
        self._events = _events(self._judge)
        self._group = group
        self._labels: dict[tuple[Any, int], Labels | None] = {}
        self._dims: dict[Any, Dims] = {}

    def oldest(self) -> int | None:
        """When the first event ended."""
        events = self._events
        found: int | None = self._db.execute(f"SELECT min({events.time}) FROM {events.table}").fetchone()[0]
        return found

    def rows(self, to_ms: int, length: int, windows: int) -> list[_Row]:
        """Counts of some windows of ``length`` ms, the last of which ends at ``to_ms``."""
        events = self._events
        key, index, names = ("e.series", f"min(e.step_index, {_CAP})", 1)
        if events.table == "calls":
            key, index, names = "e.service, coalesce(e.model, ''), coalesce(e.labels, '')", "0", 3
        sql = (
            f"SELECT (? - e.{events.time}) / ?, {key}, {index}, sum({events.bad}), count(*) FROM {events.table} AS e"
            f" WHERE e.{events.time} >= ? AND e.{events.time} < ? AND {events.total}"
            f" GROUP BY {', '.join(map(str, range(1, names + 3)))}"
        )
        values = (to_ms - 1, length, *events.values, to_ms - windows * length, to_ms)
        found = []
        for row in map(tuple, self._db.execute(sql, values)):
            name = row[1] if names == 1 else row[1 : 1 + names]
            found.append(_Row(int(row[0]), name, row[names + 1], row[names + 2] or 0, row[names + 3]))
        return found

    def labels(self, key: Any, index: int) -> Labels | None:
        """All labels of events; None where the objective, or the group that is asked for, does not have them."""
        known = (key, index)
        if known not in self._labels:
            self._labels[known] = self._find(key, index)
        return self._labels[known]

    def _find(self, key: Any, index: int) -> Labels | None:
        dims = self._dims.get(key)
        if dims is None:
            if self._events.table == "steps":
                row = self._db.execute(
                    "SELECT service, model, kind, tool, failed_check, labels FROM series WHERE id = ?", (key,)
                ).fetchone()
                dims = Dims(*tuple(row)) if row is not None else Dims("", "", "", "", "", "")
            else:
                dims = Dims(key[0], key[1], "", "", "", key[2])
            self._dims[key] = dims
        own = orjson.loads(dims.labels) if dims.labels else {}
        label = semconv.index_label(index) if self._events.table == "steps" else ""
        if self._judge.group(dims, label, own) is None:
            return None
        found = {name: str(getattr(dims, field)) for name, field in DIMENSIONS.items() if field != "failed_check"}
        found[INDEX] = label
        found |= {LABEL_PREFIX + prometheus_label(name): value for name, value in own.items()}
        if any(found.get(name, "") != value for name, value in self._group.items()):
            return None
        return found

    def examples(self, wanted: Mapping[str, str], from_ms: int, to_ms: int, url: str) -> list[Trace]:
        """Up to three traces with bad events of these labels, the latest first."""
        keys = [
            (key, index)
            for (key, index), labels in self._labels.items()
            if labels is not None and all(labels.get(name, "") == value for name, value in wanted.items())
        ]
        if not keys:
            return []
        events = self._events
        if events.table == "steps":
            pairs = " OR ".join(
                f"(e.series = {int(key)} AND min(e.step_index, {_CAP}) = {index})" for key, index in keys[:500]
            )
            values: list[Any] = []
        else:
            pairs = " OR ".join(
                ["(e.service = ? AND coalesce(e.model, '') = ? AND coalesce(e.labels, '') = ?)"] * len(keys[:200])
            )
            values = [part for key, _ in keys[:200] for part in key]
        rows = self._db.execute(
            f"SELECT e.trace_id, e.span_id, runs.run_id FROM {events.table} AS e JOIN runs ON runs.id = e.run"
            f" WHERE e.{events.time} >= ? AND e.{events.time} < ? AND {events.total} AND {events.bad} AND ({pairs})"
            f" ORDER BY e.{events.time} DESC LIMIT {_LOOKED_AT}",
            (from_ms, to_ms, *events.values, *values),
        )
        found: dict[str, Trace] = {}
        for trace_id, span_id, run_id in map(tuple, rows):
            trace = trace_id.hex()
            if trace not in found and len(found) < _EXAMPLES:
                query = {"run": run_id, "step": span_id.hex()} if events.table == "steps" else {"run": run_id}
                found[trace] = Trace(trace, f"{url}/?{urlencode(query)}")
        return list(found.values())


def _dimensions(samples: Sequence[tuple[int, Labels, int, int]]) -> list[str]:
    """The labels that tell events apart: those with several values, and business labels with few enough."""
    values: dict[str, set[str]] = {}
    names = sorted({name for _, labels, _, _ in samples for name in labels})
    for _, labels, _, _ in samples:
        for name in names:
            values.setdefault(name, set()).add(labels.get(name, ""))
    own = [name for name in names if not name.startswith(LABEL_PREFIX) and len(values[name]) > 1]
    business = [name for name in names if name.startswith(LABEL_PREFIX) and 1 < len(values[name]) <= _MAX_VALUES]
    return [*own, *sorted(business, key=lambda name: (len(values[name]), name))[:_MAX_LABELS]]


def collect(
    db: sqlite3.Connection,
    objective: Objective,
    from_ms: int,
    to_ms: int,
    group: Mapping[str, str] | None = None,
    url: str = "",
) -> Answer:
    """Explains a time by windows of the same length before it, as many as the store still has.

    ``group`` limits it to events with these labels; ``url`` is where the page is.
    """
    from ...slo.explain.explain import explain  # only where somebody asks

    source = _Source(db, objective, group or {})
    length = max(1, to_ms - from_ms)
    oldest = source.oldest()
    back = min(_FURTHEST_MS, from_ms - oldest) if oldest is not None else 0
    windows = max(1, min(_MOST_WINDOWS, back // length))
    samples = []
    for row in source.rows(to_ms, length, windows + 1):
        labels = source.labels(row.key, row.number)
        if labels is not None:
            samples.append((row.window, labels, row.bad, row.total))
    by_window = [
        [Sample(labels, bad, total) for at, labels, bad, total in samples if at == window]
        for window in range(windows + 1)
    ]
    if not any(total for window in by_window[1:] for _, _, total in window):
        windows = 0
    cells = Cells.collect(_dimensions(samples), by_window[0], by_window[1:])

    def traces(labels: Mapping[str, str]) -> list[Trace]:
        return source.examples(labels, from_ms, to_ms, url)

    noun = "steps" if Judge(objective).on_steps else "calls"
    explained = explain(cells, traces=traces, noun=noun, history=False)
    return Answer(explained, from_ms, to_ms, from_ms - windows * length)


class Evidence:
    """Explanations on demand. ``window`` says how long a time is explained unless somebody asks for another, in s."""

    def __init__(self, ask: Ask, url: str, window: Callable[[Objective], int], clock: Callable[[], float]) -> None:
        self._ask = ask
        self._url = url
        self._window = window
        self._clock = clock

    async def explain(
        self, objective: Objective, from_ms: int | None, to_ms: int | None, group: Mapping[str, str]
    ) -> dict[str, Any]:
        """The explanation as the API gives it."""
        end = int(self._clock() * 1000) if to_ms is None else to_ms
        start = end - self._window(objective) * 1000 if from_ms is None else from_ms

        def question(db: sqlite3.Connection) -> Answer:
            return collect(db, objective, min(start, end - 1), end, group, self._url)

        answer = await self._ask(question)
        explanation = answer.explanation
        return {
            "slo": objective.id,
            "from_ms": answer.from_ms,
            "to_ms": answer.to_ms,
            "baseline_from_ms": answer.baseline_from_ms,
            "group": dict(group),
            "explanation": explanation.json(),
            "text": explanation.text(),
            "svg": explanation.svg(),
        }
