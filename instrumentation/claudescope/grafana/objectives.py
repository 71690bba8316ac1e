"""Objectives: what is left of each budget, how fast it burns, and who was told."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, AnnotationTarget
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import Dashboard

from .board import AnyPanel, board
from .panels import bars, figure, graph
from .promql import or_zero, or_zero_named, select, total
from .series import SERVICE
from .stack_metrics import SLO, WINDOWS
from .tables import Column, Link, dashboard_link, figures_table
from .targets import legend, now, over_time
from .thresholds import BUDGET_LEFT, BURN_RATE, Limits
from .variables import explainer, objective, of_objectives, service

__all__ = ["UID", "burning", "dashboard", "objective_figures"]

UID: Final = "claudescope-slo"
_ANNOTATION_TAG: Final = "claudescope-slo"
"""What the explainer marks its annotations with."""
_NONE: Final = "No objectives"
_QUIET: Final = "No events of an objective in this time"
_LEFT: Final = "slo:period_error_budget_remaining:ratio"
_TIER: Final = "burnrate_tier"
_EACH: Final = (SLO, SERVICE)
"""A budget is of an objective and, where its rules tell services apart, of one service."""


def burning(*matchers: str) -> str:
    """Selector of the tiers that fire."""
    return select("ALERTS", 'alertstate="firing"', f'{SLO}!=""', f'{_TIER}!=""', *matchers)


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Objectives",
        "What is left of each error budget, how fast it burns by window, which tiers fire and fired, and why.",
        [service(), objective(), explainer()],
        [
            ("Does a budget burn?", _figures()),
            ("Each objective", [_table()]),
            ("How fast?", _rates()),
            ("Who was told?", _alerts()),
        ],
        marks=(_explained(),),
    )


def _explained() -> AnnotationQuery:
    """The explainer's marks, from the alert's start to its end, with what it found."""
    return (
        AnnotationQuery()
        .name("Explanations")
        .datasource(DataSourceRef(type_val="grafana", uid="-- Grafana --"))
        .enable(True)
        .hide(False)
        .icon_color("#0072B2")
        .target(AnnotationTarget().limit(100).match_any(False).tags([_ANNOTATION_TAG]).type("tags"))
    )


def _of(name: str) -> str:
    return select(name, *of_objectives())


def _figures() -> list[AnyPanel]:
    info = select("claudescope_slo_info", *of_objectives(by_service=False))
    return [
        figure(
            "Objectives",
            "Objectives whose rules Prometheus has. claudescope slo rules compiles them.",
            now(or_zero(f"count({info})")),
            "none",
            decimals=0,
            width=6,
            none="0",
        ),
        figure(
            "Burning now",
            "Tiers that fire now: of the fast ones somebody is woken.",
            over_time(or_zero(f"count({burning(*of_objectives())})")),
            "none",
            bounds=Limits(1, 1),
            decimals=0,
            width=6,
            none="0",
        ),
        figure(
            "Lowest budget left",
            "Share of its error budget that the worst objective has left of its period. Below 0 the target is missed.",
            over_time(f"min({_of(_LEFT)})"),
            "percentunit",
            bounds=BUDGET_LEFT,
            decimals=1,
            width=6,
            none=_NONE,
        ),
        figure(
            "Fastest burn",
            "How many times as fast as allowed the worst budget was used in the last five minutes. At 1 it just lasts.",
            over_time(f"max({_of('slo:current_burn_rate:ratio')})"),
            "none",
            bounds=BURN_RATE,
            decimals=1,
            width=6,
            none=_NONE,
        ),
    ]


def _each(name: str, how: str = "max") -> str:
    """Of each objective and service, the worst group."""
    return f"{how} by ({', '.join(_EACH)}) ({_of(name)})"


def _only(name: str) -> str:
    """Of each objective: what is the same for all services."""
    return f"max by ({SLO}) ({select(name, *of_objectives(by_service=False))})"


def _target() -> str:
    """Of each objective and service with events, and of each objective without any."""
    target, known = _only("slo:objective:ratio"), _each(_LEFT)
    return f"(0 * {known} + on ({SLO}) group_left () {target}) or ({target} unless on ({SLO}) {known})"


def objective_figures() -> list[AnyPanel]:
    """The row of the overview: all objectives, of all services."""
    left = f"min by ({SLO}) ({_LEFT})"
    return [
        figure(
            "Lowest budget left",
            "Share of its error budget that the worst objective has left of its period, of all services.",
            over_time(f"min({_LEFT})"),
            "percentunit",
            bounds=BUDGET_LEFT,
            decimals=1,
            none=_NONE,
        ),
        figure(
            "Burning now",
            "Tiers of objectives that fire now, of all services.",
            over_time(or_zero(f"count({burning()})")),
            "none",
            bounds=Limits(1, 1),
            decimals=0,
            none="0",
        ),
        bars(
            "Budget left",
            "The five objectives with the least of their error budget left. Objectives has all of them.",
            now(f"bottomk(5, {left})", legend(SLO)),
            "percentunit",
            bounds=BUDGET_LEFT,
            decimals=1,
            width=18,
            height=4,
            none=_NONE,
        ),
    ]


def _table() -> AnyPanel:
    tiers = f"count by ({', '.join(_EACH)}) ({burning(*of_objectives())})"
    return figures_table(
        "Objectives",
        "Each objective, and each service where its rules tell them apart; the worst of the groups that it has besides."
        " The objective leads to its explanations.",
        {SLO: "Objective", SERVICE: "Service"},
        [
            Column("Target", _target(), "percentunit", 3),
            Column("Budget left", _each(_LEFT, "min"), "percentunit", 1, BUDGET_LEFT),
            Column("Burn rate, 5m", _each("slo:current_burn_rate:ratio"), "none", 1, BURN_RATE),
            Column("Burn rate, 1h", _burn("1h"), "none", 1, BURN_RATE),
            Column("Burn rate, period", _each("slo:period_burn_rate:ratio"), "none", 2, BURN_RATE),
            Column("Events a second", _each("slo:sli_total:rate5m", "sum"), "none", 2),
            Column("Tiers firing", f"{tiers} or 0 * {_each(_LEFT)}", "none", 0, Limits(1, 1)),
        ],
        sort="Budget left",
        rising=True,
        links={
            "Objective": [
                Link("What burns, and where", "${explainer}/explanations?slo=${__data.fields.Objective:percentencode}"),
                dashboard_link("Only this objective", UID, slo="Objective"),
            ],
            "Service": [
                dashboard_link("Overview", "claudescope-overview", service="Service"),
                dashboard_link("Validity and confidence", "claudescope-quality", service="Service"),
            ],
        },
        width=24,
        height=9,
        none=_NONE,
    )


def _burn(window: str) -> str:
    ratio = _each(f"slo:sli_error:ratio_rate{window}")
    return f"{ratio} / on ({SLO}) group_left () {_only('slo:error_budget:ratio')}"


def _rates() -> list[AnyPanel]:
    tiers = select("slo:tier:burn_rate", *of_objectives(by_service=False))
    return [
        graph(
            "Burn rate by window",
            "How many times as fast as allowed the budget was used in each window of the tiers that objectives have by"
            " default; 1 just lasts. A tier fires when both of its windows are above its line. Choose one objective to"
            " read it.",
            [
                *(over_time(_burn(window), f"{window} {legend(SLO, SERVICE)}") for window in WINDOWS),
                over_time(f"max by ({_TIER}, long, short) ({tiers})", f"line of {legend(_TIER, 'long', 'short')}"),
            ],
            "none",
            decimals=2,
            width=24,
            height=10,
            none=_QUIET,
        ),
        graph(
            "Budget left",
            "Share of the error budget that is left of the period. Below 0 the target is missed.",
            [over_time(_each(_LEFT, "min"), legend(*_EACH))],
            "percentunit",
            bounds=BUDGET_LEFT,
            decimals=1,
            none=_QUIET,
        ).min(-1),
        graph(
            "Share of bad events, and what may be",
            "Share of bad events in five minutes, and the share that the objective allows.",
            [
                over_time(_each("slo:sli_error:ratio_rate5m"), legend(*_EACH)),
                over_time(_only("slo:error_budget:ratio"), f"allowed {legend(SLO)}"),
            ],
            "percentunit",
            decimals=2,
            none=_QUIET,
        ),
        graph(
            "Events",
            "Events a second that count for the objective, and the bad ones among them.",
            [
                over_time(_each(f"slo:sli_{what}:rate5m", "sum"), f"{words} {legend(*_EACH)}")
                for what, words in (("total", "all"), ("bad", "bad"))
            ],
            "cps",
            width=24,
            none=_QUIET,
        ),
    ]


def _alerts() -> list[AnyPanel]:
    by = (SLO, SERVICE, _TIER)
    absent = select("ALERTS", 'alertstate="firing"', f'{SLO}!=""', f'{_TIER}=""', *of_objectives())
    return [
        graph(
            "Tiers firing",
            "Each tier while it fires. The marks on all graphs are the same alerts, and the explanations of the"
            " explainer: a click on one shows which slice burns, and leads to traces.",
            [over_time(or_zero_named(total(burning(*of_objectives()), *by), SLO, "none"), legend(*by))],
            "none",
            decimals=0,
            none=_NONE,
        ),
        graph(
            "Other alerts of objectives",
            "An objective without data, or a canary that is worse than its baseline.",
            [over_time(or_zero_named(total(absent, "alertname", SLO), "alertname", "none"), legend("alertname", SLO))],
            "none",
            decimals=0,
            none=_NONE,
        ),
    ]
