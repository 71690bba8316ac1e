"""OpenSLO v1 to objectives: ratioMetric, Occurrences, rolling windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...semconv.prometheus import prometheus_label
from ..objective import BadAndTotal, Objective, Origin, Ratio
from .conditions import LEAST_PERIOD, default_tiers
from .document import Document, Location, Mapping, Scalar
from .models import Waits
from .openslo_models import REFUSED, Metric, RatioMetric, SliDocument, SloDocument, Target
from .problem import Problem
from .query import Examined, QueryError
from .report import Report, spelled
from .shape import fit
from .sources import checked_query, counted, grouped
from .windowed import windowed

__all__ = ["Indicator", "is_openslo", "objectives_of", "sli_of"]

_VERSION: Final = "openslo/v1"
_KINDS: Final = {
    "Service": "Remove it: `spec.service` of the SLO is all that is needed.",
    "DataSource": "Remove it, and write `type: Prometheus` into each metricSource.",
    "AlertPolicy": "Remove it: alerts are made from the objective; `windows` in a prometheus/v1 file changes them.",
    "AlertCondition": "Remove it: alerts are made from the objective; `windows` in a prometheus/v1 file changes them.",
    "AlertNotificationTarget": "Remove it: Alertmanager knows whom to tell.",
}


@dataclass(frozen=True, slots=True)
class Indicator:
    """A document of kind SLI; ``source`` is None where it is wrong."""

    source: BadAndTotal | Ratio | None
    groups: tuple[str, ...]
    warnings: tuple[Problem, ...] = ()


def is_openslo(document: Document, report: Report) -> str | None:
    """``SLO`` or ``SLI`` for a document of OpenSLO v1 that is imported, "" for one that is refused, None for others."""
    version = document.find(("apiVersion",))
    if not isinstance(document.root, Mapping) or version is None:
        return None
    text = version.text if isinstance(version, Scalar) else ""
    if text != _VERSION:
        report.error(("apiVersion",), f"apiVersion is {text!r}.", _instead(text))
        return ""
    kind = document.find(("kind",))
    name = kind.text if isinstance(kind, Scalar) else ""
    if name in ("SLO", "SLI"):
        return name
    if kind is None:
        report.error((), "kind is missing.", "Add `kind: SLO` or `kind: SLI`.")
    else:
        report.error(("kind",), f"OpenSLO's kind {name!r} is not imported.", _KINDS.get(name, "Write SLO or SLI."))
    return ""


def _instead(version: str) -> str:
    if version.startswith("sloth.slok.dev/"):
        return "Write what is in `spec` as a file with `version: prometheus/v1`, keys with underscores: error_query."
    if version.startswith("openslo"):
        return f"Only {_VERSION} is imported: write it in that form."
    return f"Write `version: prometheus/v1` (sloth's form) instead, or `apiVersion: {_VERSION}`."


def sli_of(document: Document, report: Report) -> tuple[str, Indicator] | None:
    """A document of kind SLI, by its name."""
    form = fit(SliDocument, document, (), report, refused=REFUSED)
    if form is None:
        name = document.find(("metadata", "name"))
        return (name.text, Indicator(None, ())) if isinstance(name, Scalar) else None
    source, groups = _source(form.spec.ratioMetric, ("spec", "ratioMetric"), report)
    return form.metadata.name, Indicator(source, groups, tuple(report.warnings()))


def objectives_of(
    document: Document, slis: dict[str, Indicator], sha256: str, report: Report
) -> Sequence[tuple[Location, Objective]]:
    """The objectives of a document of kind SLO; ``slis`` are those of all files."""
    form = fit(SloDocument, document, (), report, refused=REFUSED)
    if form is None:
        return ()
    spec = form.spec
    source, groups = _indicator(form, slis, report)
    if len(spec.timeWindow) != 1:
        report.error(
            ("spec", "timeWindow"), f"spec.timeWindow has {len(spec.timeWindow)} windows.", "Write one that rolls."
        )
        return ()
    period = spec.timeWindow[0].duration
    if period.seconds < LEAST_PERIOD:
        where = ("spec", "timeWindow", 0, "duration")
        report.error(
            where,
            f"{spelled(where)} is {period}: the default conditions are for a week and longer.",
            "Write 7d or more, or a prometheus/v1 file with `windows`.",
        )
    if not spec.objectives:
        report.error(("spec", "objectives"), "spec.objectives is empty.", "Write one, with `target: 0.99`.")
    found: list[tuple[Location, Objective]] = []
    names: set[str] = set()
    for number, target in enumerate(spec.objectives):
        at = ("spec", "objectives", number)
        share = _share(target, at, report)
        name = form.metadata.name + (_suffix(target, number) if len(spec.objectives) > 1 else "")
        if name in names:
            report.error(at, f"{spelled(at)}: another objective is called {name}.", "Give each its displayName.")
        names.add(name)
        if share is None or source is None or report.failed:
            continue
        objective = Objective(
            service=spec.service,
            name=name,
            target=share,
            source=source,
            tiers=default_tiers(share, period, Waits(), at, report),
            origin=Origin(report.path, document.line(at if len(spec.objectives) > 1 else ()), sha256),
            description=spec.description or form.metadata.displayName,
            period=period,
            group_by=groups,
            labels={prometheus_label(key): text for key, text in (form.metadata.labels or {}).items()},
        )
        found.append((at, objective))
    return [] if report.failed else found


def _suffix(target: Target, number: int) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", target.displayName.lower()).strip("-")
    return f"-{slug or number + 1}"


def _share(target: Target, at: Location, report: Report) -> float | None:
    if (target.target is None) == (target.targetPercent is None):
        both = "both target and targetPercent" if target.target is not None else "no target"
        report.error(at, f"{spelled(at)} has {both}.", "Write one: `target: 0.99`.")
        return None
    return target.target if target.target is not None else round((target.targetPercent or 0) / 100, 12)


def _indicator(
    form: SloDocument, slis: dict[str, Indicator], report: Report
) -> tuple[BadAndTotal | Ratio | None, tuple[str, ...]]:
    spec = form.spec
    if (spec.indicator is None) == (spec.indicatorRef is None):
        both = "both indicator and indicatorRef" if spec.indicator is not None else "neither indicator nor indicatorRef"
        report.error(("spec",), f"spec has {both}.", "Write one of them.")
        return None, ()
    if spec.indicator is not None:
        return _source(spec.indicator.spec.ratioMetric, ("spec", "indicator", "spec", "ratioMetric"), report)
    name = spec.indicatorRef or ""
    if name not in slis:
        known = f" Known: {', '.join(sorted(slis))}." if slis else ""
        where = ("spec", "indicatorRef")
        report.error(where, f"There is no SLI {name!r}.", f"Give its document too, in this file or another one.{known}")
        return None, ()
    return slis[name].source, slis[name].groups


def _source(form: RatioMetric, at: Location, report: Report) -> tuple[BadAndTotal | Ratio | None, tuple[str, ...]]:
    counter = bool(form.counter)
    if form.raw is not None:
        for key in ("good", "bad", "total"):
            if getattr(form, key) is not None:
                report.error((*at, key), f"{spelled((*at, key))} is beside raw.", "Keep raw, or the events.")
        if form.rawType is None:
            report.error(at, f"{spelled(at)} has raw and no rawType.", "Add `rawType: failure` or `success`.")
        where = (*at, "raw", "metricSource", "spec", "query")
        query = _query(form.raw, False, where, report)
        if query is None or report.failed_within(at):
            return None, ()
        groups = grouped({where: query[1]}, (), at, report)
        return Ratio(query[0] if form.rawType == "failure" else f"1 - ({query[0]}\n)"), groups
    if form.rawType is not None:
        report.error((*at, "rawType"), f"{spelled(at)} has rawType and no raw.", "Remove it.")
    if form.total is None:
        report.error(at, f"{spelled(at)} has no total.", "Add `total`, all events.")
    if (form.good is None) == (form.bad is None):
        both = "both good and bad" if form.good is not None else "neither good nor bad"
        report.error(at, f"{spelled(at)} has {both}.", "Write one of them.")
    if form.total is None or (form.good is None) == (form.bad is None):
        return None, ()
    key = "bad" if form.good is None else "good"
    metric = form.bad or form.good
    assert metric is not None  # one of the two is there
    part_at = (*at, key, "metricSource", "spec", "query")
    total_at = (*at, "total", "metricSource", "spec", "query")
    part, total = _query(metric, counter, part_at, report), _query(form.total, counter, total_at, report)
    if part is None or total is None:
        return None, ()
    groups = grouped({part_at: part[1], total_at: total[1]}, (), at, report)
    bad = part[0] if key == "bad" else _rest(part[0], total[0])
    return counted(bad, total[0], {part_at: part[1], total_at: total[1]}, report), groups


def _rest(good: str, total: str) -> str:
    """All but the good: all of them where no good one was counted, and never fewer than none."""
    return f"clamp_min(({total}\n) - (({good}\n) or 0 * ({total}\n)), 0)"


def _query(metric: Metric, counter: bool, where: Location, report: Report) -> tuple[str, Examined] | None:
    """A query with a window, and what it says; None where it has none, which the report then says."""
    try:
        text = windowed(metric.metricSource.spec.query, counter)
    except QueryError as error:
        report.error(where, f"{spelled(where)} {error.what}.", error.fix)
        return None
    examined = checked_query(text, where, report)
    return None if examined is None else (text, examined)
