"""Short forms to indicators, and whether claudescope's metrics can count them."""

from __future__ import annotations

from difflib import get_close_matches

from ...semconv.registry import Metric
from ..objective import Indicator, LoadBound, Measure, Selection
from ..rules.queries import UnfitError, bad_and_total, needed_setting
from .document import Location
from .groups import SHORT, has_label, label_named, labels_of, metrics_of
from .models import IndicatorForm, Load
from .report import Report, spelled

__all__ = ["indicator_of"]


def indicator_of(
    form: IndicatorForm,
    service: str,
    groups: tuple[str, ...],
    loads: list[Load] | None,
    at: Location,
    report: Report,
) -> Indicator | None:
    """The indicator of an objective at ``at``, whose groups are labels already."""
    where = (*at, "indicator")
    written: list[Measure] = [name for name in IndicatorForm.model_fields if getattr(form, name) is not None]  # type: ignore[misc]  # its fields are the measures
    if len(written) != 1:
        listed = ", ".join(IndicatorForm.model_fields)
        what = f"has {' and '.join(written)}" if written else "says nothing"
        fix = "Keep one, and write another objective for the other." if written else f"Write one of {listed}."
        report.error(where, f"{spelled(where)} {what}.", fix)
        return None
    (measure,) = written
    options = getattr(form, measure)
    where = (*where, measure)
    bound = getattr(options, "below", None) or getattr(options, "over", None)
    indicator = Indicator(
        measure,
        _selection(options, service),
        bound,
        _loads(measure, bound, loads, at, report),
        getattr(options, "unknown", "exclude"),
        getattr(options, "native", False),
    )
    metric = _metric(indicator, groups, where, report)
    if metric is not None:
        _check_groups(metric, groups, at, report)
    if not report.failed_within(at):
        try:
            bad_and_total(indicator, groups)
        except UnfitError as error:
            report.error(where, f"{spelled(where)}: {error}", error.fix)
    return indicator


def _selection(options: object, service: str) -> Selection:
    services = getattr(options, "service", None) or (service,)
    return Selection(
        service=() if "*" in services else services,
        **{name: getattr(options, name, None) or () for name in ("model", "kind", "tool", "index")},
        labels=tuple(sorted((getattr(options, "labels", None) or {}).items())),
    )


def _loads(
    measure: Measure, bound: float | None, loads: list[Load] | None, at: Location, report: Report
) -> tuple[LoadBound, ...]:
    if not loads:
        return ()
    where = (*at, "load")
    if measure not in ("step_latency", "time_to_first_chunk"):
        report.error(where, f"{spelled(where)} is about bounds in time, which {measure} has none of.", "Remove it.")
        return ()
    found: list[LoadBound] = []
    for number, load in enumerate(loads):
        here = (*where, number)
        last = found[-1] if found else LoadBound(0, bound or 0)
        if load.above <= last.above:
            report.error(
                (*here, "above"),
                f"{spelled((*here, 'above'))} is {load.above:g} and not over the one before, {last.above:g}.",
                "Write the loads from the smallest up.",
            )
        if load.over <= last.bound:
            report.error(
                (*here, "over"),
                f"{spelled((*here, 'over'))} is {load.over:g}s and not over the bound at less load, {last.bound:g}s.",
                "A bound at higher load is a longer time.",
            )
        found.append(LoadBound(load.above, load.over))
    return tuple(found)


def _metric(indicator: Indicator, groups: tuple[str, ...], where: Location, report: Report) -> Metric | None:
    """What counts the indicator; the report says where nothing does, and where the app needs a setting for it."""
    measure, first = indicator.measure, metrics_of(indicator.measure)[0]
    if indicator.bound is None:
        return first
    key = "below" if measure == "step_confidence" else "over"
    if measure == "saturation" and indicator.bound == 1:
        report.error((*where, key), f"{spelled((*where, key))} is 1: no more than all can be used.", "Write 0.99.")
        return None
    setting = needed_setting(indicator, groups)
    lacking = [name for name, label in _wanted(indicator, groups).items() if not has_label(first, label)]
    bounds = [indicator.bound, *(load.bound for load in indicator.loads)]
    between = [] if indicator.native else [bound for bound in bounds if bound not in first.boundaries]
    if setting:
        because = f"{_bound(measure, between[0])} is no bucket boundary" if between else f"{lacking[0]} is no label"
        report.warn(
            (*where, key),
            f"{because} of {first.name}: a counter is read instead, which the app records with {setting}.",
        )
        return metrics_of(measure)[1]
    if lacking and indicator.native:
        report.error(
            where,
            f"{spelled(where)}: the histogram {first.name} has no label for {lacking[0]}.",
            "Remove `native: true`, so that a counter with the verdict is read.",
        )
        return None
    if between:
        near = sorted(first.boundaries, key=lambda boundary: abs(boundary - between[0]))[:2]
        said = " or ".join(_bound(measure, boundary) for boundary in sorted(near))
        native = ", or `native: true` with Prometheus 3" if measure == "time_to_first_chunk" else ""
        report.error(
            (*where, key),
            f"{spelled((*where, key))}: {_bound(measure, between[0])} is no bucket boundary of {first.name}.",
            f"Write {said}{native}.",
        )
        return None
    return first


def _wanted(indicator: Indicator, groups: tuple[str, ...]) -> dict[str, str]:
    """Labels that the filters and the groups need, by what people call them."""
    where = indicator.where
    named = {name: label for name, label in SHORT.items() if name != "service" and getattr(where, name)}
    named |= {f"label {key}": label_named(f"label.{key}") for key, _ in where.labels}
    short = {label: name for name, label in SHORT.items()}
    business = label_named("label.")
    return named | {short.get(label, label): label for label in groups if label in short or label.startswith(business)}


def _bound(measure: Measure, bound: float) -> str:
    if measure in ("step_latency", "time_to_first_chunk"):
        return f"{bound * 1000:.10g}ms" if bound < 1 else f"{bound:.10g}s"
    return f"{bound:.10g}"


def _check_groups(metric: Metric, groups: tuple[str, ...], at: Location, report: Report) -> None:
    where = (*at, "group_by")
    for label in groups:
        if has_label(metric, label):
            continue
        short = {name: of for name, of in SHORT.items() if has_label(metric, of)}
        known = [*short, *sorted(labels_of(metric))]
        name = next((name for name, of in SHORT.items() if of == label), label)
        near = get_close_matches(name, known, n=1, cutoff=0.75)
        if near or label in SHORT.values():
            fix = f"Did you mean {near[0]}?" if near else f"Groups that it has: {', '.join([*short, 'label.KEY'])}."
            report.error(where, f"{spelled(where)}: {metric.name} has no label {name}.", fix)
        else:
            report.warn(
                where,
                f"{spelled(where)}: no metric of claudescope has the label {label}; your Prometheus must promote it"
                " from the resource.",
            )
