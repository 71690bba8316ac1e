"""The cells of an explanation from a Prometheus: how many events were bad, of how many, by every label that tells them
apart, in the window that burns and in those before it. Two queries over time, and one for examples.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from ... import semconv
from ...semconv.prometheus import SERVICE_LABEL, prometheus_label, prometheus_series
from ..objective import BadAndTotal, Indicator, Objective
from ..rules.promql import WINDOW, over_window
from ..rules.queries import UnfitError, bad_and_total, bounds_of, dimensions, needed_setting
from .cells import Cells, Sample
from .explanation import Trace

__all__ = ["Prometheus", "PrometheusError", "Sliced", "UnslicedError", "sliced"]

_MAX_ANSWER: Final = 24 * 2**20
_MAX_VALUES: Final = 200
"""A label with more values than this is an id, and no dimension."""
_MAX_DIMENSIONS: Final = 10
_FURTHEST: Final = 7 * 86_400
"""Seconds that the baseline goes back at most, where that is two windows or more."""
_LEAST_WINDOWS: Final = 2
_SELECTOR: Final = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s*\[')
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_SUM: Final = re.compile(r"\bsum\s*(?:(?:by|without)\s*\([^()]*\)\s*)?(?=\()", re.IGNORECASE)
_BY_AFTER: Final = re.compile(r"\)\s*(?:by|without)\s*\([^()]*\)", re.IGNORECASE)
_MATCHED: Final = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)")
_MACHINES: Final = frozenset(
    {"__name__", "le", "quantile", "job", "instance", "pod", "pod_name", "container", "node", "uid", "endpoint"}
)
"""Labels of where something runs, and of what a series is made of: no slices of events."""
_BUSINESS: Final = prometheus_label(semconv.LABEL_PREFIX)


class PrometheusError(Exception):
    """No answer that helps; the text says why, as the end of a sentence. It may be there later."""


class _TooMuchError(PrometheusError):
    """The answer is too long to be read."""


class UnslicedError(Exception):
    """The objective's events cannot be told apart; the text is a sentence that says why. It will never be otherwise."""


