"""The short forms as PromQL on claudescope's own metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ... import semconv
from ...semconv import Metric
from ...semconv.prometheus import SERVICE_LABEL, prometheus_label, prometheus_series
from ..objective import BadAndTotal, Indicator, Measure
from .promql import WINDOW, among, equal, number, selector, total_by

__all__ = ["UnfitError", "bad_and_total", "bounds_of", "dimensions", "needed_setting"]

_RESOURCE: Final = (SERVICE_LABEL, "service_version", "deployment_environment_name", "job", "instance")
_VALID: Final = prometheus_label(semconv.STEP_VALID)
_KIND: Final = prometheus_label(semconv.STEP_KIND)
_SOURCE: Final = prometheus_label(semconv.STEP_LATENCY_SOURCE)
_BUSINESS: Final = prometheus_label(semconv.LABEL_PREFIX)


class UnfitError(ValueError):
    """No query can say what the indicator wants; ``fix`` is what to write instead."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


class _Bounded(NamedTuple):
    """A measure with a bound: the histogram that holds it, and the counter that an app adds when it is told to."""

    histogram: Metric
    counter: Metric | None = None
    setting: str = ""
    unit: str = ""
    below: bool = False
    """Whether what is below the bound is bad."""


_BOUNDED: Final[dict[Measure, _Bounded]] = {
    "step_confidence": _Bounded(
        semconv.STEP_CONFIDENCE_METRIC, semconv.STEP_BELOW, "CLAUDESCOPE_CONFIDENCE_BOUNDS", below=True
    ),
    "step_latency": _Bounded(semconv.STEP_DURATION, semconv.STEP_OVER, "CLAUDESCOPE_STEP_BOUNDS", "s"),
    "time_to_first_chunk": _Bounded(semconv.FIRST_CHUNK, unit="s"),
    "saturation": _Bounded(semconv.RATELIMIT_USED),
}
_COUNTED: Final[dict[Measure, Metric]] = {
    "step_validity": semconv.STEPS,
    "tool_success": semconv.STEPS,
    "errors": semconv.CALLS,
}
_VERDICTS: Final = {
    "exclude": (("false",), ("true", "false")),
    "bad": (("false", "unknown"), ()),
    "good": (("false",), ()),
}
"""What is bad and what is counted, by what a step is that nobody could check; () is all."""


def bad_and_total(indicator: Indicator, group_by: Sequence[str] = ()) -> BadAndTotal:
    """Rates of bad events and of all, 1/s, summed by ``group_by``; ``{{.window}}`` stands for their window.

    Raises UnfitError for a bound that nothing counts, and for a label that the measure's metric does not have.
    """
    if indicator.measure in _COUNTED:
        return _counted(indicator, group_by)
    bounded, counter = _BOUNDED[indicator.measure], _read_from_counter(indicator, group_by)
    metric = bounded.counter if counter and bounded.counter else bounded.histogram
    matchers = _matchers(indicator, metric, group_by)
    read = _native if indicator.native else _over if counter else _bucket
    if not indicator.native and not counter:
        _check_boundaries(indicator, bounded)
    if metric is semconv.STEP_DURATION:
        matchers = (*matchers, f'{_SOURCE}!="consumer"')
    first, *others = bounds_of(indicator)
    total, bad = read(bounded, metric, matchers, first, group_by)
    for above, bound in zip([load.above for load in indicator.loads], others, strict=True):
        _, at_load = read(bounded, metric, matchers, bound, group_by)
        bad = f"({at_load} and {total} > {number(above)}) or {bad}"
    return BadAndTotal(bad, total)


def bounds_of(indicator: Indicator) -> tuple[float, ...]:
    """The bound, and those at higher loads; nothing for a measure without one."""
    if indicator.bound is None:
        return ()
    return (indicator.bound, *(load.bound for load in indicator.loads))


def needed_setting(indicator: Indicator, group_by: Sequence[str] = ()) -> str:
    """What an app must be started with for the indicator to have data: ``CLAUDESCOPE_STEP_BOUNDS=1.2s``; mostly
    nothing.
    """
    if indicator.measure not in _BOUNDED or not _read_from_counter(indicator, group_by):
        return ""
    bounded = _BOUNDED[indicator.measure]
    bounds = sorted({semconv.bound_label(bound) + bounded.unit for bound in bounds_of(indicator)})
    return f"{bounded.setting}={','.join(bounds)}"


def dimensions(indicator: Indicator) -> tuple[str, ...]:
    """The labels of the indicator's metric by which events may be told apart, besides business labels: model, kind,
    step number, tool.
    """
    metric = _COUNTED.get(indicator.measure) or _BOUNDED[indicator.measure].histogram
    told = (semconv.REQUEST_MODEL, semconv.STEP_KIND, semconv.STEP_INDEX, semconv.TOOL_NAME)
    return (SERVICE_LABEL, *(prometheus_label(name) for name in told if name in metric.attributes))


