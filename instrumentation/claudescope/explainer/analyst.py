"""From an alert to what a ticket says: the objective, the window that burns, its slices, examples, the services."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from ..semconv.prometheus import SERVICE_LABEL
from ..slo.explain.cells import Cells
from ..slo.explain.explain import explain
from ..slo.explain.explanation import Explanation, Trace, Traces
from ..slo.explain.prometheus import Prometheus, PrometheusError, UnslicedError
from ..slo.objective import CALL_MEASURES, Indicator, Objective
from ..slo.window import parse_window
from .alert import Alert
from .jaeger import Jaeger
from .outbound import AwayError, RefusedError
from .queue import Kept
from .ticket import Links
from .topology import topology

__all__ = ["Analyst", "Report"]

T = TypeVar("T")

Report = dict[str, Any]
"""``objective``, ``window``, ``explanation`` (as JSON), ``text``, ``svg``, ``traces``, ``topology``, ``problem``."""
_DEFAULT_WINDOW: Final = 3600
_MOST_WINDOW: Final = 7 * 86_400
_REMEMBERED: Final = 64
_MINUTE: Final = 60
_TRACES: Final = 3
_NOUNS: Final = {**dict.fromkeys(CALL_MEASURES, "calls"), "tool_success": "tool runs"}


class Analyst:
    """Explains alerts, one at a time. Alerts of one objective and time, as in a storm, share what Prometheus said."""

    def __init__(
        self,
        objectives: Mapping[str, Objective],
        prometheus: Prometheus,
        jaeger: Jaeger | None,
        links: Links,
        windows: int,
    ) -> None:
        self._objectives = objectives
        self._prometheus = prometheus
        self._jaeger = jaeger
        self._links = links
        self._windows = windows
        self._known: OrderedDict[tuple[object, ...], Any] = OrderedDict()

    def report(self, kept: Kept, *, patient: bool) -> Report:
        """What there is to say. ``patient``: raises AwayError while Prometheus does not answer, since it may soon;
        else the report says that it did not.
        """
        alert = kept.alert
        objective = self._objectives.get(alert.objective)
        end, window = _span(kept)
        found: Report = {
            "objective": _described(objective),
            "window": {"from_ms": int((end - window) * 1000), "to_ms": int(end * 1000)},
            "explanation": None,
            "text": "",
            "svg": "",
            "traces": [],
            "topology": {"services": [], "calls": []},
            "problem": "",
        }
        if objective is None:
            found["problem"] = f"The objective {alert.objective} is in none of the explainer's files."
            return found
        try:
            explanation = self._explained(objective, alert, end, window)
        except UnslicedError as error:
            found["problem"] = str(error)
        except PrometheusError as error:
            if patient:
                raise AwayError(str(error)) from None
            found["problem"] = f"There is no explanation: {error}."
            return found
        else:
            found |= {"explanation": explanation.json(), "text": explanation.text(), "svg": explanation.svg()}
            found["traces"] = self._examples(explanation, objective, alert, end, window)
        around = _services(alert, objective, found["explanation"])
        found["topology"] = self._remember(
            ("topology", window, tuple(sorted(around)), end),
            lambda: topology(self._prometheus, self._jaeger, end, window, around),
        )
        return found

    def _explained(self, objective: Objective, alert: Alert, end: float, window: int) -> Explanation:
        where = {name: alert.labels[name] for name in objective.group_by if name in alert.labels}
        return self._remember(
            (objective.id, window, tuple(sorted(where.items())), end),
            lambda: explain(
                self._cells(objective, end, window, where),
                traces=self._finder(objective, where, end, window),
                noun=_noun(objective),
                history=False,
            ),
        )

    def _cells(self, objective: Objective, end: float, window: int, where: Mapping[str, str]) -> Cells:
        return self._prometheus.cells(objective, end, window, where=where, windows=self._windows)

    def _finder(self, objective: Objective, where: Mapping[str, str], end: float, window: int) -> Traces:
        def find(labels: Mapping[str, str]) -> list[Trace]:
            wanted = {**where, **labels}
            found: list[str] = []
            with suppress(PrometheusError):
                found = [trace.id for trace in self._prometheus.traces(objective, wanted, end, window, _TRACES)]
            if len(found) < _TRACES and self._jaeger is not None:
                with suppress(AwayError, RefusedError):
                    found += self._jaeger.traces(objective, wanted, end, window, _TRACES)
            return [Trace(one, self._links.trace(one)) for one in list(dict.fromkeys(found))[:_TRACES]]

        return find

    def _examples(
        self, explanation: Explanation, objective: Objective, alert: Alert, end: float, window: int
    ) -> list[dict[str, str]]:
        """Of the first slice, else of the alert as a whole."""
        if explanation.slices:
            traces = explanation.slices[0].traces
        else:
            where = {name: alert.labels[name] for name in objective.group_by if name in alert.labels}
            traces = tuple(self._finder(objective, where, end, window)({}))
        return [trace._asdict() for trace in traces]

    def _remember(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = make()
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        found: T = self._known[key]
        return found


def _span(kept: Kept) -> tuple[float, int]:
    """End (Unix time) and seconds of the window that burns: the alert's long one, until it was told of, by the minute
    so that alerts of one storm have the same.
    """
    alert = kept.alert
    try:
        window = min(parse_window(alert.labels.get("long", "")).seconds, _MOST_WINDOW)
    except ValueError:
        window = _DEFAULT_WINDOW
    end = kept.received if alert.ends is None else max(alert.starts, min(kept.received, alert.ends))
    return float(-(-end // (1000 * _MINUTE)) * _MINUTE), window


def _described(objective: Objective | None) -> dict[str, Any] | None:
    if objective is None:
        return None
    return {
        "id": objective.id,
        "service": objective.service,
        "name": objective.name,
        "target": objective.target,
        "period": str(objective.period),
        "description": objective.description,
    }


def _noun(objective: Objective) -> str:
    if not isinstance(objective.source, Indicator):
        return "events"
    return _NOUNS.get(objective.source.measure, "steps")


def _services(alert: Alert, objective: Objective, explanation: dict[str, Any] | None) -> set[str]:
    """The services that burn, as far as anything names them."""
    named = {alert.labels.get(SERVICE_LABEL, "")}
    if isinstance(objective.source, Indicator):
        named |= set(objective.source.where.service)
    for found in (explanation or {}).get("slices", []):
        named.add(found["labels"].get(SERVICE_LABEL, ""))
    return named - {""}
