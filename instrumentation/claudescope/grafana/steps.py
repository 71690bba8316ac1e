"""Reasoning steps: latency, confidence and validity by step number, one chosen step, kinds, and the worst steps."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from .board import AnyPanel, board
from .panels import bucket_heatmap, graph, step_heatmap
from .promql import RANGE, RATE, increase, mean, or_zero, per_second, quantile, select, total
from .reasoning import CONFIDENCE, DURATION, MEASURED, invalid_share, latency, mean_confidence, steps_with
from .series import SERVICE, series
from .tables import Column, figures_table, jaeger_link, traces_table
from .targets import JaegerSearch, legend, over_time
from .thresholds import INVALID_SHARE, LOW_CONFIDENCE, SLOW_STEP
from .variables import (
    CHOSEN_STEP,
    KIND,
    LABEL,
    MODEL,
    STEP,
    STEP_LABELS,
    business_label,
    chosen_step,
    kind,
    model,
    of_calls,
    of_steps,
    service,
    traced_service,
)

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-steps"
_CHAINS: Final = series(semconv.CHAIN_STEPS)
_KEYS: Final = {SERVICE: "Service", MODEL: "Model", KIND: "Kind", STEP: "Step"}
_ROWS: Final = 30
_KIND_OF_ROW: Final = {semconv.STEP_KIND: "${__data.fields.Kind}"}
_NUMBER_OF_ROW: Final = {semconv.STEP_INDEX: "${__data.fields.Step}"}


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Reasoning steps",
        "Each step number of the agent runs over time: how long it took, how sure it was, whether it was right.",
        [service(), model(), kind(), *business_label(), chosen_step(), traced_service()],
        [
            ("By step number, over time", _by_number()),
            ("The chosen step number: $step", _chosen()),
            ("The worst steps, and their traces", _worst()),
            ("Kinds and chains", _kinds()),
        ],
    )


def _by_number() -> list[AnyPanel]:
    about = " A row is the number of a step in its agent run, from 0; an empty cell had no step."
    mark = " A mark is one step: a click on it opens its trace."
    return [
        step_heatmap(
            "Latency, p95",
            "Colour: 95 % of the steps are at most this long. Durations that a slow reader made are left out."
            + about
            + mark,
            over_time(latency(0.95, by=(STEP,)), legend(STEP), exemplar=True),
            "s",
            low=0,
        ),
        step_heatmap(
            "Mean confidence",
            "Colour: mean of the known confidences; the stronger, the lower."
            + about
            + f" A mark is a step of {LOW_CONFIDENCE.wrong:g} or below: a click on it opens its trace.",
            over_time(mean_confidence(by=(STEP,)), legend(STEP), exemplar=True),
            "none",
            low=0.3,
            high=1,
            worse_is_low=True,
        ),
        step_heatmap(
            "Invalid share",
            "Colour: share of invalid steps among all steps."
            + about
            + " A mark is an invalid step: a click on it opens its trace.",
            over_time(invalid_share(LABEL, by=(STEP,)), legend(STEP), exemplar=True),
            "percentunit",
            low=0,
            high=1,
            decimals=1,
        ),
    ]


def _chosen() -> list[AnyPanel]:
    levels = (0.5, 0.95, 0.99)
    buckets = select(f"{DURATION}_bucket", *of_steps(), MEASURED, CHOSEN_STEP)
    return [
        bucket_heatmap(
            "Latency distribution of step $step",
            "How many steps took how long, from the histogram's own buckets. A mark is one step: a click on it opens"
            " its trace. The step number is chosen above.",
            over_time(total(increase(buckets, RATE), "le"), "{{le}}", exemplar=True, buckets=True),
            "s",
        ),
        graph(
            "Latency of step $step",
            "Half, 95 % and 99 % of the chosen steps are at most this long.",
            [
                over_time(latency(level, CHOSEN_STEP), f"p{level * 100:g}", exemplar=level == levels[-1])
                for level in levels
            ],
            "s",
            bounds=SLOW_STEP,
            width=8,
            height=10,
        ),
    ]


def _worst() -> list[AnyPanel]:
    invalid = total(increase(steps_with("false", LABEL)), *STEP_LABELS)
    most = f"topk({_ROWS}, {invalid} > 0)"
    slowest = f"topk({_ROWS}, {latency(0.95, by=STEP_LABELS, window=RANGE)})"
    on = f"and on ({', '.join(STEP_LABELS)})"
    wrong = {semconv.STEP_VALID: "false"}
    this = _KIND_OF_ROW | _NUMBER_OF_ROW
    shares = f"({invalid_share(LABEL, by=STEP_LABELS, window=RANGE)}) {on} {most}"
    sure = f"({mean(CONFIDENCE, *of_steps(), by=STEP_LABELS, window=RANGE)}) {on} {most}"
    return [
        figures_table(
            "Most often invalid",
            f"The {_ROWS} kinds of steps with the most invalid ones in the time range. Kind and step lead to their"
            " traces in Jaeger.",
            _KEYS,
            [
                Column("Invalid", most, "none"),
                Column("Share", shares, "percentunit", 1, INVALID_SHARE),
                Column("Confidence", sure, "none", 2, LOW_CONFIDENCE),
            ],
            sort="Invalid",
            links={
                "Kind": [jaeger_link("Traces with an invalid step of this kind", _KIND_OF_ROW | wrong)],
                "Step": [jaeger_link("Traces in which this step (0 to 15) is invalid", this | wrong)],
            },
            none="No invalid step in this time",
        ),
        figures_table(
            "Slowest",
            f"The {_ROWS} kinds of steps with the highest p95 in the time range. Kind and step lead to their traces"
            " in Jaeger.",
            _KEYS,
            [
                Column("p95", slowest, "s", 2, SLOW_STEP),
                Column("p50", f"({latency(0.5, by=STEP_LABELS, window=RANGE)}) {on} {slowest}", "s", 2),
                Column("Steps", f"{total(increase(steps_with('')), *STEP_LABELS)} {on} {slowest}", "none"),
            ],
            sort="p95",
            links={
                "Kind": [jaeger_link("Traces with a slow span", _KIND_OF_ROW, slower=f"{SLOW_STEP.watch * 1000:g}ms")],
                "Step": [jaeger_link("Traces with this step (0 to 15)", this)],
            },
        ),
        traces_table(
            "Traces of $traced with an invalid step",
            "The newest such traces that Jaeger has; a click opens one. The service is chosen above.",
            JaegerSearch("$traced", wrong),
            none="No such trace of this service in this time",
        ),
    ]


def _kinds() -> list[AnyPanel]:
    lengths = ((0.5, "half"), (0.95, "95 %"), (1.0, "longest"))
    return [
        graph(
            "Steps by kind",
            "Steps a second by kind: thinking, text, tool_use, tool_run (a tool that the app ran), and so on.",
            [over_time(total(per_second(steps_with("", LABEL)), KIND), legend(KIND))],
            "cps",
            stacked=True,
            width=8,
        ),
        graph(
            "Latency by kind, p95",
            "95 % of the steps of a kind are at most this long. A tool_run lasts until the request with its result.",
            [over_time(latency(0.95, by=(KIND,)), legend(KIND), exemplar=True)],
            "s",
            bounds=SLOW_STEP,
            width=8,
        ),
        graph(
            "Length of chains",
            "Steps of an agent run when a call of it asks for no further tool; the longest is a bucket's upper bound.",
            [over_time(quantile(level, _CHAINS, *of_calls()), name) for level, name in lengths],
            "none",
            decimals=0,
            width=8,
            none="No run ended in this time",
        ),
        graph(
            "Deepest steps",
            "Steps a minute with the number 16 or more: very long runs, or loops.",
            [over_time(or_zero(f"60 * {total(per_second(steps_with('', LABEL, _DEEP)))}"), "16 and more")],
            "none",
            width=24,
            height=6,
        ),
    ]


_DEEP: Final = f'{STEP}="{semconv.index_label(semconv.INDEX_CAP)}"'
