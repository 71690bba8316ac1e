"""What can be seen of a query in PromQL without evaluating it: its window, its unit and its groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

__all__ = ["PLACEHOLDER", "Aggregation", "Examined", "QueryError", "Token", "Unit", "examine", "tokens"]

PLACEHOLDER: Final = "{{.window}}"
Unit = Literal["second", "window", "mixed"]

_TOKEN: Final = re.compile(
    r"""(?P<window>\{\{\.window\}\})
    |(?P<template>\{\{[^}]*\}\}|\{\{)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<comment>\#[^\n]*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:ms|[smhdwy]))+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<bracket>[()\[\]{}])
    |(?P<operator>==|!=|=~|!~|<=|>=|[-+*/%^=<>@:,$])
    |(?P<space>\s+)""",
    re.VERBOSE,
)
_CLOSES: Final = {")": "(", "]": "[", "}": "{"}
_PER_SECOND: Final = frozenset({"rate", "irate"})
_PER_WINDOW: Final = frozenset({"increase", "count_over_time", "changes", "resets"})
_SUMS: Final = frozenset({"sum"})
_AGGREGATORS: Final = frozenset(
    {"sum", "avg", "min", "max", "count", "stddev", "stdvar", "topk", "bottomk", "group", "quantile", "count_values"}
    | {"limitk", "limit_ratio"}
)
_SCALES: Final = frozenset("*/%^")


class QueryError(Exception):
    """A query that Prometheus would not read."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


class Token(NamedTuple):
    """A piece of a query."""

    kind: str
    text: str
    at: int
    """Where it begins."""


@dataclass(slots=True)
class Aggregation:
    """An aggregation that is inside of no other."""

    operator: str
    labels: frozenset[str] = frozenset()
    """Which it keeps."""
    known: bool = True
    """False where it says which labels it drops."""


@dataclass(slots=True)
class Examined:
    """What a query says."""

    windows: int
    """How often the placeholder is in it."""
    unit: Unit | None
    """What it counts; None where that cannot be seen."""
    reason: str
    """Why it cannot be seen."""
    aggregations: tuple[Aggregation, ...]

    @property
    def groups(self) -> frozenset[str] | None:
        """The labels that its result has, where all outer aggregations name the same ones."""
        sets = {aggregation.labels if aggregation.known else None for aggregation in self.aggregations}
        return next(iter(sets)) if len(sets) == 1 else None


def tokens(query: str) -> Iterator[Token]:
    """The pieces of a query without space and comments. Raises QueryError."""
    at = 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if match is None:
            if query[at] in "\"'`":
                raise QueryError("has a quotation mark that is never closed", f"Close it: {query[at : at + 20]}...")
            raise QueryError(f"has {query[at]!r}, which PromQL does not know", "Remove it, or put the text in quotes.")
        kind = str(match.lastgroup)
        if kind == "template":
            raise QueryError(f"has {match.group()}", f"The only placeholder is {PLACEHOLDER}.")
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), at)
        at = match.end()


def examine(query: str) -> Examined:
    """Reads a query. Raises QueryError for brackets that do not match and what PromQL does not know."""
    pieces = list(tokens(query))
    if not pieces:
        raise QueryError("holds no query", "Write a query in PromQL.")
    walk = _Walk(pieces)
    walk.run()
    unit, reason = walk.unit()
    return Examined(walk.windows, unit, reason, tuple(walk.outer))


