"""The begin of a calendar period, and what has happened since, as PromQL. All of it is UTC."""

from __future__ import annotations

from typing import Final

from ..window import CalendarPeriod

__all__ = ["STEP", "days_expression", "since_start", "start_expression"]

STEP: Final = 300
"""Seconds between the rates that are summed: the window of a rate, so that each moment counts once."""

# 1 in a leap year; the functions without an argument are about the time of the evaluation
_LEAP: Final = "((year() % 4 ==bool 0) - (year() % 100 ==bool 0) + (year() % 400 ==bool 0))"
_DAYS_SINCE: Final = {
    "week": "(day_of_week() + 6) % 7",
    "month": "day_of_month() - 1",
    "quarter": (
        f"day_of_year() - 1 - (month() >bool 3) * (90 + {_LEAP}) - (month() >bool 6) * 91 - (month() >bool 9) * 92"
    ),
}
_DAYS: Final = {
    "week": "vector(7)",
    "month": "days_in_month()",
    "quarter": f"(month() <=bool 3) * (90 + {_LEAP}) + (month() >bool 3) * 91 + (month() >bool 6)",
}


def start_expression(period: CalendarPeriod) -> str:
    """Unix time of the period's first moment."""
    return f"(vector(time()) - vector(time()) % 86400) - 86400 * ({_DAYS_SINCE[period.unit]})"


def days_expression(period: CalendarPeriod) -> str:
    """Days of the period that is now: 28 to 31 of a month, 90 to 92 of a quarter."""
    return _DAYS[period.unit]


def since_start(rate: str, start: str, period: CalendarPeriod) -> str:
    """Events since the period began, from the series ``rate`` (1/s over 5 minutes) and the recorded series ``start``.

    A range has a fixed length, so it is the longest that the period can be, and of its rates those count that are of a
    time after the begin. ``@ end()`` is the time of the evaluation also inside the range, where ``time()`` is that of
    each rate. The rate at the begin itself is of the five minutes before.
    """
    after = f"on () (vector(time()) > on () {start} @ end())"
    return f"{STEP} * sum_over_time(({rate} and {after})[{period.seconds // 86_400}d:{STEP}s])"
