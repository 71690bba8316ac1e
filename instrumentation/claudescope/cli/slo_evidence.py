"""What an objective burns by, from a Prometheus or from the embedded store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ..errors import UsageError
from ..setting_values import url as address
from ..slo.explain.explain import explain
from ..slo.explain.explanation import Explanation, Trace
from ..slo.explain.prometheus import Prometheus, PrometheusError, UnslicedError
from ..slo.objective import CALL_MEASURES, Indicator, Objective
from ..slo.spec.load import load

__all__ = ["Span", "now_ms", "objective_of", "of_prometheus", "of_store"]


class Span(NamedTuple):
    """The time that is explained."""

    end_ms: int
    seconds: int


def objective_of(path: Path, name: str | None) -> Objective:
    """The objective of a file: the only one, or that of this name or id. Raises UsageError."""
    objectives = load([path])
    found = [one for one in objectives if name in (None, one.name, one.id)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.id for one in objectives)
    if not found:
        raise UsageError(f"{path}: there is no objective {name!r}.", f"It has {known}.")
    raise UsageError(f"{path}: there are {len(found)} objectives.", f"Name one with --objective: {known}.")


def of_prometheus(objective: Objective, span: Span, url: str, windows: int | None) -> Explanation:
    """From what a Prometheus has of the objective's own series; ``windows`` is the baseline's length, 8 by default."""
    try:
        source = Prometheus(address(url))
    except ValueError as error:
        raise UsageError(f"--prometheus is {url!r}.", f"It takes {error}.") from None
    end = span.end_ms / 1000

    def traces(labels: Mapping[str, str]) -> Sequence[Trace]:
        return source.traces(objective, labels, end, span.seconds)

    try:
        cells = source.cells(objective, end, span.seconds, windows=windows or 8)
        return explain(cells, traces=traces, noun=_noun(objective))
    except PrometheusError as error:
        raise UsageError(f"{url}: {error}.", "Name a Prometheus that has the objective's series.") from None
    except UnslicedError as error:
        raise UsageError(str(error), "Its error and total queries must be sums over labels.") from None


def of_store(objective: Objective, span: Span, folder: Path) -> Explanation:
    """From the steps and calls that the embedded server keeps. Raises UsageError where it cannot count them."""
    from ..live.objectives.evidence import collect
    from ..live.store.inventory import open_store

    if not isinstance(objective.source, Indicator):
        raise UsageError(
            f"{objective.id}: its indicator is a query.", "Ask a Prometheus with --prometheus URL; the store has none."
        )
    try:
        with closing(open_store(folder)) as db:
            answer = collect(db, objective, span.end_ms - span.seconds * 1000, span.end_ms)
    except sqlite3.Error as error:
        raise UsageError(f"The store in {folder} cannot be read: {error}.", "Name another one with --data.") from None
    return answer.explanation


def _noun(objective: Objective) -> str:
    if not isinstance(objective.source, Indicator):
        return "events"
    return "calls" if objective.source.measure in CALL_MEASURES else "steps"


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return int(time.time() * 1000)
