"""The figures about steps that several dashboards show: the same question has the same query everywhere."""

from __future__ import annotations

from typing import Final

from .. import semconv
from .promql import RATE, mean, per_second, quantile, select, share, total, within
from .series import label, series
from .thresholds import LOW_CONFIDENCE
from .variables import of_calls, of_steps

__all__ = [
    "CALLS",
    "CONFIDENCE",
    "DURATION",
    "FAILED",
    "MEASURED",
    "STEPS",
    "VALID",
    "call_error_share",
    "invalid_share",
    "latency",
    "low_share",
    "mean_confidence",
    "steps_with",
    "unknown_share",
]

STEPS: Final = series(semconv.STEPS)
DURATION: Final = series(semconv.STEP_DURATION)
CONFIDENCE: Final = series(semconv.STEP_CONFIDENCE_METRIC)
CALLS: Final = series(semconv.CALLS)
VALID: Final = label(semconv.STEP_VALID)
MEASURED: Final = f'{label(semconv.STEP_LATENCY_SOURCE)}!="consumer"'
"""Leaves out durations that are mostly the app's own time between its reads of a stream."""
FAILED: Final = f'{label(semconv.ERROR_TYPE)}!~"|cancelled"'
"""Matches calls that failed; those that the app itself has cancelled did not."""


def steps_with(verdict: str = "", *matchers: str) -> str:
    """Selector of steps with a verdict: true, false or unknown; any for none."""
    return select(STEPS, *of_steps(), *matchers, f'{VALID}="{verdict}"' if verdict else "")


def _verdict_share(verdict: str, by: tuple[str, ...], matchers: tuple[str, ...], window: str) -> str:
    part, whole = (total(per_second(steps_with(word, *matchers), window), *by) for word in (verdict, ""))
    return share(part, whole)


def invalid_share(*matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of steps that a check found wrong, among all."""
    return _verdict_share("false", by, matchers, window)


def unknown_share(*matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of steps that no check could judge."""
    return _verdict_share("unknown", by, matchers, window)


def low_share(*matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of the steps with a confidence whose confidence is low."""
    return within(CONFIDENCE, LOW_CONFIDENCE.wrong, *of_steps(), *matchers, by=by, window=window)


def mean_confidence(*, by: tuple[str, ...] = ()) -> str:
    """Mean of the known confidences. Its exemplars are the steps whose confidence is low.

    Exemplars are on a histogram's buckets, which a mean does not read: so nothing of the low ones is added.
    """
    low = "|".join(f"{bound:g}" for bound in semconv.STEP_CONFIDENCE_METRIC.boundaries if bound <= LOW_CONFIDENCE.wrong)
    buckets = select(f"{CONFIDENCE}_bucket", *of_steps(), f'le=~"{low}"')
    return f"{mean(CONFIDENCE, *of_steps(), by=by)} + 0 * {total(per_second(buckets), *by)}"


def latency(level: float, *matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Quantile of the durations of steps, seconds."""
    return quantile(level, DURATION, *of_steps(), MEASURED, *matchers, by=by, window=window)


def call_error_share(by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of calls of the API that failed."""
    failed, every = (total(per_second(select(CALLS, *of_calls(), matcher), window), *by) for matcher in (FAILED, ""))
    return share(failed, every)
