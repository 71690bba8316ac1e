"""Tables: several instant queries joined by their labels, and traces from Jaeger, with links to where to look next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.common import TableSortByFieldState
from grafana_foundation_sdk.models.common import TableCellHeight
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue

from .palette import PLAIN, limits
from .targets import JaegerSearch, row, with_refs
from .thresholds import Limits
from .variables import JAEGER, PROMETHEUS

__all__ = ["Column", "Link", "dashboard_link", "figures_table", "jaeger_link", "traces_table"]


class Column(NamedTuple):
    """A figure of the table: its title, query, unit and decimals; ``none`` stands where it has no value."""

    title: str
    expr: str
    unit: str
    decimals: int = 0
    bounds: Limits | None = None
    none: str = "-"


class Link(NamedTuple):
    """A link on a column's cells."""

    title: str
    url: str


def dashboard_link(title: str, uid: str, **columns: str) -> Link:
    """To another dashboard with the row's cells as variables (``service="Service"``), keeping the time."""
    chosen = "&".join(f"var-{name}=${{__data.fields.{column}:percentencode}}" for name, column in columns.items())
    return Link(title, f"/d/{uid}?{chosen}&${{__url_time_range}}")


def jaeger_link(title: str, tags: Mapping[str, str], *, slower: str = "") -> Link:
    """To a search in Explore of the row's service for the traces that have a span with ``tags``."""
    search = JaegerSearch("${__data.fields.Service}", dict(tags), slower=slower, limit=50).build()
    query = {"refId": "A", **search.to_json()}
    panes = {
        "claudescope": {"datasource": JAEGER.uid, "queries": [query], "range": {"from": "${__from}", "to": "${__to}"}}
    }
    # what Grafana replaces must stay as it is
    return Link(
        title, "/explore?schemaVersion=1&panes=" + quote(json.dumps(panes, separators=(",", ":")), safe="${}:,[]._-")
    )


def _links(links: list[Link]) -> DynamicConfigValue:
    return DynamicConfigValue("links", [{"title": link.title, "url": link.url} for link in links])


def figures_table(
    title: str,
    description: str,
    keys: Mapping[str, str],
    columns: list[Column],
    *,
    sort: str,
    rising: bool = False,
    links: Mapping[str, list[Link]] | None = None,
    width: int = 12,
    height: int = 10,
    none: str = "No steps in this time",
) -> table.Panel:
    """One row for each set of labels ``keys`` (label -> title). The columns' queries all keep exactly these labels."""
    names = dict(keys)
    if len(columns) == 1:
        names["Value"] = columns[0].title
    names |= {f"Value #{letter}": column.title for letter, column in zip("ABCDEFGH", columns, strict=False)}
    order = {label: place for place, label in enumerate(names)}
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .targets(with_refs([row(column.expr) for column in columns]))
        .transformations(
            [
                DataTransformerConfig(id_val="merge", options={}),
                DataTransformerConfig(
                    id_val="organize",
                    options={"excludeByName": {"Time": True}, "indexByName": order, "renameByName": names},
                ),
            ]
        )
        .thresholds(PLAIN)
        .show_header(True)
        .cell_height(TableCellHeight.SM)
        .filterable(True)
        .sort_by([TableSortByFieldState().display_name(sort).desc(not rising)])
        .no_value(none)
        .span(width)
        .height(height)
    )
    for column in columns:
        panel.override_by_name(column.title, _looks(column))
    for name, found in (links or {}).items():
        panel.override_by_name(name, [_links(found)])
    return panel


def _looks(column: Column) -> list[DynamicConfigValue]:
    looks: list[DynamicConfigValue] = [
        DynamicConfigValue("unit", column.unit),
        DynamicConfigValue("decimals", column.decimals),
        DynamicConfigValue("noValue", column.none),
        DynamicConfigValue(
            "mappings",
            [{"type": "special", "options": {"match": "null+nan", "result": {"text": column.none, "index": 0}}}],
        ),
    ]
    if column.bounds is not None:
        looks.append(DynamicConfigValue("thresholds", limits(column.bounds).build()))
        looks.append(DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
    return looks


def traces_table(
    title: str, description: str, search: JaegerSearch, *, width: int = 24, height: int = 9, none: str = "No such trace"
) -> table.Panel:
    """Traces as Jaeger finds them; a click on one opens it."""
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(JAEGER)
        .targets(with_refs([search]))
        .thresholds(PLAIN)
        .show_header(True)
        .cell_height(TableCellHeight.SM)
        .no_value(none)
        .span(width)
        .height(height)
    )
