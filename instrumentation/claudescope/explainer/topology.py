"""The services around an alert, and what they call: each other (Jaeger), models and tools (Prometheus)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from .. import semconv
from ..semconv.prometheus import SERVICE_LABEL, prometheus_label, prometheus_series
from ..slo.explain.prometheus import Prometheus, PrometheusError
from .jaeger import Call, Jaeger
from .outbound import AwayError, RefusedError

__all__ = ["topology"]

_MOST: Final = 100
_MODEL: Final = prometheus_label(semconv.REQUEST_MODEL)
_TOOL: Final = prometheus_label(semconv.TOOL_NAME)
_QUERIES: Final = {
    "model": (_MODEL, f'{prometheus_series(semconv.CALLS)}{{{_MODEL}!=""}}'),
    "tool": (
        _TOOL,
        f'{prometheus_series(semconv.STEPS)}{{{prometheus_label(semconv.STEP_KIND)}="tool_run",{_TOOL}!=""}}',
    ),
}


def topology(
    prometheus: Prometheus, jaeger: Jaeger | None, at: float, window: int, around: Iterable[str] = ()
) -> dict[str, Any]:
    """``{"services": [...], "calls": [{"from", "to", "kind", "count"}]}`` of the ``window`` seconds until ``at``.

    The calls of and to the services ``around``, and of those that these call and are called by; all where there is
    none. What does not answer is left out: a ticket without it is better than none.
    """
    calls: list[Call] = []
    for kind, (label, series) in _QUERIES.items():
        query = f"sum by ({SERVICE_LABEL}, {label}) (increase({series}[{window}s])) > 0"
        try:
            found = prometheus.vector(query, at)
        except PrometheusError:
            continue
        calls += [
            Call(labels[SERVICE_LABEL], labels[label], kind, value)
            for labels, value in found
            if labels.get(SERVICE_LABEL) and labels.get(label) and value > 0
        ]
    if jaeger is not None:
        with suppress(AwayError, RefusedError):
            calls += jaeger.calls(int(at * 1000), window * 1000)
    near = _near(calls, {name for name in around if name})
    services = {call.caller for call in near} | {call.called for call in near if call.kind == "service"}
    return {"services": sorted(services), "calls": [call.json() for call in near]}


def _near(calls: list[Call], around: set[str]) -> list[Call]:
    """The calls within two steps of the services ``around``, the most frequent first."""
    reached = set(around)
    between = [call for call in calls if call.kind == "service"]
    for call in between:
        if call.caller in around or call.called in around:
            reached |= {call.caller, call.called}
    kept = [call for call in calls if not around or call.caller in reached or call.called in reached]
    return sorted(kept, key=lambda call: (-call.times, call))[:_MOST]
