"""PromQL text in the few forms that the dashboards use.

A share is of what there is: it is 0 where something reports and nothing happens, and it has no value where nothing
reports at all. Nothing hides that: a panel then says so in words.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "RANGE",
    "RATE",
    "beyond",
    "grown",
    "increase",
    "mean",
    "or_zero",
    "or_zero_named",
    "per_second",
    "quantile",
    "select",
    "share",
    "total",
    "within",
]

RATE: Final = "$__rate_interval"
"""Window of a rate on a graph: at least four scrapes, and no narrower than the graph's resolution."""
RANGE: Final = "$__range"
"""The dashboard's whole time range."""


def select(name: str, *matchers: str) -> str:
    """``name{matcher, ...}``; empty matchers are left out."""
    given = ", ".join(matcher for matcher in matchers if matcher)
    return f"{name}{{{given}}}" if given else name


def per_second(selector: str, window: str = RATE) -> str:
    """Rate of a counter, 1/s."""
    return f"rate({selector}[{window}])"


def increase(selector: str, window: str = RANGE) -> str:
    """How much a counter grew within a window."""
    return f"increase({selector}[{window}])"


def grown(counter: str, window: str) -> str:
    """How much a counter has grown within ``window``, its first value included.

    ``increase`` misses that of a counter which is born when the first thing fails. After a restart it is the new value.
    """
    return f"({counter} - ({counter} offset {window} or 0 * {counter}) >= 0 or {counter})"


def total(expression: str, *by: str) -> str:
    """A sum, by labels where some are given."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def or_zero(expression: str) -> str:
    """An expression without labels, or 0 where it has no value. For counts of events, whose absence is none."""
    return f"{expression} or vector(0)"


def or_zero_named(expression: str, label: str, name: str) -> str:
    """An expression by labels, or one 0 whose ``label`` is ``name`` where it has no value at all."""
    return f'({expression}) or on () label_replace(vector(0), "{label}", "{name}", "", "")'


def share(part: str, whole: str) -> str:
    """``part`` of ``whole``, both with the same labels; 0 where ``whole`` is 0 or ``part`` is not there."""
    return f"(({part}) / (({whole}) > 0)) or (({whole}) * 0)"


def quantile(level: float, histogram: str, *matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """A quantile of a classic histogram, in its unit; no value where nothing was recorded."""
    buckets = total(per_second(select(f"{histogram}_bucket", *matchers), window), "le", *by)
    return f"histogram_quantile({level:g}, {buckets}) >= 0"


def mean(histogram: str, *matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """The mean of what a histogram recorded; no value where nothing was."""
    added, number = (
        total(per_second(select(f"{histogram}_{suffix}", *matchers), window), *by) for suffix in ("sum", "count")
    )
    return f"{added} / ({number} > 0)"


def within(histogram: str, bound: float, *matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of what a histogram recorded at ``bound`` or below; ``bound`` is one of its boundaries."""
    # a whole bound is "34" to Prometheus by OTLP, and "34.0" from a scrape
    le = f'le=~"{bound:g}([.]0)?"' if bound == int(bound) else f'le="{bound:g}"'
    below = total(per_second(select(f"{histogram}_bucket", le, *matchers), window), *by)
    return share(below, total(per_second(select(f"{histogram}_count", *matchers), window), *by))


def beyond(histogram: str, bound: float, *matchers: str, by: tuple[str, ...] = (), window: str = RATE) -> str:
    """Share of what a histogram recorded above ``bound``, which is one of its boundaries and no whole number."""
    within_it = total(per_second(select(f"{histogram}_bucket", f'le="{bound:g}"', *matchers), window), *by)
    every = total(per_second(select(f"{histogram}_count", *matchers), window), *by)
    return share(f"{every} - {within_it}", every)