def _counted(indicator: Indicator, group_by: Sequence[str]) -> BadAndTotal:
    metric = _COUNTED[indicator.measure]
    matchers = _matchers(indicator, metric, group_by)
    bad: tuple[str, ...]
    if metric is semconv.CALLS:
        matchers = (equal(prometheus_label(semconv.OPERATION_NAME), "chat"), *matchers)
        bad = (*matchers, f'{prometheus_label(semconv.ERROR_TYPE)}!~"|cancelled"')
        return BadAndTotal(_rate(metric, "", bad, group_by), _rate(metric, "", matchers, group_by))
    unknown = indicator.unknown
    if indicator.measure == "tool_success":
        if indicator.where.kind:
            raise UnfitError("tool_success counts the runs of tools, which are steps of one kind.", "Leave `kind` out.")
        matchers, unknown = (equal(_KIND, "tool_run"), *matchers), "exclude"
    failing, counted = _VERDICTS[unknown]
    bad, total = (*among(_VALID, failing), *matchers), (*among(_VALID, counted), *matchers)
    return BadAndTotal(_rate(metric, "", bad, group_by), _rate(metric, "", total, group_by))


def _read_from_counter(indicator: Indicator, group_by: Sequence[str]) -> bool:
    """Whether a bound is no boundary of the histogram, or a label is asked for that only the counter has."""
    bounded = _BOUNDED[indicator.measure]
    if bounded.counter is None or indicator.native:
        return False
    if any(bound not in bounded.histogram.boundaries for bound in bounds_of(indicator)):
        return True
    return bool(_missing(indicator, bounded.histogram, group_by))


def _check_boundaries(indicator: Indicator, bounded: _Bounded) -> None:
    boundaries = bounded.histogram.boundaries
    for bound in bounds_of(indicator):
        if bound in boundaries:
            continue
        near = sorted(sorted(boundaries, key=lambda boundary: abs(boundary - bound))[:2])
        raise UnfitError(
            f"{bound:g}{bounded.unit} is no bucket boundary of {bounded.histogram.name}, so nothing counts what is"
            " beyond it.",
            f"Take {' or '.join(f'{boundary:g}{bounded.unit}' for boundary in near)}, or write `native: true` where"
            " the apps send exponential histograms to a Prometheus 3.",
        )


def _missing(indicator: Indicator, metric: Metric, group_by: Iterable[str]) -> list[str]:
    """Labels that are asked for and that ``metric`` has not, though others of our metrics have."""
    where = indicator.where
    fields = {
        semconv.REQUEST_MODEL: where.model,
        semconv.STEP_KIND: where.kind,
        semconv.TOOL_NAME: where.tool,
        semconv.STEP_INDEX: where.index,
        semconv.LABEL: where.labels,
    }
    missing = [prometheus_label(name) for name, values in fields.items() if values and name not in metric.attributes]
    business = semconv.LABEL in metric.attributes
    has = {prometheus_label(name) for name in metric.attributes} | set(_RESOURCE)
    ours = {prometheus_label(name) for other in semconv.METRICS.values() for name in other.attributes}
    missing += [label for label in group_by if label in ours - has or (label.startswith(_BUSINESS) and not business)]
    return missing


def _matchers(indicator: Indicator, metric: Metric, group_by: Sequence[str]) -> tuple[str, ...]:
    if missing := _missing(indicator, metric, group_by):
        label = missing[0].removesuffix("KEY")
        raise UnfitError(
            f"{indicator.measure} cannot be told apart by {label}: {metric.name} has no such label.",
            f"It has {', '.join(dimensions(indicator))}.",
        )
    where = indicator.where
    found = [
        *among(SERVICE_LABEL, where.service),
        *among(prometheus_label(semconv.REQUEST_MODEL), where.model),
        *among(_KIND, where.kind),
        *among(prometheus_label(semconv.TOOL_NAME), where.tool),
        *among(prometheus_label(semconv.STEP_INDEX), where.index),
    ]
    for key, values in where.labels:
        found += among(prometheus_label(semconv.LABEL_PREFIX + key), values)
    return tuple(found)


def _rate(metric: Metric, suffix: str, matchers: Iterable[str], group_by: Sequence[str]) -> str:
    series = selector(prometheus_series(metric) + suffix, *matchers)
    return total_by(group_by, f"rate({series}[{WINDOW}])")


def _bucket(
    bounded: _Bounded, metric: Metric, matchers: tuple[str, ...], bound: float, group_by: Sequence[str]
) -> tuple[str, str]:
    # a whole bound is "1" to an older Prometheus, and "1.0" to Prometheus 3
    le = f'le=~"{bound:g}([.]0)?"' if bound == int(bound) else f'le="{bound:g}"'
    total = _rate(metric, "_count", matchers, group_by)
    upto = _rate(metric, "_bucket", (le, *matchers), group_by)
    # a rate is extrapolated by each series' own value, so that the difference of two may be a little below 0
    return total, upto if bounded.below else f"clamp_min({total} - {upto}, 0)"


def _over(
    bounded: _Bounded, metric: Metric, matchers: tuple[str, ...], bound: float, group_by: Sequence[str]
) -> tuple[str, str]:
    matchers = (equal(prometheus_label(semconv.STEP_BOUND), semconv.bound_label(bound)), *matchers)
    beyond = equal(prometheus_label(semconv.STEP_BEYOND), "true")
    return _rate(metric, "", matchers, group_by), _rate(metric, "", (beyond, *matchers), group_by)


def _native(
    bounded: _Bounded, metric: Metric, matchers: tuple[str, ...], bound: float, group_by: Sequence[str]
) -> tuple[str, str]:
    rates = _rate(metric, "", matchers, group_by)
    total = f"histogram_count({rates})"
    span = f"-Inf, {number(bound)}" if bounded.below else f"{number(bound)}, +Inf"
    # the fraction of nothing is not a number, and no number is at least 0
    return total, f"(histogram_fraction({span}, {rates}) * {total} >= 0)"
