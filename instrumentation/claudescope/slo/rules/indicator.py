"""What an objective counts, as recording rules: events and shares of every window, never NaN.

Windows up to an hour are read from the counters themselves. Longer ones are sums over the recorded five-minute rates:
each rate weighs by its traffic, a pause adds nothing, and a sum is cheap. Such a sum is 2m15s late, which a window of
hours does not feel and one of an hour does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...errors import UsageError
from ..objective import BadAndTotal, Indicator, LoadBound, Objective, Ratio
from ..tiers import FROM_COUNTERS, INTERVAL, SHORTEST
from ..window import CalendarPeriod, Period, Window
from . import series
from .calendar import HOUR, within
from .promql import over_window, total_by
from .queries import UnfitError, bad_and_total
from .rule import Recording

__all__ = ["PERIOD_INTERVAL", "counted", "queries_of", "windows"]

PERIOD_INTERVAL: Final = 120
"""Seconds between evaluations of a period's sums, which read 86,400 samples a series; over 5 minutes it would leave
gaps.
"""


def windows(objective: Objective) -> list[Window]:
    """The windows of the tiers, ascending, 5m always among them, without the period's."""
    wanted = {SHORTEST} | {window for tier in objective.tiers for window in (tier.short, tier.long)}
    wanted.discard(objective.period)
    if isinstance(objective.period, CalendarPeriod):
        wanted.add(HOUR)
    return sorted(wanted)


def queries_of(objective: Objective, more: Sequence[str] = ()) -> BadAndTotal:
    """Sums by group, with the labels ``more`` besides. Raises UsageError for what no query can say."""
    source, by = objective.source, (*objective.group_by, *more)
    assert not isinstance(source, Ratio)
    if isinstance(source, Indicator):
        try:
            return bad_and_total(source, by)
        except UnfitError as error:
            raise UsageError(
                f"{objective.origin.path}:{objective.origin.line}: {objective.name}: {error}", error.fix
            ) from None
    return BadAndTotal(total_by(by, source.bad), total_by(by, source.total), source.per)


def counted(objective: Objective, window: Period) -> list[Recording]:
    """The records of one window; of the shortest the event rates too, which others are sums of."""
    if isinstance(objective.source, Ratio):
        return _shares(objective, objective.source, window)
    records = []
    if window == SHORTEST:
        records += _rates(objective)
        share = f"{series.bad_rate(objective)} / {series.total_rate(objective)}"
    else:
        records += _events(objective, window)
        share = f"{series.bad_events(objective, window)} / {series.total_events(objective, window)}"
    return [*records, _record(objective, f"slo:sli_error:ratio_rate{window}", share, window)]


def _record(objective: Objective, name: str, expr: str, window: Period | None = None) -> Recording:
    labels = {**objective.labels, **series.identity(objective)}
    if window is not None and "sloth_id" in labels:
        labels["sloth_window"] = str(window)
    return Recording(name, expr, labels)


def _rates(objective: Objective) -> list[Recording]:
    queries = queries_of(objective)
    seconds = f" / {SHORTEST.seconds}" if queries.per == "window" else ""
    total = f"{over_window(queries.total, str(SHORTEST))}{seconds} > 0"
    bad = f"({over_window(queries.bad, str(SHORTEST))}){seconds}"
    return [
        _record(objective, "slo:sli_total:rate5m", total),
        _record(objective, "slo:sli_bad:rate5m", _or_none(objective, bad, series.total_rate(objective))),
    ]


def _events(objective: Objective, window: Period) -> list[Recording]:
    names = f"slo:sli_total:events{window}", f"slo:sli_bad:events{window}"
    if isinstance(window, Window) and window <= FROM_COUNTERS and not _by_load(objective):
        queries = queries_of(objective)
        times = "" if queries.per == "window" else f" * {window.seconds}"
        total = f"{over_window(queries.total, str(window))}{times} > 0"
        bad = f"({over_window(queries.bad, str(window))}){times}"
        bad = _or_none(objective, bad, series.total_events(objective, window))
        return [_record(objective, name, expr) for name, expr in zip(names, (total, bad), strict=True)]
    if isinstance(window, CalendarPeriod):
        totals = series.total_events(objective, HOUR), series.total_rate(objective)
        bads = series.bad_events(objective, HOUR), series.bad_rate(objective)
        sums = [_since_start(objective, *parts, window) for parts in (totals, bads)]
    else:
        rates = series.total_rate(objective), series.bad_rate(objective)
        sums = [f"{INTERVAL} * sum_over_time({rate}[{window}])" for rate in rates]
    # aggregated, so that a label that the specification had yesterday makes no second series of the same name
    sums = [total_by(objective.group_by, expr) for expr in sums]
    return [_record(objective, name, expr) for name, expr in zip(names, sums, strict=True)]


def _since_start(objective: Objective, of_an_hour: str, rate: str, period: CalendarPeriod) -> str:
    """The whole hours since the period began, and the five-minute rates since the last whole hour."""
    start, hour = (series.of(objective, f"slo:period:{name}_seconds") for name in ("start", "hour"))
    hours = f"sum_over_time({within(of_an_hour, start, Window(period.seconds), HOUR)})"
    minutes = f"{SHORTEST.seconds} * sum_over_time({within(rate, hour, HOUR, SHORTEST)})"
    # told apart, or the second would be dropped for the first
    named = (f'label_replace({expr}, "part", "{part}", "", "")' for part, expr in (("hours", hours), ("rest", minutes)))
    return "\nor\n".join(named)


def _or_none(objective: Objective, bad: str, total: str) -> str:
    """No series of what fails is no failure. But a bucket that is not there is no success: with a bound, bad is there
    whenever total is, and else the absence alert says so.
    """
    if isinstance(objective.source, Indicator) and objective.source.bound is not None:
        return bad
    return f"{bad}\nor\n0 * {total_by(objective.group_by, total)}"


def _by_load(objective: Objective) -> tuple[LoadBound, ...]:
    """Bounds that change with the load are judged every five minutes, at the load that then was."""
    return objective.source.loads if isinstance(objective.source, Indicator) else ()


def _shares(objective: Objective, source: Ratio, window: Period) -> list[Recording]:
    """A share that comes as a share: the period's is a mean of shares, whatever the traffic was."""
    name = f"slo:sli_error:ratio_rate{window}"
    if isinstance(window, CalendarPeriod):
        start = series.of(objective, "slo:period:start_seconds")
        hours = within(series.error_ratio(objective, HOUR), start, Window(window.seconds), HOUR)
        expr = f"avg_over_time({hours})"
    elif window == objective.period:
        expr = f"avg_over_time({series.error_ratio(objective, SHORTEST)}[{window}])"
    else:
        # no traffic divides 0 by 0; what is no number is not at least 0
        expr = f"(\n{over_window(source.expression, str(window))}\n) >= 0"
    return [_record(objective, name, expr, window)]
