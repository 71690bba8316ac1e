"""The queries of a dashboard's JSON, and what stands in them for Grafana's variables when Grafana is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["Expression", "expressions", "panels", "plain"]

_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_VALUES_OF: Final = re.compile(r"label_values\((.+),\s*([^,]+)\)|label_names\((.+)\)")


class Expression(NamedTuple):
    """One query. ``place`` says where it is for a person; ``instant`` that it is of one time."""

    place: str
    text: str
    instant: bool = False
    label: str = ""
    """The label whose values a variable takes from the query."""
    marks: bool = False
    """Whether it marks times on graphs, as an annotation: without data nothing has happened, which is as it should."""


def plain(text: str, seconds: int = 3600) -> str:
    """The query without Grafana's variables: everything is chosen, and the time range is ``seconds`` long."""
    values = {"__range": f"{seconds}s", "__rate_interval": "5m", "__interval": "1m", "label": "tier"}
    return _VARIABLE.sub(lambda found: values.get(found.group(1), ".*"), text)


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel, those inside collapsed rows too; rows themselves are left out."""
    for panel in dashboard.get("panels") or []:
        if panel.get("type") == "row":
            yield from panel.get("panels") or []
        else:
            yield panel


def expressions(dashboard: Mapping[str, Any]) -> Iterator[Expression]:
    """Every PromQL query: of panels, annotations and variables."""
    title = dashboard.get("title", "?")
    for panel in panels(dashboard):
        for target in panel.get("targets") or []:
            if "expr" in target:
                place = f"{title} / {panel.get('title', '?')} / {target.get('refId', '?')}"
                yield Expression(place, target["expr"], bool(target.get("instant")))
    for annotation in (dashboard.get("annotations") or {}).get("list") or []:
        if annotation.get("expr"):
            yield Expression(f"{title} / annotation {annotation.get('name')}", annotation["expr"], marks=True)
    for variable in (dashboard.get("templating") or {}).get("list") or []:
        query = variable.get("query")
        text = query.get("query", "") if isinstance(query, dict) else query or ""
        if variable.get("type") == "query" and (found := _VALUES_OF.fullmatch(text)):
            place = f"{title} / variable {variable.get('name')}"
            yield Expression(place, found.group(1) or found.group(3), True, found.group(2) or "")
