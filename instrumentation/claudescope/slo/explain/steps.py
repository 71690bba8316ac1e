"""Cells and runs from records of steps, a JSON object a line, as ``claudescope export --format jsonl`` writes them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from ... import semconv
from ...errors import UsageError
from .cells import Cells, Sample
from .runs import Run, Span

__all__ = ["RUN", "History", "Record", "read_steps"]

RUN: Final = "run"
"""The node of a whole run, above its calls."""
_WINDOWS: Final = 24
"""Windows of the baseline, at most."""
_TELL: Final = 20_000


class Record(NamedTuple):
    """One step."""

    run: str
    call: str
    trace: str
    step: int
    ended_ms: int
    seconds: float
    bad: bool | None
    reason: str
    labels: Mapping[str, str]
    """Step number, kind, tool, model, service and the business labels, by the names of attributes."""

    @property
    def node(self) -> str:
        """What it is an instance of."""
        tool = self.labels.get(semconv.TOOL_NAME)
        return f"tool {tool}" if tool else str(self.labels.get(semconv.STEP_KIND, "step"))


@dataclass(frozen=True, slots=True)
class History:
    """Steps of a time that is explained, and of windows as long before it."""

    now: Sequence[Record]
    before: Sequence[Sequence[Record]]
    """One list a window, the latest first."""

    @classmethod
    def of(cls, records: Iterable[Record], end_ms: int, window_ms: int, most: int | None = None) -> History:
        """By when the steps ended: the ``window_ms`` before ``end_ms``, and up to ``most`` times that before (24)."""
        most = min(most or _WINDOWS, _WINDOWS)
        windows: dict[int, list[Record]] = defaultdict(list)
        for record in records:
            age = (end_ms - 1 - record.ended_ms) // window_ms
            if 0 <= age <= most:
                windows[age].append(record)
        last = max(windows, default=0)
        return cls(windows.get(0, []), [windows.get(age, []) for age in range(1, last + 1)])

    def cells(self) -> Cells:
        """Steps with a verdict, by every label that tells them apart."""
        everything = [self.now, *self.before]
        names: dict[str, None] = {}
        for records in everything:
            for record in records:
                names.update(dict.fromkeys(record.labels))
        return Cells.collect(list(names), _samples(self.now), [_samples(records) for records in self.before])

    def runs(self) -> tuple[list[Run], list[Run]]:
        """Now's, and those before."""
        return _runs(self.now), [run for records in self.before for run in _runs(records)]


def read_steps(path: Path, over: float | None = None, tell: Callable[[str], None] = lambda text: None) -> list[Record]:
    """Reads a file of records. A step is bad if it was found invalid, or else, with ``over``, if it took so many
    seconds; those whose time was the app's own do not count then. Raises UsageError with the line.
    """
    found = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_record(line, f"{path}:{number}", over))
                if number % _TELL == 0:
                    tell(f"{path}: {number:,} steps read")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.", "Name a file that can be read.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}.", "Export it again.") from None
    if not found:
        raise UsageError(f"{path}: there is no step in it.", "Write it with `claudescope export --format jsonl`.")
    return found


def _record(line: str, place: str, over: float | None) -> Record:
    try:
        step = json.loads(line)
        seconds = step["latency_us"] / 1e6
        bad = step["is_valid"] is False if step["is_valid"] is not None else None
        if over is not None:
            bad = seconds > over if step.get("latency_source") != "consumer" else None
        reasons = step.get("reasons") or [{}]
        return Record(
            str(step["run_id"]),
            str(step.get("call_span_id") or ""),
            str(step.get("trace_id") or ""),
            int(step["step_index"]),
            int(step["ts_ms"]),
            seconds,
            bad,
            ("slow" if over is not None else str(reasons[0].get("code") or "unknown")) if bad else "",
            _labels(step),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(
            f"{place}: not the record of a step.", "Write the file with `claudescope export --format jsonl`."
        ) from None


def _labels(step: Mapping[str, Any]) -> dict[str, str]:
    found = {
        semconv.STEP_INDEX: semconv.index_label(int(step["step_index"])),
        semconv.STEP_KIND: step.get("kind"),
        semconv.TOOL_NAME: step.get("tool"),
        semconv.REQUEST_MODEL: step.get("model"),
        semconv.SERVICE_NAME: step.get("service"),
        **{f"{semconv.LABEL_PREFIX}{key}": value for key, value in (step.get("labels") or {}).items()},
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _samples(records: Iterable[Record]) -> Iterator[Sample]:
    for record in records:
        if record.bad is not None:
            yield Sample(record.labels, float(record.bad), 1.0)


def _runs(records: Iterable[Record]) -> list[Run]:
    by_run: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_run[record.run].append(record)
    return [_run(sorted(steps, key=lambda one: (one.step, one.ended_ms))) for steps in by_run.values()]


def _run(steps: Sequence[Record]) -> Run:
    """The run, its calls in their order, each linked to the one before it, and their steps."""
    calls: dict[str, list[Record]] = defaultdict(list)
    for step in steps:
        calls[step.call].append(step)
    spans = [
        Span(f"{call}/{at}", step.node, f"call {call}", (), step.seconds, step.bad, step.reason)
        for call, members in calls.items()
        for at, step in enumerate(members)
    ]
    before = ""
    for call, members in calls.items():
        model = members[0].labels.get(semconv.REQUEST_MODEL, "")
        links = (f"call {before}",) if before else ()
        spans.append(Span(f"call {call}", f"call {model}".strip(), RUN, links, sum(one.seconds for one in members)))
        before = call
    spans.append(Span(RUN, RUN, seconds=sum(step.seconds for step in steps)))
    labels = {
        name: value
        for name, value in steps[0].labels.items()
        if name not in (semconv.STEP_INDEX, semconv.STEP_KIND, semconv.TOOL_NAME)
        and all(step.labels.get(name) == value for step in steps)
    }
    return Run(tuple(spans), steps[0].trace, labels)
