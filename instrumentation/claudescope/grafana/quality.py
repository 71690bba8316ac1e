"""Validity and confidence: what fails, by check, reason, model and label; and whether a stated confidence holds."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from .board import AnyPanel, board
from .panels import bars, bucket_heatmap, figure, graph, verdict_colours
from .promql import RANGE, RATE, increase, mean, or_zero, or_zero_named, per_second, select, share, total
from .reasoning import CONFIDENCE, invalid_share, low_share, mean_confidence, steps_with, unknown_share
from .reliability import reliability
from .series import LABEL_PREFIX, label, series
from .tables import Column, figures_table, traces_table
from .targets import JaegerSearch, legend, now, over_time
from .thresholds import INVALID_SHARE, LOW_CONFIDENCE, LOW_SHARE
from .variables import KIND, LABEL, MODEL, business_label, kind, model, of_steps, service, traced_service

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-quality"
_FAILURES: Final = select(series(semconv.FAILURES), *of_steps())
_CHECK: Final = label(semconv.CHECK)
_REASON: Final = label(semconv.REASON)
_LABEL: Final = f"{LABEL_PREFIX}${{label}}"
_LOW: Final = f"{LOW_CONFIDENCE.wrong:g}"


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Validity and confidence",
        "What the checks found wrong, how sure the steps were, and whether that was right.",
        [service(), model(), kind(), *business_label(), traced_service()],
        [
            ("Verdicts", _verdicts()),
            ("What fails", _failures()),
            ("Confidence", _confidence()),
        ],
    )


def _verdicts() -> list[AnyPanel]:
    words = (("true", "valid"), ("false", "invalid"), ("unknown", "unknown"))
    return [
        figure(
            "Invalid steps",
            "Steps that a check found wrong, in the time range.",
            now(or_zero(total(increase(steps_with("false", LABEL))))),
            "none",
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Invalid",
            "Share of invalid steps among all steps, over the time range.",
            now(invalid_share(LABEL, window=RANGE)),
            "percentunit",
            bounds=INVALID_SHARE,
            decimals=2,
            width=4,
        ),
        figure(
            "Unknown",
            "Share of steps that no check could judge, over the time range. They count as neither valid nor invalid.",
            now(unknown_share(LABEL, window=RANGE)),
            "percentunit",
            decimals=1,
            width=4,
        ),
        figure(
            "Mean confidence",
            "Mean of the known confidences over the time range.",
            now(mean(CONFIDENCE, *of_steps(), window=RANGE)),
            "none",
            bounds=LOW_CONFIDENCE,
            decimals=3,
            width=4,
            none="No confidence",
        ),
        figure(
            "Low confidence",
            f"Share of the steps with a confidence whose confidence is {_LOW} or below, over the time range.",
            now(low_share(window=RANGE)),
            "percentunit",
            bounds=LOW_SHARE,
            decimals=1,
            width=4,
            none="No confidence",
        ),
        figure(
            "With a confidence",
            "Share of the steps whose confidence is known, over the time range.",
            now(share(total(increase(select(f"{CONFIDENCE}_count", *of_steps()))), total(increase(steps_with())))),
            "percentunit",
            decimals=1,
            width=4,
        ),
        verdict_colours(
            graph(
                "Share of verdicts",
                "Valid, invalid and not checked, of all steps. How much is unknown says how much the rest is worth.",
                [over_time(or_zero(total(per_second(steps_with(word, LABEL)))), name) for word, name in words],
                "cps",
                share=True,
            )
        ),
        graph(
            "Invalid share by model",
            "Share of invalid steps among all steps of a model. The dashed lines are where it is watched and wrong.",
            [over_time(invalid_share(LABEL, by=(MODEL,)), legend(MODEL))],
            "percentunit",
            bounds=INVALID_SHARE,
            decimals=2,
        ),
    ]


def _failures() -> list[AnyPanel]:
    by_label = total(increase(steps_with("false", LABEL)), _LABEL)
    return [
        graph(
            "Invalid steps by check",
            "Failures a minute by the check that found them. A step that fails two checks counts under each.",
            [
                over_time(or_zero(f"60 * {total(per_second(_FAILURES))}"), "all"),
                over_time(
                    or_zero_named(f"60 * {total(per_second(_FAILURES), _CHECK)}", _CHECK, "none"), legend(_CHECK)
                ),
            ],
            "none",
            decimals=1,
        ),
        figures_table(
            "Reasons",
            "Failures in the time range by kind of step, check and reason. The check leads to traces of such steps.",
            {KIND: "Kind", _CHECK: "Check", _REASON: "Reason"},
            [Column("Failures", f"topk(50, {total(increase(_FAILURES), KIND, _CHECK, _REASON)} > 0)", "none")],
            sort="Failures",
            height=8,
            none="No failure in this time",
        ),
        bars(
            "Invalid share by kind",
            "Share of invalid steps among all steps of a kind, over the time range.",
            now(invalid_share(LABEL, by=(KIND,), window=RANGE), legend(KIND)),
            "percentunit",
            bounds=INVALID_SHARE,
            decimals=2,
        ),
        bars(
            "Unknown share by kind",
            "Share of steps that no check could judge, by kind, over the time range.",
            now(unknown_share(LABEL, by=(KIND,), window=RANGE), legend(KIND)),
            "percentunit",
            decimals=1,
        ),
        bars(
            "Invalid steps by label $label",
            "Invalid steps in the time range by the value of the business label that is chosen above (the 20 highest);"
            " one bar without a name where none is chosen or an app has none.",
            now(f"topk(20, {by_label})", legend(_LABEL)),
            "none",
            decimals=0,
        ),
        traces_table(
            "Traces of $traced with an invalid step",
            "The newest such traces that Jaeger has; the step's attribute claudescope.step.validity.reason says why.",
            JaegerSearch("$traced", {semconv.STEP_VALID: "false"}),
            none="No such trace of this service in this time",
        ),
    ]


def _confidence() -> list[AnyPanel]:
    buckets = select(f"{CONFIDENCE}_bucket", *of_steps())
    return [
        bucket_heatmap(
            "Distribution of confidence",
            "How many steps had which confidence. A mark is one step: a click on it opens its trace.",
            over_time(total(increase(buckets, RATE), "le"), "{{le}}", exemplar=True, buckets=True),
            "none",
            width=12,
            height=9,
        ),
        reliability(),
        graph(
            "Mean confidence by model",
            "Mean of the known confidences. The dashed lines are where it is watched and low. A mark is a low one.",
            [over_time(mean_confidence(by=(MODEL,)), legend(MODEL), exemplar=True)],
            "none",
            bounds=LOW_CONFIDENCE,
            decimals=3,
            top=1,
            none="No confidence in this time",
        ),
        graph(
            "Low-confidence share by kind",
            f"Share of the steps with a confidence whose confidence is {_LOW} or below.",
            [over_time(low_share(by=(KIND,)), legend(KIND))],
            "percentunit",
            bounds=LOW_SHARE,
            decimals=1,
            none="No confidence in this time",
        ),
    ]
