"""Series that a plain query counts: a sum of a rate of one selector, for both what is bad and what is counted.

It is for tests, which play such series. Whatever is not that plain, or wants a value that nothing here guesses, has
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ..objective import BadAndTotal
from .promql import WINDOW

__all__ = ["Labelled", "labelled"]

_PLAIN: Final = re.compile(
    r"(?:sum\s*(?:by\s*\([\w\s,]*\)\s*)?\(\s*)?(?:rate|increase)\s*\(\s*([a-zA-Z_:][\w:]*)\s*(\{.*\})?\s*"
    + re.escape(f"[{WINDOW}]")
    + r"\s*\)\s*\)?(?:\s*by\s*\([\w\s,]*\))?",
    re.DOTALL,
)
_MATCHER: Final = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_USUAL: Final = (
    "",
    "x",
    "200",
    "404",
    "500",
    "503",
    "GET",
    "POST",
    "true",
    "false",
    "ok",
    "error",
    "/",
    "/x",
    "a",
    "1",
)
_ESCAPE: Final = re.compile(r"\\(.)")


class Labelled(NamedTuple):
    """A series by name and labels, and whether good and whether bad events count in it."""

    name: str
    labels: Mapping[str, str]
    good: bool
    bad: bool


class _Matcher(NamedTuple):
    label: str
    operator: str
    value: str

    def takes(self, value: str) -> bool:
        """As Prometheus does: a pattern is for the whole value, and a label that is not there is empty."""
        if self.operator in ("=", "!="):
            return (value == self.value) == (self.operator == "=")
        return bool(re.fullmatch(self.value, value)) == (self.operator == "=~")


def labelled(queries: BadAndTotal, given: Mapping[str, str]) -> list[Labelled] | None:
    """Series with the labels ``given`` and what the queries want besides; None for queries that are not plain."""
    bad, total = _selector(queries.bad), _selector(queries.total)
    if bad is None or total is None:
        return None
    try:
        failing = _fitting(given, (*total[1], *(bad[1] if bad[0] == total[0] else ())))
        if bad[0] != total[0]:
            counted = _fitting(given, bad[1])
            if failing is None or counted is None:
                return None
            return [Labelled(total[0], failing, True, True), Labelled(bad[0], counted, False, True)]
        good = _beside(given, total[1], bad[1])
    except re.error:  # a pattern of Go's that Python does not know
        return None
    if failing is None or good is None:
        return None
    return [Labelled(total[0], good, True, False), Labelled(total[0], failing, False, True)]


def _selector(query: str) -> tuple[str, tuple[_Matcher, ...]] | None:
    found = _PLAIN.fullmatch(query.strip())
    if found is None:
        return None
    text, matchers, at = (found[2] or "{}")[1:-1].strip(), [], 0
    while at < len(text):
        matcher = _MATCHER.match(text, at)
        if matcher is None:
            return None
        value = _ESCAPE.sub(lambda escaped: escaped[1], matcher[3])
        matchers.append(_Matcher(matcher[1], matcher[2], value))
        at = matcher.end()
    return found[1], tuple(matchers)


def _fitting(given: Mapping[str, str], matchers: Iterable[_Matcher]) -> dict[str, str] | None:
    """Labels that all matchers take."""
    labels, wanted = dict(given), list(matchers)
    for label in {matcher.label: None for matcher in wanted}:
        own = [matcher for matcher in wanted if matcher.label == label]
        value = next((text for text in _candidates(labels, own) if all(each.takes(text) for each in own)), None)
        if value is None:
            return None
        labels[label] = value
    return {label: value for label, value in labels.items() if value}


def _beside(given: Mapping[str, str], total: tuple[_Matcher, ...], bad: tuple[_Matcher, ...]) -> dict[str, str] | None:
    """Labels that ``total`` takes and ``bad`` does not: one of its matchers is turned round."""
    turned = {"=": "!=", "!=": "=", "=~": "!~", "!~": "=~"}
    for matcher in bad:
        against = matcher._replace(operator=turned[matcher.operator])
        if (labels := _fitting(given, (*total, against))) is not None:
            return labels
    return None


def _candidates(labels: Mapping[str, str], matchers: Iterable[_Matcher]) -> Iterable[str]:
    for matcher in matchers:
        if matcher.label in labels:
            yield labels[matcher.label]
        if matcher.operator in ("=", "!="):
            yield matcher.value
            continue
        for part in matcher.value.strip("^$()").split("|"):
            yield re.sub(r"\[(.)[^\]]*\]", r"\1", part.strip("()").replace(".*", "").replace(".+", "x")).replace(
                ".", "0"
            )
    yield from _USUAL
