"""Queries as a panel has them: of Prometheus, at one time or over time, and searches of Jaeger."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.cog.variants import Dataquery as AnyQuery
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

from .variables import JAEGER, PROMETHEUS

__all__ = ["JaegerSearch", "Target", "legend", "now", "over_time", "row", "with_refs"]

Target: TypeAlias = Builder[AnyQuery]
"""One query of a panel."""
_REFS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def legend(*labels: str) -> str:
    """Names a series by the values of labels."""
    return " ".join(f"{{{{{label}}}}}" for label in labels)


def _query(expr: str, legend: str, form: PromQueryFormat) -> Dataquery:
    return (
        Dataquery()
        .datasource(PROMETHEUS)
        .editor_mode(QueryEditorMode.CODE)
        .format(form)
        .legend_format(legend)
        .expr(expr)
    )


def over_time(expr: str, legend: str = "", *, exemplar: bool = False, buckets: bool = False) -> Target:
    """A range query. ``exemplar`` asks for the traces behind it, ``buckets`` says that the series are a histogram's."""
    form = PromQueryFormat.HEATMAP if buckets else PromQueryFormat.TIME_SERIES
    return _query(expr, legend, form).range().exemplar(exemplar)


def now(expr: str, legend: str = "") -> Target:
    """An instant query at the end of the time range: one value a series."""
    return _query(expr, legend, PromQueryFormat.TIME_SERIES).instant().exemplar(False)


def row(expr: str) -> Target:
    """An instant query as a table: one row a series, one column a label."""
    return _query(expr, "", PromQueryFormat.TABLE).instant().exemplar(False)


class JaegerSearch(Builder[AnyQuery]):
    """Traces of one service that have a span with all ``tags``; the SDK has no type for it."""

    def __init__(self, service: str, tags: dict[str, str], *, slower: str = "", limit: int = 20) -> None:
        """``slower``: the shortest duration, such as 800ms."""
        self._data: dict[str, Any] = {
            "datasource": {"type": JAEGER.type_val, "uid": JAEGER.uid},
            "queryType": "search",
            "service": service,
            "tags": " ".join(f"{key}={value}" for key, value in tags.items()),
            "limit": limit,
        }
        if slower:
            self._data["minDuration"] = slower

    def build(self) -> AnyQuery:
        """The query."""
        return UnknownDataquery(dict(self._data))


def with_refs(targets: list[Target]) -> list[Target]:
    """Gives each query its letter."""
    for place, target in enumerate(targets):
        if isinstance(target, Dataquery):
            target.ref_id(_REFS[place])
        elif isinstance(target, JaegerSearch):
            target._data["refId"] = _REFS[place]
    return targets
