"""Queries without a window of ours, as OpenSLO has them, to queries with one."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from .query import PLACEHOLDER, QueryError, Token, examine, tokens

__all__ = ["windowed"]

_KEYWORDS: Final = frozenset({"sum", "by", "without"})
_HOW: Final = (
    f"Write a range with {PLACEHOLDER}: rate(metric[{PLACEHOLDER}]); or `counter: true` for metrics that only grow,"
    " alone or in sum()."
)


def windowed(query: str, counter: bool) -> str:
    """The query with ``{{.window}}`` in its ranges.

    Where it has it already, as it is; literal ranges (``[5m]``, all the same) are replaced; where ``counter`` is true,
    selectors outside of a range and only added up get ``rate``. Raises QueryError for anything else.
    """
    if examine(query).windows:
        return query
    pieces = list(tokens(query))
    ranges = [
        number
        for bracket, number in pairwise(pieces)
        if bracket.text == "[" and bracket.kind == "bracket" and number.kind == "number"
    ]
    if ranges:
        return _replaced(query, ranges)
    if not counter:
        raise QueryError("has no window", _HOW)
    return _rated(query, pieces)


def _replaced(query: str, ranges: list[Token]) -> str:
    lengths = sorted({piece.text for piece in ranges})
    if len(lengths) > 1:
        raise QueryError(
            f"has ranges of {' and '.join(lengths)}", f"Write {PLACEHOLDER} in those that are the window's."
        )
    for piece in reversed(ranges):
        query = query[: piece.at] + PLACEHOLDER + query[piece.at + len(piece.text) :]
    return query


def _rated(query: str, pieces: list[Token]) -> str:
    """Of counters that are only added and subtracted, the rate is the rates' sum."""
    ends: list[tuple[int, int]] = []
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        following = pieces[at + 1].text if at + 1 < len(pieces) else ""
        if piece.text in ("by", "without") and following == "(":
            while pieces[at].text != ")":
                at += 1
        elif piece.kind == "name" and piece.text not in _KEYWORDS:
            if following == "(":
                raise QueryError(f"is a counter's, and has {piece.text}()", _HOW)
            end = at
            if following == "{":
                while pieces[end].text != "}" or pieces[end].kind != "bracket":
                    end += 1
            ends.append((piece.at, pieces[end].at + len(pieces[end].text)))
            at = end
        elif piece.text not in ("sum", "(", ")", "+", "-"):
            raise QueryError(f"is a counter's, and has {piece.text}", _HOW)
        at += 1
    if not ends:
        raise QueryError("names no metric", _HOW)
    for start, end in reversed(ends):
        query = f"{query[:start]}rate({query[start:end]}[{PLACEHOLDER}]){query[end:]}"
    return query if re.search(r"\bsum\b", query) else f"sum({query})"
