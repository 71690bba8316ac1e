"""Query parameters of the API. The tables here are what the handlers read and what OpenAPI tells, so both are the same.

A bad, unknown or repeated parameter is an error that names it and what it takes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ... import semconv
from ..filters import StepFilter
from ..store.select import read_cursor
from .values import Kind, choice, moment, pair, share, text, whole

__all__ = ["FILTER", "LIMIT_DEFAULT", "PAGE", "PERIOD", "Parameter", "ParameterError", "parse", "read_filter"]

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
_MAX_LATENCY_US: Final = 10**15
_MAX_SHOWN: Final = 64
"""Characters of a bad value that an error says again."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: the kind of its value, what it asks for, and whether several are alternatives."""

    kind: Kind
    text: str
    many: bool = False


class ParameterError(ValueError):
    """A bad query parameter: its name, what is wrong and what it takes."""

    def __init__(self, name: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message
        self.fix = fix


PERIOD: Final[dict[str, Parameter]] = {
    "from": Parameter(moment, "From this time on (RFC 3339 or milliseconds)."),
    "to": Parameter(moment, "Before this time (RFC 3339 or milliseconds)."),
}
PAGE: Final[dict[str, Parameter]] = {
    "limit": Parameter(whole(1, LIMIT_MAX), f"At most so many items; {LIMIT_DEFAULT} unless given."),
    "cursor": Parameter(Kind(read_cursor, text.schema), "`next` of the page before."),
    "order": Parameter(choice("asc", "desc"), "Ascending or descending; `desc` unless given."),
}

_VERDICTS: Final = {"true": True, "false": False, "unknown": None}
_CAP: Final = semconv.INDEX_CAP
_BOOLEAN: Final = choice("true", "false", gives=lambda word: word == "true")
_LATENCY: Final = whole(0, _MAX_LATENCY_US)

FILTER: Final[dict[str, Parameter]] = {
    "service": Parameter(text, "Service.", many=True),
    "model": Parameter(text, "Model asked for.", many=True),
    "kind": Parameter(text, "Kind of step.", many=True),
    "tool": Parameter(text, "Tool of the step.", many=True),
    "check": Parameter(text, "The check that failed first: of invalid steps only.", many=True),
    "index": Parameter(
        whole(0, _CAP, f"; {_CAP} stands for {_CAP} and all above"),
        f"Step number; {_CAP} stands for {_CAP} and all above.",
        many=True,
    ),
    "valid": Parameter(choice(*_VERDICTS, gives=_VERDICTS.__getitem__), "Verdict.", many=True),
    "confidence_min": Parameter(share, "Confidence of at least this."),
    "confidence_max": Parameter(share, "Confidence below this."),
    "confidence_known": Parameter(_BOOLEAN, "Whether the confidence is known."),
    "latency_min_us": Parameter(_LATENCY, "Latency of at least so many microseconds."),
    "latency_max_us": Parameter(_LATENCY, "Latency below so many microseconds."),
    "label": Parameter(pair, "Business label as KEY:VALUE; of one key alternatives, all keys must hold.", many=True),
}
"""Which steps: of one repeated parameter any value, of different ones all."""

Query = Iterable[tuple[str, str]]


def parse(query: Query, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The parameters that were given, read; a list where several are alternatives. Raises ParameterError."""
    found: dict[str, Any] = {}
    for name, value in query:
        parameter = parameters.get(name)
        if parameter is None:
            raise _unknown(name[:_MAX_SHOWN], parameters)
        try:
            read = parameter.kind.read(value)
        except ValueError as error:
            raise ParameterError(name, f"{name} is {value[:_MAX_SHOWN]!r}.", f"{name} takes {error}.") from None
        if parameter.many:
            found.setdefault(name, []).append(read)
        elif name in found:
            raise ParameterError(name, f"{name} is given twice.", f"Give {name} once.")
        else:
            found[name] = read
    return found


def _unknown(name: str, parameters: Mapping[str, Parameter]) -> ParameterError:
    close = difflib.get_close_matches(name, parameters, n=1, cutoff=0)
    fix = f"Did you mean {close[0]}?" if close else "It takes no parameters."
    return ParameterError(name, f"{name!r} is not a parameter.", fix)


def read_filter(query: Query) -> StepFilter:
    """The filter that a query asks for; parameters that are not of ``FILTER`` are others' to read.

    Raises ParameterError, also for a range in which nothing can be.
    """
    given = parse(((name, value) for name, value in query if name in FILTER), FILTER)
    for low, high in (("confidence_min", "confidence_max"), ("latency_min_us", "latency_max_us")):
        if given.get(low, 0) >= given.get(high, float("inf")):
            raise ParameterError(high, f"{high} is not above {low}.", f"Give a {high} above {low}, or leave it out.")
    if given.get("confidence_known") is False and ("confidence_min" in given or "confidence_max" in given):
        raise ParameterError(
            "confidence_known",
            "confidence_known is false, and there is a range of confidence.",
            "Leave out confidence_known, or confidence_min and confidence_max.",
        )
    labels = frozenset(given.pop("label", ()))
    fields: dict[str, Any] = {name: frozenset(it) if FILTER[name].many else it for name, it in given.items()}
    return StepFilter(labels=labels, **fields)