class Sliced(NamedTuple):
    """The two queries of an objective, by labels: events of one ``{{.window}}``, or a second."""

    bad: str
    total: str
    dimensions: tuple[str, ...]
    per_second: bool


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the address that was set, and for nobody whom that one names."""

    def redirect_request(self, *_: object) -> None:
        return None


class Prometheus:
    """Its HTTP API. ``timeout`` in seconds; ``token`` is shown as a bearer token, where there is one."""

    def __init__(self, url: str, token: str = "", timeout: float = 10.0) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def cells(
        self, objective: Objective, at: float, window: int, *, where: Mapping[str, str] | None = None, windows: int = 8
    ) -> Cells:
        """The events of the ``window`` seconds until ``at`` (Unix time), and of up to ``windows`` such windows before.

        ``where`` are labels that all of them have, such as those of an alert; they are no dimensions then, and neither
        are labels that no event has. The
        baseline is shorter where ``windows`` of them are over a week. Where so many labels make an answer that is too
        long, the last ones are left out. Raises PrometheusError and UnslicedError.
        """
        names = self._known_labels(objective, at, window)
        while True:
            try:
                return self._cells(sliced(objective, (*objective.group_by, *names)), at, window, where, windows)
            except _TooMuchError:
                if not names:
                    raise
                names = names[:-1]

    def _cells(self, found: Sliced, at: float, window: int, where: Mapping[str, str] | None, windows: int) -> Cells:
        fixed = {name: value for name, value in (where or {}).items() if name in found.dimensions}
        before = max(_LEAST_WINDOWS, min(windows, _FURTHEST // window))
        scale = float(window) if found.per_second else 1.0
        bad = self._by_window(found.bad, at, window, before, scale)
        total = self._by_window(found.total, at, window, before, scale)
        ages = [list(_samples(bad.get(age, {}), total.get(age, {}), fixed)) for age in range(before + 1)]
        told = {name for samples in ages for sample in samples for name, value in sample.labels.items() if value}
        kept = tuple(name for name in found.dimensions if name in told and name not in fixed)
        return Cells.collect(kept, ages[0], ages[1:])

    def traces(
        self, objective: Objective, labels: Mapping[str, str], at: float, window: int, most: int = 3
    ) -> list[Trace]:
        """The newest examples of bad events with these labels, from exemplars. Raises PrometheusError."""
        query, is_bad = _exemplars(objective)
        if not query:
            return []
        source = objective.source
        services = source.where.service if isinstance(source, Indicator) else ()
        asked = {"query": query.replace(WINDOW, "5m"), "start": f"{at - window:.3f}", "end": f"{at:.3f}"}
        found: dict[str, float] = {}
        for series in _list(self.get("query_exemplars", asked)):
            known = series.get("seriesLabels") or {}
            if any(name in known and known[name] != value for name, value in labels.items()):
                continue
            if services and known.get(SERVICE_LABEL) not in services:
                continue
            for exemplar in _list(series.get("exemplars")):
                trace_id = (exemplar.get("labels") or {}).get("trace_id")
                value, moment = _float(exemplar.get("value")), _float(exemplar.get("timestamp"))
                if isinstance(trace_id, str) and is_bad(value):
                    found[trace_id] = max(moment, found.get(trace_id, 0.0))
        return [Trace(trace_id) for trace_id in sorted(found, key=lambda one: (-found[one], one))[:most]]

    def vector(self, query: str, at: float) -> list[tuple[dict[str, str], float]]:
        """The labels and values of an instant query. Raises PrometheusError."""
        result = (self.get("query", {"query": query, "time": f"{at:.3f}"}) or {}).get("result")
        return [
            (dict(series.get("metric") or {}), _float((series.get("value") or [0, "nan"])[1]))
            for series in _list(result)
        ]

    def get(self, path: str, asked: Mapping[str, str] | Sequence[tuple[str, str]]) -> Any:
        """``data`` of the answer at ``/api/v1/path``. Raises PrometheusError."""
        method = "GET" if path.startswith("label/") else "POST"
        text = urlencode(asked)
        url = f"{self._url}/api/v1/{path}{f'?{text}' if method == 'GET' else ''}"
        data = None if method == "GET" else text.encode()
        request = urllib.request.Request(url, data=data, headers=self._headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                body = answer.read(_MAX_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                said = " ".join(error.read(500).decode("utf-8", "replace").split())
            raise PrometheusError(f"Prometheus answers {error.code}: {said}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise PrometheusError(f"Prometheus does not answer: {reason or type(error).__name__}") from None
        if len(body) > _MAX_ANSWER:
            raise _TooMuchError(f"the answer of Prometheus is over {_MAX_ANSWER >> 20} MiB")
        try:
            found = json.loads(body)
            return found["data"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PrometheusError("what answers there is no Prometheus") from None

    # --------------------------------------------------------------------------------------------------------- labels

    def _known_labels(self, objective: Objective, at: float, window: int) -> tuple[str, ...]:
        """The labels that the objective's events have besides, with few enough values."""
        source = objective.source
        if isinstance(source, Indicator):
            return self._business(source, at, window)
        if not isinstance(source, BadAndTotal):
            return ()
        bad, total = (set(_MATCHED.findall(_STRING.sub('""', text))) for text in (source.bad, source.total))
        names = self._labels(source.total, at, window)
        return tuple(name for name in names if name not in _MACHINES | (bad - total))[:_MAX_DIMENSIONS]

    def _business(self, indicator: Indicator, at: float, window: int) -> tuple[str, ...]:
        own = dimensions(indicator)
        counted = indicator.measure in ("step_validity", "tool_success", "errors") or needed_setting(indicator)
        if not counted:
            return own
        names = self._labels(bad_and_total(indicator).total, at, window)
        business = [name for name in names if name.startswith(_BUSINESS)]
        return (*own, *business)[:_MAX_DIMENSIONS]

    def _labels(self, query: str, at: float, window: int) -> list[str]:
        """Label names of the series that a query reads, those with too many values left out."""
        matches = [("match[]", f"{name}{matchers}") for name, matchers in _SELECTOR.findall(query)]
        if not matches:
            return []
        span = [("start", f"{at - window:.3f}"), ("end", f"{at:.3f}")]
        names = self.get("labels", [*matches, *span])
        kept = []
        for name in names if isinstance(names, list) else []:
            if not isinstance(name, str) or name in _MACHINES or not name.isidentifier():
                continue
            values = self.get(f"label/{name}/values", [*matches, *span])
            if isinstance(values, list) and 1 < len(values) <= _MAX_VALUES:
                kept.append(name)
        return kept

    def _by_window(
        self, query: str, at: float, window: int, before: int, scale: float
    ) -> dict[int, dict[tuple[tuple[str, str], ...], float]]:
        """Age of the window (0 for the one until ``at``) -> labels -> events."""
        asked = {
            "query": over_window(query, f"{window}s"),
            "start": f"{at - before * window:.3f}",
            "end": f"{at:.3f}",
            "step": str(window),
        }
        found: dict[int, dict[tuple[tuple[str, str], ...], float]] = {}
        result = self.get("query_range", asked)
        try:
            for series in _list(result.get("result") if isinstance(result, dict) else None):
                labels = tuple(sorted((name, str(value)) for name, value in (series.get("metric") or {}).items()))
                for moment, value in series.get("values") or []:
                    age, count = (at - _float(moment)) / window, _float(value) * scale
                    if math.isfinite(age) and math.isfinite(count) and count > 0:
                        found.setdefault(round(age), {})[labels] = count
        except (TypeError, ValueError, AttributeError):
            raise PrometheusError("what answers there is no Prometheus") from None
        return found


