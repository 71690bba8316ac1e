"""A dashboard around its panels: identity, variables, links to the others, marks of firing alerts."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink, Row
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DashboardLinkType

from .variables import PROMETHEUS, data_sources

__all__ = ["TAG", "AnyPanel", "Section", "board"]

TAG: Final = "claudescope"
"""All our dashboards have it: they link to each other by it, and ``push`` knows its own by it."""
AnyPanel: TypeAlias = Builder[models.Panel]
"""A panel of any type."""
Section: TypeAlias = tuple[str, list[AnyPanel]]
"""A row's title and its panels, which fill the 24 columns line by line."""


def board(
    uid: str,
    title: str,
    description: str,
    variables: list[Builder[models.VariableModel]],
    sections: list[Section],
    *,
    marks: tuple[AnnotationQuery, ...] = (),
) -> models.Dashboard:
    """Puts a dashboard together; ``marks`` are annotations besides those of firing alerts."""
    made = (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .editable()
        .variables([*data_sources(), *variables])
        .link(
            DashboardLink("claudescope")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
            .tooltip("The other dashboards, with the same choice and time")
        )
        .annotation(
            AnnotationQuery()
            .name("Firing alerts")
            .datasource(PROMETHEUS)
            .enable(True)
            .hide(False)
            .icon_color("#D55E00")
            .expr('ALERTS{alertstate="firing"}')
        )
    )
    for mark in marks:
        made.annotation(mark)
    for heading, panels in sections:
        made.with_row(Row(heading))
        for panel in panels:
            made.with_panel(panel)
    built: Any = made.build()
    for number, panel in enumerate(built.panels, start=1):
        panel.id_val = number  # a link to one panel names it
    found: models.Dashboard = built
    return found
