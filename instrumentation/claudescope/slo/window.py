"""Spans of time, as Prometheus spells them, and the period that a budget is for."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

__all__ = ["CalendarPeriod", "Period", "Window", "parse_window"]

_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Window(NamedTuple):
    """A rolling span of time in whole seconds."""

    seconds: int

    def __str__(self) -> str:
        """In the largest unit that leaves no rest but weeks: ``5m``, ``1h``, ``3d``, ``90m``."""
        for unit in "dhm":
            if self.seconds and self.seconds % _UNITS[unit] == 0:
                return f"{self.seconds // _UNITS[unit]}{unit}"
        return f"{self.seconds}s"


class CalendarPeriod(NamedTuple):
    """A period that begins anew with each calendar unit, in UTC; a week begins on Monday."""

    unit: Literal["week", "month", "quarter"]

    @property
    def seconds(self) -> int:
        """Of the longest one: 7, 31 or 92 days."""
        return {"week": 7, "month": 31, "quarter": 92}[self.unit] * 86_400

    def __str__(self) -> str:
        return self.unit


Period = Window | CalendarPeriod


def parse_window(text: str) -> Window:
    """A duration as Prometheus spells it (``1h30m``). Raises ValueError for anything else, and for no time at all."""
    match = _DURATION.fullmatch(text)
    seconds = sum(int(n or 0) * unit for n, unit in zip(match.groups(), _UNITS.values(), strict=True)) if match else 0
    if not seconds:
        raise ValueError(f"{text!r} is not a duration: write 5m, 1h, 1h30m or 3d")
    return Window(seconds)
