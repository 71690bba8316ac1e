"""Types of spans of time: ``800ms``, ``5m``, ``1h30m``, ``30d``; and the periods of the calendar."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from ..window import CalendarPeriod, Period, Window
from .document import Scalar
from .numbers import NUMBER
from .scalars import scalar_of, wrong

__all__ = ["Moment", "PeriodText", "PositiveWindow", "Seconds", "WindowOrNever", "rolling_period"]

_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Z]+)\s*", re.ASCII)
_DURATION: Final = re.compile(r"(?:(?:\d+(?:\.\d+)?|\.\d+)(?:ms|s|m|h|d|w))+", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WORDS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_MOST_SECONDS: Final = 10 * 366 * 86_400


def _duration(value: Any, example: str) -> float:
    """Seconds."""
    scalar = scalar_of(value, example)
    text = scalar.text
    if _DURATION.fullmatch(text):
        parts = _PART.findall(text)
        units = [_UNITS[unit] for _, unit in parts]
        seconds = round(sum(float(number) * _UNITS[unit] for number, unit in parts), 6)
        if seconds > _MOST_SECONDS:
            raise wrong(f"is {text}", "That is over ten years.")
        if units == sorted(set(units), reverse=True):
            return float(seconds)
        raise wrong(f"is {text!r}", f"Write the larger unit first and each once: {_spelled(seconds)}.")
    if NUMBER.fullmatch(text) and float(text) >= 0:
        if float(text) == 0:
            return 0.0
        number = text.lstrip("+")
        meant = ("ms", "s") if example.endswith("ms") else ("d",) if example.endswith("d") else ("m", "h")
        raise wrong(f"is {text}, without a unit", f"Write {' or '.join(number + unit for unit in meant)}.")
    parts = _PART.findall(text)
    known = [_WORDS.get(unit.lower() if len(unit) > 1 or unit in "SHDW" else unit) for _, unit in parts]
    if parts and _PART.sub("", text) == "" and all(known):
        seconds = sum(float(n) * _UNITS[unit] for (n, _), unit in zip(parts, known, strict=True) if unit)
        raise wrong(f"is {text!r}", f"Write {_spelled(seconds)}.")
    if re.fullmatch(r"[0-9]+M", text):
        raise wrong(f"is {text!r}", f"Write {text[:-1]}m for minutes, or days for months: 30d.")
    if match := re.fullmatch(r"([0-9]{1,6}) ?(y|Y|years?)", text):
        raise wrong(f"is {text!r}", f"Write days: {365 * int(match[1])}d.")
    raise wrong(f"is {text!r}, which is no duration", f"Write {example}: units are ms, s, m, h, d and w.")


def _spelled(seconds: float) -> str:
    if seconds < 1 or seconds != int(seconds):
        return f"{seconds * 1000:.10g}ms"
    return str(Window(int(seconds)))


def _seconds(value: Any) -> float:
    seconds = _duration(value, "800ms")
    if seconds <= 0:
        raise wrong("is no time at all", "Write 800ms or 2s.")
    return seconds


def _whole_seconds(value: Any, example: str) -> Window:
    seconds = _duration(value, example)
    if seconds != int(seconds):
        raise wrong(f"is {scalar_of(value, example).text}", f"It is in whole seconds: write {example}.")
    return Window(int(seconds))


def _window(value: Any) -> Window:
    window = _whole_seconds(value, "1h")
    if not window.seconds:
        raise wrong("is no time at all", "Write 5m, 1h or 3d.")
    return window


def _moment(value: Any) -> Window:
    return _whole_seconds(value, "2m")


def _never(value: Any) -> Window | None:
    if isinstance(value, Scalar) and value.text.lower() in ("never", "off", "false", "no"):
        return None
    return _window(value)


def rolling_period(value: Any) -> Window:
    """A period in days that rolls."""
    scalar = scalar_of(value, "30d")
    window = _whole_seconds(scalar, "30d")
    if not 86_400 <= window.seconds <= 366 * 86_400:
        raise wrong(f"is {scalar.text}", "It is from 1d to 366d, such as 30d.")
    return window


_CALENDAR: Final = {
    "week": "week", "weekly": "week", "month": "month", "monthly": "month", "quarter": "quarter", "quarterly": "quarter"
}  # fmt: skip


def _period(value: Any) -> Period:
    scalar = scalar_of(value, "30d")
    word = scalar.text.lower().removeprefix("calendar ").strip()
    if scalar.text in ("week", "month", "quarter"):
        return CalendarPeriod(scalar.text)  # type: ignore[arg-type]  # one of the three
    if word in _CALENDAR:
        raise wrong(f"is {scalar.text!r}", f"Write {_CALENDAR[word]}.")
    if match := re.fullmatch(r"1?([MQ])", scalar.text):
        unit = {"M": "month", "Q": "quarter"}[match[1]]
        raise wrong(
            f"is {scalar.text!r}", f"Write {unit}, or days for one that rolls: {'30d' if unit == 'month' else '90d'}."
        )
    if word in ("year", "yearly", "day", "daily"):
        raise wrong(f"is {scalar.text!r}", "Write week, month, quarter or days: 30d.")
    return rolling_period(scalar)


_SCHEMA: Final = {"type": "string", "pattern": r"^((\d+(\.\d+)?|\.\d+)(ms|s|m|h|d|w))+$"}

Seconds = Annotated[float, PlainValidator(_seconds), WithJsonSchema({**_SCHEMA, "examples": ["800ms"]})]
PositiveWindow = Annotated[Window, PlainValidator(_window), WithJsonSchema({**_SCHEMA, "examples": ["5m", "1h", "3d"]})]
Moment = Annotated[
    Window, PlainValidator(_moment), WithJsonSchema({"anyOf": [{**_SCHEMA, "examples": ["2m"]}, {"const": 0}]})
]
WindowOrNever = Annotated[
    Window | None, PlainValidator(_never), WithJsonSchema({"anyOf": [_SCHEMA, {"enum": ["never", False]}]})
]
PeriodText = Annotated[
    Period,
    PlainValidator(_period),
    WithJsonSchema({"anyOf": [{"enum": ["week", "month", "quarter"]}, {**_SCHEMA, "examples": ["30d"]}]}),
]
