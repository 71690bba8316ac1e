"""Kinds of values that a query parameter takes: how each is read from text, and how OpenAPI says it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final

__all__ = ["MAX_MS", "Kind", "choice", "hex_id", "moment", "pair", "share", "text", "whole"]

MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_RFC3339: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_NUMBER: Final = re.compile(r"-?\d{1,40}(\.\d{1,400})?([eE][+-]?\d{1,4})?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MAX_TEXT: Final = 256


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. ``read`` gives it from text, or raises ValueError that says what it takes; ``schema`` is its
    JSON schema, as the text is written in an address.
    """

    read: Callable[[str], Any]
    schema: dict[str, Any] = field(hash=False)


def _moment(value: str) -> int:
    wants = "a time as RFC 3339 (2026-01-31T12:00:00Z) or milliseconds since the epoch"
    if value.isascii() and value.isdigit():
        if len(value) <= 15 and int(value) <= MAX_MS:
            return int(value)
        raise ValueError(wants)
    # the plus sign of an offset is a blank in an address, where it was not escaped
    match = _RFC3339.fullmatch(value.replace(" ", "+") if "T" in value.upper() else value)
    if match is None:
        raise ValueError(wants)
    day, clock, fraction, zone = match.groups()
    try:
        elapsed = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}") - _EPOCH
    except (ValueError, OverflowError):
        raise ValueError(wants) from None
    return (elapsed.days * 86400 + elapsed.seconds) * 1000 + int((fraction or "0").ljust(3, "0")[:3])


moment: Final = Kind(
    _moment,
    {
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": MAX_MS, "description": "Milliseconds since the epoch."},
            {"type": "string", "format": "date-time"},
        ]
    },
)
"""A time, as milliseconds since the epoch."""


def whole(low: int, high: int, otherwise: str = "") -> Kind:
    """A whole number from ``low`` to ``high``; ``otherwise`` says more to who gives another."""

    def read(value: str) -> int:
        if value.isascii() and value.isdigit() and len(value) <= 18 and low <= int(value) <= high:
            return int(value)
        raise ValueError(f"a whole number from {low} to {high}{otherwise}")

    return Kind(read, {"type": "integer", "minimum": low, "maximum": high})


def _share(value: str) -> float:
    number = float(value) if _NUMBER.fullmatch(value) else math.nan
    if 0 <= number <= 1:
        return number
    raise ValueError("a number from 0 to 1")


share: Final = Kind(_share, {"type": "number", "minimum": 0, "maximum": 1})
"""A number from 0 to 1."""


def _text(value: str) -> str:
    if not 0 < len(value) <= _MAX_TEXT:
        raise ValueError(f"1 to {_MAX_TEXT} characters")
    return value


text: Final = Kind(_text, {"type": "string", "minLength": 1, "maxLength": _MAX_TEXT})
"""Some text, as it is written."""


def choice(*words: str, gives: Callable[[str], Any] = str) -> Kind:
    """One of ``words``; ``gives`` makes the value of it."""

    def read(value: str) -> Any:
        if value not in words:
            raise ValueError(f"{', '.join(words[:-1])} or {words[-1]}")
        return gives(value)

    return Kind(read, {"type": "string", "enum": list(words)})


def hex_id(digits: int) -> Kind:
    """An id of so many hex digits, as bytes."""

    def read(value: str) -> bytes:
        if len(value) == digits and re.fullmatch("[0-9a-fA-F]+", value):
            return bytes.fromhex(value)
        raise ValueError(f"{digits} hex digits")

    return Kind(read, {"type": "string", "pattern": f"^[0-9a-fA-F]{{{digits}}}$"})


def _pair(value: str) -> tuple[str, str]:
    key, colon, rest = value.partition(":")
    if not colon or not 0 < len(key) <= _MAX_TEXT or len(rest) > _MAX_TEXT:
        raise ValueError("KEY:VALUE, such as team:billing")
    return key, rest


pair: Final = Kind(_pair, {"type": "string", "pattern": "^[^:]{1,256}:.{0,256}$"})
"""``KEY:VALUE`` as two texts; the value may hold colons."""
