"""PromQL text in the few forms that the rules use."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["WINDOW", "among", "equal", "number", "over_window", "quoted", "selector", "total_by"]

WINDOW = "{{.window}}"
"""What stands in a query where its window goes."""
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def number(value: float) -> str:
    """To ten digits, which leaves off what binary fractions add: 1 - .99 is ``0.01``."""
    return format(value, ".10g")


def quoted(text: str) -> str:
    """A string literal. What some parser on the way may take for the end of a line is escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in escaped) + '"'


def equal(label: str, value: str) -> str:
    """A matcher of one value."""
    return f"{label}={quoted(value)}"


def among(label: str, values: Iterable[str]) -> tuple[str, ...]:
    """A matcher of some values, none for none."""
    given = tuple(values)
    if len(given) < 2:
        return tuple(equal(label, value) for value in given)
    return (f"{label}=~{quoted('|'.join(_SPECIAL.sub(lambda found: chr(92) + found[0], value) for value in given))}",)


def selector(name: str, *matchers: str) -> str:
    """``name{matcher, ...}``."""
    return f"{name}{{{', '.join(matchers)}}}" if matchers else name


def total_by(labels: Iterable[str], expression: str) -> str:
    """The sum, by labels where some are given. A query of a person is put on lines of its own: it may end in a
    comment.
    """
    by = ", ".join(labels)
    inner = f"(\n{expression}\n)" if "\n" in expression or "#" in expression else f"({expression})"
    return f"sum by ({by}) {inner}" if by else f"sum{inner}"


def over_window(expression: str, window: str) -> str:
    """The query over ``window``."""
    return expression.replace(WINDOW, window)
