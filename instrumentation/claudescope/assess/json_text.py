"""JSON as text: why it does not parse, and where in it a value stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..steps.opaque import Span

__all__ = ["Broken", "parsed", "value_span"]

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


class Broken(NamedTuple):
    """Why a text is not JSON: ``truncated`` if more of it could make it so, else ``malformed``; from where on."""

    code: str
    start: int
    end: int


def parsed(text: str) -> tuple[Any, Broken | None]:
    """The value, or why there is none. Raises RecursionError for absurdly deep nesting."""
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        return None, Broken("truncated" if _cut_short(error, text) else "malformed", error.pos, len(text))


def _cut_short(error: json.JSONDecodeError, text: str) -> bool:
    rest = text[error.pos : error.pos + 12].rstrip()
    return (
        not text[error.pos :].strip()
        or error.msg.startswith("Unterminated string")
        or (error.msg.startswith("Invalid \\u") and error.pos + 5 >= len(text))
        or (error.msg == "Expecting value" and any(word.startswith(rest) for word in ("true", "false", "null", "-")))
    )


def value_span(text: str, path: Sequence[str | int]) -> Span:
    """Start and end of the value at ``path`` in a text that is JSON; the whole text where the path leads nowhere."""
    start, end = 0, len(text)
    try:
        at = _skip(text, 0)
        for key in path:
            at = _child(text, at, key)
        _, end = _DECODER.raw_decode(text, at)
        start = at
    except (ValueError, IndexError, RecursionError):
        return (0, len(text))
    return (start, end)


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _child(text: str, at: int, key: str | int) -> int:
    """Where the child of the value at ``at`` starts. Of equal names the last counts, as in ``json``."""
    opener, found, number = text[at], -1, 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        name: str | int = number
        if opener == "{":
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        if name == key:
            found = at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        number += 1
    if found < 0:
        raise ValueError(key)
    return found