class _Walk:
    def __init__(self, pieces: list[Token]) -> None:
        self.pieces = pieces
        self.opened: list[tuple[str, str]] = []
        """Brackets, and the function or aggregation before each."""
        self.windows = 0
        self.functions: set[str] = set()
        self.operators: set[str] = set()
        self.outer: list[Aggregation] = []
        self.nested: set[str] = set()

    def run(self) -> None:
        for at, piece in enumerate(self.pieces):
            if piece.kind == "bracket":
                self._bracket(at, piece.text)
            elif piece.kind == "window":
                self.windows += 1
                inside = bool(self.opened) and self.opened[-1][0] == "["
                self.functions.add(self._function() if inside else "")
            elif piece.kind == "name" and piece.text in _AGGREGATORS and not self._within_braces():
                self._aggregation(at, piece.text)
            elif piece.kind == "operator" and piece.text in _SCALES and not self._within_braces():
                self.operators.add(piece.text)
        if self.opened:
            bracket = self.opened[-1][0]
            raise QueryError(f"opens a {bracket} that it never closes", "Count its brackets.")

    def _bracket(self, at: int, bracket: str) -> None:
        if bracket not in _CLOSES:
            before = self.pieces[at - 1] if at else None
            name = before.text if before and before.kind == "name" else ""
            self.opened.append((bracket, name or self._labelled(at)))
        elif not self.opened or self.opened[-1][0] != _CLOSES[bracket]:
            raise QueryError(f"closes a {bracket} that it does not open", "Count its brackets.")
        else:
            self.opened.pop()

    def _within_braces(self) -> bool:
        return bool(self.opened) and self.opened[-1][0] in "{["

    def _function(self) -> str:
        """That a range is an argument of: what stands before the innermost parenthesis that has a name."""
        return next((name for bracket, name in reversed(self.opened) if bracket == "(" and name), "")

    def _labelled(self, at: int) -> str:
        """The aggregation of ``sum by (a, b) (``, seen from its second parenthesis."""
        if self.pieces[at].text != "(" or at < 3 or self.pieces[at - 1].text != ")":
            return ""
        start = self._matching(at - 1)
        if start >= 2 and self.pieces[start - 1].text in ("by", "without") and self.pieces[start - 2].kind == "name":
            return self.pieces[start - 2].text
        return ""

    def _matching(self, at: int, step: int = -1) -> int:
        """The bracket that belongs to the one at a position; the end where there is none."""
        depth = 0
        while 0 <= at < len(self.pieces):
            text = self.pieces[at].text if self.pieces[at].kind == "bracket" else ""
            depth += (text in _CLOSES) - (text in _CLOSES.values() if text else False)
            if depth == 0:
                break
            at += step
        return at

    def _aggregation(self, at: int, operator: str) -> None:
        following = self.pieces[at + 1].text if at + 1 < len(self.pieces) else ""
        if following not in ("(", "by", "without"):
            return  # a metric or a label that is called so
        if any(name in _AGGREGATORS for bracket, name in self.opened if bracket == "("):
            self.nested.add(operator)
            return
        clause = at + 1 if following != "(" else self._matching(at + 1, 1) + 1
        found = Aggregation(operator)
        if clause < len(self.pieces) and self.pieces[clause].text in ("by", "without"):
            end = self._matching(clause + 1, 1)
            labels = frozenset(p.text.strip("\"'") for p in self.pieces[clause + 2 : end] if p.text != ",")
            found = Aggregation(operator, labels, self.pieces[clause].text == "by")
        self.outer.append(found)

    def unit(self) -> tuple[Unit | None, str]:
        """What the query counts, or why that cannot be seen."""
        if scale := sorted(self.operators & _SCALES):
            return None, f"it has a {scale[0]}"
        used = {a.operator for a in self.outer} | self.nested
        if other := sorted(used - _SUMS):
            return None, f"it takes the {other[0]} and not the sum"
        units = {_unit(function) for function in self.functions}
        if None in units or not units:
            name = next((f for f in sorted(self.functions) if f and _unit(f) is None), "")
            return None, f"its window is in {name}()" if name else f"{PLACEHOLDER} is in no function's range"
        if len(units) > 1:
            return "mixed", "it mixes rate and increase"
        return next(iter(units)), ""


def _unit(function: str) -> Unit | None:
    return "second" if function in _PER_SECOND else "window" if function in _PER_WINDOW else None
