"""Tools and agents: how long tools take, which fail, how many round trips a run makes, and runs that loop."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from .board import AnyPanel, board
from .panels import bucket_heatmap, figure, graph
from .promql import RANGE, RATE, increase, or_zero, per_second, quantile, select, share, total, within
from .reasoning import STEPS, VALID
from .series import label, series
from .tables import Column, figures_table, traces_table
from .targets import JaegerSearch, legend, now, over_time
from .thresholds import SLOW_STEP, TOOL_ERRORS, Limits
from .variables import (
    BY_SERVICE,
    KIND,
    LABEL,
    STEP,
    business_label,
    model,
    of_calls,
    service,
    traced_service,
)

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-tools"
_TOOL: Final = label(semconv.TOOL_NAME)
_DURATION: Final = series(semconv.TOOL_DURATION)
_CHAINS: Final = series(semconv.CHAIN_STEPS)
_LONG: Final = 34
"""Steps over which a run may be a loop; a boundary of the histogram."""


def _steps(kind: str, *matchers: str) -> str:
    return select(STEPS, *of_calls(), f'{KIND}="{kind}"', LABEL, *matchers)


_RUNS: Final = _steps("tool_run")
_FAILED: Final = _steps("tool_run", f'{VALID}="false"')
_WRONG: Final = _steps("tool_use", f'{VALID}="false"')


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Tools and agents",
        "The tools that apps run for Claude, and the agent runs that use them.",
        [service(), model(), *business_label(), traced_service()],
        [("Tools", _tools()), ("Agent runs", _runs())],
    )


def _failing(by: tuple[str, ...], window: str) -> str:
    return share(total(per_second(_FAILED, window), *by), total(per_second(_RUNS, window), *by))


def _wrongly_asked(by: tuple[str, ...], window: str) -> str:
    return share(total(per_second(_WRONG, window), *by), total(per_second(_steps("tool_use"), window), *by))


def _tools() -> list[AnyPanel]:
    of_tool = (_TOOL,)
    return [
        figure(
            "Tool runs",
            "Tools that apps ran, in the time range.",
            now(or_zero(total(increase(_RUNS)))),
            "none",
            decimals=0,
            width=6,
            none="0",
        ),
        figure(
            "Failed",
            "Share of tool runs whose result said that it is an error, over the time range.",
            now(_failing((), RANGE)),
            "percentunit",
            bounds=TOOL_ERRORS,
            decimals=1,
            width=6,
            none="No tool",
        ),
        figure(
            "Wrongly asked for",
            "Share of tool uses whose name or input does not fit the tools of the request, over the time range.",
            now(_wrongly_asked((), RANGE)),
            "percentunit",
            bounds=TOOL_ERRORS,
            decimals=1,
            width=6,
            none="No tool",
        ),
        figure(
            "Tool latency, p95",
            "95 % of tool runs are at most this long, over the time range: from the end of the block that asked until"
            " the request with the result.",
            now(quantile(0.95, _DURATION, BY_SERVICE, window=RANGE)),
            "s",
            bounds=SLOW_STEP,
            width=6,
            none="No tool",
        ),
        graph(
            "Tool latency by tool, p95",
            "95 % of the runs of a tool are at most this long. A mark is one run: a click on it opens its trace.",
            [over_time(quantile(0.95, _DURATION, BY_SERVICE, by=of_tool), legend(_TOOL), exemplar=True)],
            "s",
            bounds=SLOW_STEP,
            none="No tool was run in this time",
        ),
        graph(
            "Failed share by tool",
            "Share of the runs of a tool whose result said that it is an error.",
            [over_time(_failing(of_tool, RATE), legend(_TOOL))],
            "percentunit",
            bounds=TOOL_ERRORS,
            decimals=1,
            none="No tool was run in this time",
        ),
        figures_table(
            "Tools",
            "Each tool over the whole time range (the first 50 names of an app; the rest is `other`).",
            {_TOOL: "Tool"},
            [
                Column("Runs", total(increase(_RUNS), *of_tool), "none"),
                Column("Failed", _failing(of_tool, RANGE), "percentunit", 1, TOOL_ERRORS),
                Column("Wrongly asked for", _wrongly_asked(of_tool, RANGE), "percentunit", 1, TOOL_ERRORS),
                Column("p50", quantile(0.5, _DURATION, BY_SERVICE, by=of_tool, window=RANGE), "s", 2),
                Column("p95", quantile(0.95, _DURATION, BY_SERVICE, by=of_tool, window=RANGE), "s", 2, SLOW_STEP),
            ],
            sort="Runs",
            height=9,
            none="No tool was run in this time",
        ),
        traces_table(
            "Traces of $traced with a failed tool",
            "The newest such traces that Jaeger has; a click opens one. The service is chosen above.",
            JaegerSearch("$traced", {semconv.STEP_KIND: "tool_run", semconv.STEP_VALID: "false"}),
            width=12,
            none="No such trace of this service in this time",
        ),
    ]


def _runs() -> list[AnyPanel]:
    ended = total(per_second(select(f"{_CHAINS}_count", *of_calls())))
    long = within(_CHAINS, _LONG, *of_calls())
    return [
        graph(
            "Runs that end",
            "Agent runs a minute of which a call asked for no further tool.",
            [over_time(or_zero(f"60 * {ended}"), "runs")],
            "none",
            width=8,
            decimals=1,
        ),
        graph(
            "Tool runs for each agent run",
            "Mean number of tools that were run for an agent run that ended: its round trips.",
            [over_time(f"{total(per_second(_RUNS))} / ({ended} > 0)", "tool runs")],
            "none",
            width=8,
            decimals=1,
            none="No run ended in this time",
        ),
        graph(
            f"Runs of more than {_LONG} steps",
            f"Share of the agent runs that had more than {_LONG} steps when they ended: very long runs, or loops.",
            [over_time(f"1 - ({long})", f"over {_LONG} steps")],
            "percentunit",
            bounds=Limits(0.01, 0.05),
            width=8,
            decimals=1,
            none="No run ended in this time",
        ),
        bucket_heatmap(
            "Length of runs",
            "How many agent runs had how many steps, from the histogram's own buckets.",
            over_time(total(increase(select(f"{_CHAINS}_bucket", *of_calls()), RATE), "le"), "{{le}}", buckets=True),
            "none",
            what="runs",
            width=12,
            height=9,
        ),
        graph(
            "Steps by number in their run",
            "Steps a minute by the number that they have in their agent run: a tail that grows is a loop.",
            [over_time(f"60 * {total(per_second(select(STEPS, *of_calls(), LABEL)), STEP)}", f"step {legend(STEP)}")],
            "none",
            stacked=True,
            height=9,
        ),
    ]
