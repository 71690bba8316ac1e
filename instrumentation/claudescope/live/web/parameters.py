"""Query parameters of the API: each has a parser, and a bad or unknown one is an error that names it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final

__all__ = [
    "LIMIT_DEFAULT",
    "LIMIT_MAX",
    "ParameterError",
    "choice",
    "cursor",
    "hex_id",
    "limit",
    "moment",
    "parse",
    "text",
    "verdict",
    "whole",
]

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
_MAX_MS: Final = 253_402_300_799_999  # the last millisecond of the year 9999
_RFC3339: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)

Parser = Callable[[str], Any]


class ParameterError(ValueError):
    """A bad query parameter: its name and what it takes."""

    def __init__(self, name: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message
        self.fix = fix


def moment(value: str) -> int:
    """Milliseconds since the epoch, from RFC 3339 or from milliseconds."""
    wants = "a time as RFC 3339 (2026-01-31T12:00:00Z) or milliseconds since the epoch"
    if value.isascii() and value.isdigit():
        if len(value) <= 15 and int(value) <= _MAX_MS:
            return int(value)
        raise ValueError(wants)
    match = _RFC3339.fullmatch(value.replace(" ", "+") if "T" in value.upper() else value)
    if match is None:
        raise ValueError(wants)
    day, clock, fraction, zone = match.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}")
        elapsed = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        raise ValueError(wants) from None
    return (elapsed.days * 86400 + elapsed.seconds) * 1000 + int((fraction or "0").ljust(3, "0")[:3])


def whole(low: int, high: int) -> Parser:
    """A whole number from ``low`` to ``high``."""

    def read(value: str) -> int:
        if value.isascii() and value.isdigit() and len(value) <= 18 and low <= int(value) <= high:
            return int(value)
        raise ValueError(f"a whole number from {low} to {high}")

    return read


limit: Final = whole(1, LIMIT_MAX)


def text(value: str) -> str:
    """Some text of at most 256 characters."""
    if not 0 < len(value) <= 256:
        raise ValueError("1 to 256 characters")
    return value


def choice(*words: str) -> Parser:
    """One of ``words``."""

    def read(value: str) -> str:
        if value not in words:
            raise ValueError(" or ".join(words))
        return value

    return read


def verdict(value: str) -> str:
    """``true``, ``false`` or ``unknown``."""
    return str(choice("true", "false", "unknown")(value))


def hex_id(digits: int) -> Parser:
    """An id of so many hex digits, as bytes."""

    def read(value: str) -> bytes:
        if len(value) == digits and re.fullmatch("[0-9a-fA-F]+", value):
            return bytes.fromhex(value)
        raise ValueError(f"{digits} hex digits")

    return read


def cursor(value: str) -> tuple[int, int]:
    """Where a list goes on: the ``next`` of the page before."""
    at, dot, row = value.partition(".")
    if dot and all(part.isascii() and part.isdigit() and len(part) <= 18 for part in (at, row)):
        return int(at), int(row)
    raise ValueError("the `next` of the page before")


def parse(given: Mapping[str, str], parsers: Mapping[str, Parser]) -> dict[str, Any]:
    """The parsed parameters that were given. Raises ParameterError."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        read = parsers.get(name)
        if read is None:
            close = difflib.get_close_matches(name[:64], parsers, n=1, cutoff=0)
            raise ParameterError(name[:64], f"{name[:64]!r} is not a parameter.", f"Did you mean {close[0]}?")
        try:
            found[name] = read(value)
        except ValueError as error:
            raise ParameterError(name, f"{name} is {value[:64]!r}.", f"It takes {error}.") from None
    return found
