"""Overview: is quality well, where is it not, and since when."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from . import cost
from .board import AnyPanel, board
from .objectives import objective_figures
from .panels import figure, graph, step_heatmap, verdict_colours
from .promql import RANGE, RATE, increase, or_zero, or_zero_named, per_second, select, total
from .reasoning import CALLS, FAILED, call_error_share, invalid_share, latency, low_share, steps_with, unknown_share
from .series import SERVICE, label
from .tables import Column, dashboard_link, figures_table, jaeger_link
from .targets import legend, over_time
from .thresholds import CALL_ERRORS, INVALID_SHARE, LOW_CONFIDENCE, LOW_SHARE, SLOW_STEP, Limits
from .variables import LABEL, MODEL, STEP, business_label, kind, model, of_calls, service

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-overview"
_ALERTS: Final = f'count by (alertname, {SERVICE}) (ALERTS{{alertstate="firing"}})'
_ERROR: Final = label(semconv.ERROR_TYPE)
_FAILED: Final = select(CALLS, *of_calls(), FAILED)
_LOW: Final = f"{LOW_CONFIDENCE.wrong:g}"


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Overview",
        "Whether reasoning is well: traffic, validity, confidence, latency, errors and cost, by service and over time.",
        [service(), model(), kind(), *business_label()],
        [
            ("Is quality well?", _figures()),
            ("Are objectives kept?", objective_figures()),
            ("Since when?", _courses()),
            ("Where?", _places()),
        ],
    )


def _figures() -> list[AnyPanel]:
    return [
        figure(
            "Firing alerts",
            "Alerts that fire now, of all services and of the stack itself. The other dashboards mark their times.",
            over_time(or_zero('count(ALERTS{alertstate="firing"})')),
            "none",
            bounds=Limits(1, 1),
            decimals=0,
            none="0",
        ),
        figure(
            "Steps",
            "Reasoning steps a minute, of the services, models and kinds that are chosen.",
            over_time(or_zero(f"60 * {total(per_second(steps_with('', LABEL)))}")),
            "none",
            decimals=1,
            none="0",
        ),
        figure(
            "Invalid",
            "Share of steps that a check found wrong, among all steps. 0 also when services report, but no steps.",
            over_time(invalid_share(LABEL)),
            "percentunit",
            bounds=INVALID_SHARE,
            decimals=2,
        ),
        figure(
            "Unknown",
            "Share of steps that no check could judge. They count as neither valid nor invalid.",
            over_time(unknown_share(LABEL)),
            "percentunit",
            decimals=1,
        ),
        figure(
            "Low confidence",
            f"Share of the steps with a confidence whose confidence is {_LOW} or below. Others do not count.",
            over_time(low_share()),
            "percentunit",
            bounds=LOW_SHARE,
            decimals=1,
            none="No confidence",
        ),
        figure(
            "Step latency, p95",
            "95 % of steps are at most this long. Durations that a slow reader of a stream made are left out.",
            over_time(latency(0.95)),
            "s",
            bounds=SLOW_STEP,
        ),
        figure(
            "Failed calls",
            "Share of calls of the API that ended with an error, after the SDK's own retries.",
            over_time(call_error_share()),
            "percentunit",
            bounds=CALL_ERRORS,
            decimals=2,
            none="No calls",
        ),
        figure(
            "Cost",
            "USD an hour at list prices. Models without a price are left out: see Tokens, cache and cost.",
            over_time(or_zero(f"3600 * ({cost.cost(*of_calls(), window=RATE, rate=True)})")),
            "currencyUSD",
            decimals=2,
            none="$0",
        ),
    ]


def _courses() -> list[AnyPanel]:
    verdicts = [
        over_time(or_zero(total(per_second(steps_with(verdict, LABEL)))), name)
        for verdict, name in (("true", "valid"), ("false", "invalid"), ("unknown", "unknown"))
    ]
    return [
        verdict_colours(
            graph("Steps by verdict", "Steps a second: valid, invalid, or not checked.", verdicts, "cps", stacked=True)
        ),
        graph(
            "Invalid share by service",
            "Share of invalid steps among all steps of a service. The dashed lines are where it is watched and wrong.",
            [over_time(invalid_share(LABEL, by=(SERVICE,)), legend(SERVICE))],
            "percentunit",
            bounds=INVALID_SHARE,
            decimals=2,
        ),
        graph(
            "Step latency by service, p95",
            "95 % of a service's steps are at most this long. A mark is one step: a click on it opens its trace.",
            [over_time(latency(0.95, by=(SERVICE,)), legend(SERVICE), exemplar=True)],
            "s",
            bounds=SLOW_STEP,
        ),
        graph(
            "Low-confidence share by service",
            f"Share of the steps with a confidence whose confidence is {_LOW} or below.",
            [over_time(low_share(by=(SERVICE,)), legend(SERVICE))],
            "percentunit",
            bounds=LOW_SHARE,
            decimals=1,
            none="No confidence in this time",
        ),
        graph(
            "Firing alerts by name",
            "Alerts that fired, of all services and of the stack itself; a line is there while the alert fires.",
            [over_time(or_zero_named(_ALERTS, "alertname", "none"), legend("alertname", SERVICE))],
            "none",
            decimals=0,
        ),
        graph(
            "Failed calls by error",
            "Calls a second that failed, in all and by the API's error type.",
            [
                over_time(or_zero(total(per_second(_FAILED))), "all"),
                over_time(or_zero_named(total(per_second(_FAILED), _ERROR), _ERROR, "none"), legend(_ERROR)),
            ],
            "cps",
        ),
        graph(
            "Cost by service",
            "USD an hour at list prices.",
            [over_time(f"3600 * ({cost.cost(*of_calls(), by=(SERVICE,), window=RATE, rate=True)})", legend(SERVICE))],
            "currencyUSD",
            stacked=True,
            decimals=2,
            width=24,
            none="No tokens in this time",
        ),
    ]


def _columns(by: tuple[str, ...]) -> list[Column]:
    return [
        Column("Steps", total(increase(steps_with("", LABEL)), *by), "none"),
        Column("Invalid", invalid_share(LABEL, by=by, window=RANGE), "percentunit", 2, INVALID_SHARE),
        Column("Unknown", unknown_share(LABEL, by=by, window=RANGE), "percentunit", 1),
        Column("Low confidence", low_share(by=by, window=RANGE), "percentunit", 1, LOW_SHARE),
        Column("Latency p95", latency(0.95, by=by, window=RANGE), "s", 2, SLOW_STEP),
        Column("Failed calls", call_error_share(by=by, window=RANGE), "percentunit", 2, CALL_ERRORS),
        Column("Cost", cost.cost(*of_calls(), by=by, window=RANGE), "currencyUSD", 2, none="unknown"),
    ]


def _places() -> list[AnyPanel]:
    return [
        step_heatmap(
            "Invalid share by step number",
            "Colour: share of invalid steps among the steps with that number in their agent run, from 0. An empty cell"
            " had no step. A mark is an invalid step: a click on it opens its trace.",
            over_time(invalid_share(LABEL, by=(STEP,)), legend(STEP), exemplar=True),
            "percentunit",
            low=0,
            high=1,
        ),
        figures_table(
            "Services",
            "Each service over the whole time range. The service leads to its reasoning steps and its traces.",
            {SERVICE: "Service"},
            _columns((SERVICE,)),
            sort="Invalid",
            links={
                "Service": [
                    dashboard_link("Reasoning steps", "claudescope-steps", service="Service"),
                    dashboard_link("Validity and confidence", "claudescope-quality", service="Service"),
                    jaeger_link("Traces with an invalid step", {semconv.STEP_VALID: "false"}),
                ]
            },
            width=24,
            height=8,
        ),
        figures_table(
            "Models",
            "Each model that was asked for, over the whole time range.",
            {MODEL: "Model"},
            _columns((MODEL,)),
            sort="Invalid",
            links={
                "Model": [
                    dashboard_link("Reasoning steps", "claudescope-steps", model="Model"),
                    dashboard_link("Tokens, cache and cost", "claudescope-cost", model="Model"),
                ]
            },
            width=24,
            height=8,
        ),
    ]