def sliced(objective: Objective, labels: Iterable[str]) -> Sliced:
    """The objective's queries by ``labels``. Raises UnslicedError where they cannot be told apart."""
    names = tuple(dict.fromkeys(labels))
    source = objective.source
    if isinstance(source, Indicator):
        try:
            queries = bad_and_total(source, names)
        except UnfitError as error:
            raise UnslicedError(str(error)) from None
        return Sliced(queries.bad, queries.total, names, True)
    if not isinstance(source, BadAndTotal):
        raise UnslicedError(f"The objective {objective.id} is a query for a share: it has no counts to tell apart.")
    bad, total = _by(source.bad, names), _by(source.total, names)
    if bad is None or total is None:
        raise UnslicedError(f"The queries of {objective.id} are no sums, so their events cannot be told apart.")
    return Sliced(bad, total, names, source.per == "second")


def _by(query: str, names: Sequence[str]) -> str | None:
    """The query with every sum by ``names``; None where it has no sum."""
    strings: list[str] = []

    def hide(found: re.Match[str]) -> str:
        strings.append(found[0])
        return f'"{len(strings) - 1}"'

    hidden = _BY_AFTER.sub(")", _STRING.sub(hide, query))
    found, count = _SUM.subn(f"sum by ({', '.join(names)}) ", hidden)
    return re.sub(r'"(\d+)"', lambda match: strings[int(match[1])], found) if count else None


def _exemplars(objective: Objective) -> tuple[str, Any]:
    """A query whose exemplars are looked at, and which of their values are of a bad event."""
    source = objective.source
    if isinstance(source, BadAndTotal):
        return source.bad, lambda value: True
    if not isinstance(source, Indicator):
        return "", lambda value: False
    bounds = bounds_of(source)
    if source.measure == "step_latency":
        return f"{prometheus_series(semconv.STEP_DURATION)}_bucket", lambda value: value > bounds[0]
    if source.measure == "time_to_first_chunk":
        return f"{prometheus_series(semconv.FIRST_CHUNK)}_bucket", lambda value: value > bounds[0]
    if source.measure == "step_confidence":
        return f"{prometheus_series(semconv.STEP_CONFIDENCE_METRIC)}_bucket", lambda value: value <= bounds[0]
    if source.measure == "saturation":
        return f"{prometheus_series(semconv.RATELIMIT_USED)}_bucket", lambda value: value > bounds[0]
    return bad_and_total(source).bad, lambda value: True


def _samples(
    bad: Mapping[tuple[tuple[str, str], ...], float],
    total: Mapping[tuple[tuple[str, str], ...], float],
    fixed: Mapping[str, str],
) -> Iterator[Sample]:
    """One for each set of labels that has what is ``fixed``. More bad ones than there are is a trick of rates."""
    for labels in {**total, **bad}:
        named = dict(labels)
        if all(named.get(name, "") == value for name, value in fixed.items()):
            failed = bad.get(labels, 0.0)
            yield Sample(named, failed, max(failed, total.get(labels, 0.0)))


def _list(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
