"""How the value of a setting is read: each parser takes what stands in a flag, a variable or a TOML file.

A parser raises ValueError with the words for what it takes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

__all__ = [
    "boolean",
    "choice",
    "command",
    "duration",
    "latencies",
    "names",
    "number",
    "path",
    "paths",
    "shares",
    "size",
    "text",
    "url",
    "whole",
]


def boolean(value: object) -> bool:
    """True for ``true 1 yes on``, False for ``false 0 no off`` and the empty string."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off", ""):
        return False
    raise ValueError("true or false")


def choice(*words: str) -> Callable[[object], str]:
    """One of ``words``, in any case."""

    def parse(value: object) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(" or ".join(filter(None, words)))
        return word

    return parse


def number(low: float, high: float = float("inf")) -> Callable[[object], float]:
    """A finite number from ``low`` to ``high``."""

    def parse(value: object) -> float:
        span = f"a number from {low:g} to {high:g}" if high != float("inf") else f"a number of at least {low:g}"
        try:
            parsed = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(span) from None
        if isinstance(value, bool) or not low <= parsed <= high or parsed == float("inf"):
            raise ValueError(span)
        return parsed

    return parse


def whole(low: int, high: int | None = None) -> Callable[[object], int]:
    """A whole number from ``low`` to ``high``."""
    span = f"of at least {low}" if high is None else f"from {low} to {high}"

    def parse(value: object) -> int:
        try:
            parsed = int(str(value))
        except ValueError:
            raise ValueError(f"a whole number {span}") from None
        if parsed < low or (high is not None and parsed > high):
            raise ValueError(f"a whole number {span}")
        return parsed

    return parse


_UNITS: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size(value: object) -> int:
    """Bytes: a number with B, KB, MB, GB, KiB, MiB or GiB; a bare number is bytes."""
    text = str(value).strip()
    digits = text.rstrip("BKMGIbkmgi ")
    unit = text[len(digits) :].strip().upper()
    try:
        parsed = float(digits) * _UNITS[unit]
    except (ValueError, KeyError):
        raise ValueError("a size such as 64MiB") from None
    if not 0 < parsed < float("inf"):
        raise ValueError("a size above 0, such as 64MiB")
    return int(parsed)


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration(value: object) -> float:
    """Seconds: a number with s, m, h or d; a bare number is seconds."""
    text = str(value).strip().lower()
    unit = _SECONDS.get(text[-1:], 1)
    try:
        parsed = float(text[:-1] if text[-1:] in _SECONDS else text) * unit
    except ValueError:
        raise ValueError("a duration such as 7d, 12h, 30m or 90s") from None
    if not 0 < parsed < float("inf"):
        raise ValueError("a duration above 0, such as 7d, 12h, 30m or 90s")
    return parsed


def url(value: object) -> str:
    """The address of a web server, without a slash at its end, or the empty string."""
    text = str(value).strip().rstrip("/")
    try:
        parts = urlsplit(text)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
    if text and (not named or not text.isprintable() or set(text) & set(" \"'<>\\")):
        raise ValueError("an address such as http://127.0.0.1:16686")
    return text


def names(limit: int) -> Callable[[object], tuple[str, ...]]:
    """Up to ``limit`` names, from a list or separated by commas."""

    def parse(value: object) -> tuple[str, ...]:
        items = value if isinstance(value, (list, tuple)) else str(value).split(",")
        found = tuple(dict.fromkeys(str(item).strip() for item in items if str(item).strip()))
        if len(found) > limit:
            raise ValueError(f"at most {limit} names separated by commas")
        return found

    return parse


def path(value: object) -> Path | None:
    """A path with ``~`` expanded, or None for the empty string."""
    text = str(value).strip()
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError:
        raise ValueError("a path in a home folder that there is") from None


def paths(value: object) -> tuple[Path, ...]:
    """Paths with ``~`` expanded, from a list or separated by commas."""
    return tuple(dict.fromkeys(found for item in _items(value) if (found := path(item)) is not None))


def command(value: object) -> str:
    """A command line without a shell's signs: words, in quotes where they hold blanks."""
    line = str(value).strip()
    try:
        shlex.split(line)
    except ValueError:
        raise ValueError("a command whose quotes are closed, such as notify-send 'an SLO'") from None
    return line


def text(value: object) -> str:
    """Any text."""
    return str(value)


_LATENCY: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60)}
_LONGEST: Final = 86_400


def latencies(limit: int) -> Callable[[object], tuple[float, ...]]:
    """Up to ``limit`` different times in seconds, growing: numbers with ms, s or m; a bare number is seconds."""
    takes = f"at most {limit} times above 0 s and up to 1 day, separated by commas, such as 350ms,1.2s"

    def parse(value: object) -> tuple[float, ...]:
        found: set[float] = set()
        for item in _items(value):
            digits = item.rstrip("msMS")
            unit = _LATENCY.get(item[len(digits) :].lower() or "s")
            seconds = None if unit is None else _decimal(digits)
            if unit is None or seconds is None or not 0 < seconds * unit <= _LONGEST:
                raise ValueError(f"{takes}; {item!r} is none")
            found.add(float(seconds * unit))
        if len(found) > limit:
            raise ValueError(f"{takes}; these are {len(found)}")
        return tuple(sorted(found))

    return parse


def shares(limit: int) -> Callable[[object], tuple[float, ...]]:
    """Up to ``limit`` different numbers above 0 and at most 1, growing."""
    takes = f"at most {limit} numbers above 0 and up to 1, separated by commas, such as 0.6,0.75"

    def parse(value: object) -> tuple[float, ...]:
        found: set[float] = set()
        for item in _items(value):
            share = _decimal(item)
            if share is None or not 0 < share <= 1:
                raise ValueError(f"{takes}; {item!r} is none")
            found.add(float(share))
        if len(found) > limit:
            raise ValueError(f"{takes}; these are {len(found)}")
        return tuple(sorted(found))

    return parse


def _items(value: object) -> list[str]:
    items = value if isinstance(value, (list, tuple)) else str(value).split(",")
    return [word for item in items if (word := str(item).strip())]


def _decimal(word: str) -> Decimal | None:
    """A finite number of a size that is neither 0 nor infinite as a float; None for anything else."""
    try:
        number = Decimal(word.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 20 else None
