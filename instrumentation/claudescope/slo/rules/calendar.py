"""The begin of a calendar period, and what has happened since, as PromQL. All of it is UTC."""

from __future__ import annotations

from typing import Final

from ..window import CalendarPeriod, Window

__all__ = ["HOUR", "days_expression", "hour_expression", "start_expression", "within"]

HOUR: Final = Window(3600)
"""Hours are what is summed: each whole one has a count of its events, so that each moment counts once."""

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


def hour_expression() -> str:
    """Unix time of the last whole hour."""
    return f"vector(time()) - vector(time()) % {HOUR.seconds}"


def within(series: str, moment: str, span: object, step: object) -> str:
    """The values of ``series`` at every ``step`` of the last ``span`` that is after ``moment``, a recorded unix time.

    A range has a fixed length, so it is the longest that the period can be. ``@ end()`` is the time of the evaluation
    also inside the range, where ``time()`` is that of each value. The value at the moment itself is of the time before.
    """
    return f"({series} and on () (vector(time()) > on () {moment} @ end()))[{span}:{step}]"
