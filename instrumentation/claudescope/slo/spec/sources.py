"""Queries of a specification to sources: whether they have a window, what they count, and by what they are grouped."""

from __future__ import annotations

from ..objective import BadAndTotal, Ratio
from .document import Location
from .models import Events, Sli
from .query import PLACEHOLDER, Examined, QueryError, examine
from .report import Report, spelled
from .syntax import complaint

__all__ = ["checked_query", "counted", "grouped", "source_of"]


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
        return Ratio(sli.raw.error_ratio_query), grouped({place: query}, groups, at, report)
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
    groups = grouped({(*where, "error_query"): bad, (*where, "total_query"): total}, groups, at, report)
    if events.error_query == events.total_query:
        report.warn((*where, "error_query"), f"{spelled(where)}: both queries are the same, so all events are bad.")
    if events.per is not None:
        return BadAndTotal(events.error_query, events.total_query, events.per), groups
    examined = {(*where, "error_query"): bad, (*where, "total_query"): total}
    fix = "Write `per: second` or `per: window` beside it."
    return counted(events.error_query, events.total_query, examined, report, fix), groups


def counted(
    bad_query: str,
    total_query: str,
    examined: dict[Location, Examined],
    report: Report,
    fix: str = "Put each metric into rate() alone.",
) -> BadAndTotal | Ratio | None:
    """The source of two queries that say what they count; of others only their ratio can be used.

    ``examined`` has first the bad and then the total one; ``fix`` is what to do where it cannot be seen.
    """
    (bad_at, bad), (total_at, total) = examined.items()
    if bad.unit == total.unit and bad.unit in ("second", "window"):
        return BadAndTotal(bad_query, total_query, bad.unit)
    if {bad.unit, total.unit} == {"second", "window"}:
        report.error(
            bad_at if bad.unit == "window" else total_at,
            f"{spelled(bad_at)} and {spelled(total_at)}: one counts events a second (rate), the other events a window"
            " (increase), so their ratio is no share.",
            f"Use rate in both. {fix if 'per:' in fix else ''}".rstrip(),
        )
        return None
    where, query = (bad_at, bad) if bad.unit not in ("second", "window") else (total_at, total)
    report.warn(
        where,
        f"{spelled(where)}: what it counts cannot be seen, since {query.reason}. Only the ratio is used, so a single"
        " bad event at low traffic may page.",
        fix,
    )
    return Ratio(f"({_inline(bad_query)})\n/\n({_inline(total_query)})")


def _inline(query: str) -> str:
    """A query that ends in a comment would hide the bracket after it."""
    return f"{query}\n" if "#" in query else query


def grouped(
    queries: dict[Location, Examined], groups: tuple[str, ...], at: Location, report: Report
) -> tuple[str, ...]:
    """The groups of an objective at ``at``: those it names, or else those that its queries have."""
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
