"""Queries of a specification to sources: whether they have a window, what they count, and by what they are grouped."""

from __future__ import annotations

from ..objective import BadAndTotal, Ratio
from .document import Location
from .models import Events, Sli
from .query import PLACEHOLDER, Examined, QueryError, examine
from .report import Report, spelled
from .syntax import complaint

__all__ = ["checked_query", "source_of"]


def source_of(
    sli: Sli, groups: tuple[str, ...], at: Location, report: Report
) -> tuple[BadAndTotal | Ratio | None, tuple[str, ...]]:
    """What the queries of an objective at ``at`` give, and the groups: those written, or those of the queries."""
    where = (*at, "sli")
    if (sli.events is None) == (sli.raw is None):
        what = "has neither events nor raw" if sli.raw is None else "has both events and raw"
        report.error(where, f"{spelled(where)} {what}.", "Write one of them.")
        return None, groups
    if sli.raw is not None:
        place = (*where, "raw", "error_ratio_query")
        query = checked_query(sli.raw.error_ratio_query, place, report)
        if query is None:
            return None, groups
        return Ratio(sli.raw.error_ratio_query), _grouped({place: query}, groups, at, report)
    assert sli.events is not None  # one of the two is there
    return _events(sli.events, groups, at, report)


def checked_query(text: str, where: Location, report: Report) -> Examined | None:
    """What a query says; None where it cannot be used, which the report then says."""
    try:
        found = examine(text)
    except QueryError as error:
        report.error(where, f"{spelled(where)} {error.what}.", error.fix)
        return None
    if not found.windows:
        report.error(
            where,
            f"{spelled(where)} has no {PLACEHOLDER}.",
            f"Write it where the window goes: rate(metric[{PLACEHOLDER}]).",
        )
        return None
    if said := complaint(text):
        report.error(where, f"{spelled(where)} is not PromQL: {said}.", "Try it in Prometheus, with 5m as the window.")
        return None
    return found


def _events(
    events: Events, groups: tuple[str, ...], at: Location, report: Report
) -> tuple[BadAndTotal | Ratio | None, tuple[str, ...]]:
    where = (*at, "sli", "events")
    bad = checked_query(events.error_query, (*where, "error_query"), report)
    total = checked_query(events.total_query, (*where, "total_query"), report)
    if bad is None or total is None:
        return None, groups
    groups = _grouped({(*where, "error_query"): bad, (*where, "total_query"): total}, groups, at, report)
    if events.per is not None:
        return BadAndTotal(events.error_query, events.total_query, events.per), groups
    if bad.unit == total.unit and bad.unit in ("second", "window"):
        return BadAndTotal(events.error_query, events.total_query, bad.unit), groups
    if {bad.unit, total.unit} == {"second", "window"}:
        second, other = ("error_query", "total_query") if bad.unit == "second" else ("total_query", "error_query")
        report.error(
            (*where, "error_query"),
            f"{spelled(where)}: {second} counts events a second (rate) and {other} events a window (increase), so their"
            " ratio is no share.",
            "Use rate in both, or `per: second` or `per: window` if they count the same all the same.",
        )
        return None, groups
    name, query = ("error_query", bad) if bad.unit not in ("second", "window") else ("total_query", total)
    report.warn(
        (*where, name),
        f"{spelled((*where, name))}: what it counts cannot be seen, since {query.reason}. Only the ratio is used, so a"
        " single bad event at low traffic may page.",
        "Write `per: second` or `per: window` beside it.",
    )
    return Ratio(f"({_inline(events.error_query)})\n/\n({_inline(events.total_query)})"), groups


def _inline(query: str) -> str:
    """A query that ends in a comment would hide the bracket after it."""
    return f"{query}\n" if "#" in query else query


def _grouped(
    queries: dict[Location, Examined], groups: tuple[str, ...], at: Location, report: Report
) -> tuple[str, ...]:
    for where, query in queries.items():
        for label in groups:
            if any(aggregation.known and label not in aggregation.labels for aggregation in query.aggregations):
                report.error(
                    where,
                    f"{spelled(where)} sums the label {label} away, which group_by names.",
                    f"Write sum by ({', '.join(groups)}) (...).",
                )
                break
    if groups:
        return groups
    found = {query.groups for query in queries.values()}
    if len(found) == 1 and (labels := next(iter(found))):
        inferred = tuple(sorted(labels))
        report.warn(at, f"Each {' and '.join(inferred)} has a budget of its own, as the queries are grouped by it.")
        return inferred
    return ()
