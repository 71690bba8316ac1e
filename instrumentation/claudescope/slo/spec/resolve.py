"""One objective of a specification, with everything that its fields mean together."""

from __future__ import annotations

import re
from typing import Final

from ...semconv.prometheus import prometheus_label
from ..objective import Canary, Indicator, Notice, Objective, Origin, Ratio, Source
from ..window import Period, Window
from .conditions import tiers_of
from .document import Location
from .groups import has_label, label_named, metrics_of
from .indicators import indicator_of
from .models import Alert, Slo
from .report import Report, spelled
from .sources import source_of

__all__ = ["resolve"]

_MONTH: Final = Window(30 * 86_400)
_ALPHA: Final = 1e-4
_OURS: Final = frozenset({"claudescope_slo", "claudescope_slo_name", "claudescope_slo_service"})


def resolve(
    slo: Slo, service: str, labels: dict[str, str], at: Location, origin: Origin, report: Report
) -> Objective | None:
    """The objective that is written at ``at``; None where something of it is an error, which the report then says.

    ``labels`` are those of the whole specification.
    """
    target = round(slo.objective / 100, 12)
    period: Period = slo.period or _MONTH
    groups = _groups(slo, at, report)
    tiers = tiers_of(slo, target, period, at, report)
    source, groups = _source(slo, service, groups, at, report)
    own = labels | (slo.labels or {})
    _check_labels(slo, own, groups, at, report)
    canary = _canary(slo, source, at, report)
    _check_counts(slo, source, at, report)
    if source is None or report.failed_within(at):
        return None
    alerting = slo.alerting
    page = _notice(alerting.page_alert if alerting else None)
    ticket = _notice(alerting.ticket_alert if alerting else None)
    if page.disabled and ticket.disabled:
        report.warn(at, "Pages and tickets are both disabled: nobody is told of a burn.")
    keep, absent = slo.keep_firing_for, "absent_after" in slo.model_fields_set
    return Objective(
        service=service,
        name=slo.name,
        target=target,
        source=source,
        tiers=tiers,
        origin=origin,
        description=slo.description,
        period=period,
        group_by=groups,
        alpha=_ALPHA if slo.alpha is None else slo.alpha,
        min_events=slo.min_events or 0,
        keep_firing=Window(300) if keep is None else keep,
        absent_after=slo.absent_after if absent else Window(900),
        labels=own,
        alert=alerting.name if alerting else "",
        alert_labels=(alerting.labels if alerting else None) or {},
        alert_annotations=(alerting.annotations if alerting else None) or {},
        page=page,
        ticket=ticket,
        canary=canary,
    )


def _source(
    slo: Slo, service: str, groups: tuple[str, ...], at: Location, report: Report
) -> tuple[Source | None, tuple[str, ...]]:
    if slo.sli is not None and slo.indicator is not None:
        report.error((*at, "indicator"), f"{spelled(at)} has both sli and indicator.", "Keep one of them.")
        return None, groups
    if slo.indicator is not None:
        return indicator_of(slo.indicator, service, groups, slo.load, at, report), groups
    if slo.load is not None and slo.sli is not None:
        where = (*at, "load")
        report.error(where, f"{spelled(where)} only goes with indicator.", "Write the bound into the queries.")
    if slo.sli is not None:
        return source_of(slo.sli, groups, at, report)
    report.error(
        at,
        f"{spelled(at)} does not say what is bad.",
        "Add `sli: {events: {error_query: ..., total_query: ...}}`, or `indicator: {step_validity: {}}`.",
    )
    return None, groups


def _groups(slo: Slo, at: Location, report: Report) -> tuple[str, ...]:
    groups = tuple(map(label_named, slo.group_by or ()))
    where = (*at, "group_by")
    for label in groups:
        if not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", label):
            fix = f"Write it as Prometheus spells it: {prometheus_label(label)}."
            report.error(where, f"{spelled(where)}: {label!r} is no label.", fix)
        elif label == "le" or label in _OURS:
            report.error(where, f"{spelled(where)}: the label {label} has a meaning of its own.", "Remove it.")
    if len(set(groups)) < len(groups):
        report.error(where, f"{spelled(where)} names a label twice, once by its short name.", "Write each once.")
    return () if report.failed_within(where) else groups


def _check_labels(slo: Slo, labels: dict[str, str], groups: tuple[str, ...], at: Location, report: Report) -> None:
    for label in labels:
        where = (*at, "labels", label) if label in (slo.labels or {}) else ("labels", label)
        if label in _OURS:
            report.error(where, f"{spelled(where)}: claudescope sets this label itself.", "Remove it.")
        elif label in groups:
            report.error(
                where, f"{spelled(where)} would overwrite the label that group_by names.", "Remove one of the two."
            )
    alerting = slo.alerting
    if alerting is None:
        return
    parts: list[tuple[Location, dict[str, str] | None]] = [
        (("alerting", "labels"), alerting.labels),
        (("alerting", "page_alert", "labels"), alerting.page_alert.labels if alerting.page_alert else None),
        (("alerting", "ticket_alert", "labels"), alerting.ticket_alert.labels if alerting.ticket_alert else None),
    ]
    for part, written in parts:
        for label in written or {}:
            if label in _OURS:
                where = (*at, *part, label)
                report.error(where, f"{spelled(where)}: claudescope sets this label itself.", "Remove it.")


def _check_counts(slo: Slo, source: Source | None, at: Location, report: Report) -> None:
    if not isinstance(source, Ratio):
        return
    for key in ("min_events", "alpha"):
        if getattr(slo, key):
            where = (*at, key)
            report.error(
                where,
                f"{spelled(where)} counts events, and of this objective only the ratio is known.",
                "Write `sli.events` with `per`, or remove it.",
            )


def _canary(slo: Slo, source: Source | None, at: Location, report: Report) -> Canary | None:
    form = slo.canary
    if form is None:
        return None
    where = (*at, "canary")
    for key in ("canary", "baseline"):
        if not getattr(form, key):
            report.error((*where, key), f"{spelled((*where, key))} is empty.", "Write the label's value.")
    if form.canary == form.baseline:
        report.error(
            (*where, "baseline"),
            f"{spelled(where)} compares {form.canary} with itself.",
            "Write two values of the label.",
        )
    if form.window is not None and (form.window.seconds < 300 or form.window.seconds % 30):
        report.error(
            (*where, "window"),
            f"{spelled((*where, 'window'))} is {form.window}.",
            "Write 5m or more, in steps of 30s.",
        )
    if isinstance(source, Indicator):
        metric = metrics_of(source.measure)[0]
        if not has_label(metric, form.label):
            report.warn(
                (*where, "label"),
                f"{spelled((*where, 'label'))}: no metric of claudescope has the label {form.label}; your Prometheus"
                " must promote it from the resource.",
            )
    if isinstance(source, Ratio):
        report.error(where, f"{spelled(where)} compares counts, and raw has none.", "Write `sli.events`.")
    options = {name: value for name in Canary.__slots__ if (value := getattr(form, name)) is not None}
    return Canary(**options)


def _notice(alert: Alert | None) -> Notice:
    if alert is None:
        return Notice()
    return Notice(alert.labels or {}, alert.annotations or {}, alert.disable)
