"""Unit tests for the rules of an objective, in promtool's form: traffic, and the alerts that it has to lead to.

The series of claudescope's own metrics are played as they are, and so are those of plain queries. What other queries
read is not known: the same rules are tested on two stand-in counters in place of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from ... import semconv
from ...semconv.prometheus import SERVICE_LABEL, prometheus_label, prometheus_series
from ..objective import BadAndTotal, Objective, Ratio, Selection
from . import series
from .alerts import absence
from .compiler import compile as compiled
from .links import LOCAL
from .matching import labelled
from .promql import WINDOW, quoted
from .queries import bounds_of, needed_setting
from .rendering import text_of
from .scenario import Scenario, Stretch, scenarios, verdict

__all__ = ["RuleTest", "rule_test"]

_BAD: Final = "claudescope_slo_test_bad_total"
_ALL: Final = "claudescope_slo_test_events_total"


class RuleTest(NamedTuple):
    """The two files of one objective's test."""

    id: str
    rules: str
    tests: str
    played: bool
    """Whether the objective's own queries are played; else they are replaced by stand-ins."""


class _Input(NamedTuple):
    """A series, and how much of the good and of the bad events it counts."""

    selector: str
    good: int
    bad: int


def rule_test(objective: Objective, rules_file: str) -> RuleTest:
    """The rules, as a file to be named ``rules_file``, and their tests."""
    inputs = _inputs(objective)
    played = inputs is not None
    if inputs is None:
        objective = _stand_in(objective)
        labels = ", ".join(f'{label}="x"' for label in objective.group_by)
        inputs = [_Input(f"{_BAD}{{{labels}}}", 0, 1), _Input(f"{_ALL}{{{labels}}}", 1, 1)]
    lines = [
        f"# Tests of {objective.id}: promtool test rules THIS_FILE. Made by `claudescope slo test`.",
        f"rule_files: [{json.dumps(rules_file)}]",
        "evaluation_interval: 30s",
        "tests:",
    ]
    for scenario in scenarios(objective):
        lines += _test(objective, scenario, inputs)
    lines += _absence(objective, inputs)
    return RuleTest(objective.id, text_of(compiled([objective])), "\n".join(lines) + "\n", played)


def _stand_in(objective: Objective) -> Objective:
    bad, total = f"rate({_BAD}[{WINDOW}])", f"rate({_ALL}[{WINDOW}])"
    source = Ratio(f"{bad} / {total}") if isinstance(objective.source, Ratio) else BadAndTotal(bad, total)
    return replace(objective, source=source, canary=None)


def _inputs(objective: Objective) -> list[_Input] | None:
    """The series of a short form or of plain queries; None for others, and for native histograms."""
    source, labels = objective.source, dict.fromkeys(objective.group_by, "x")
    if isinstance(source, BadAndTotal):
        found = labelled(source, labels)
        return None if found is None else [_input(one.name, dict(one.labels), one.good, one.bad) for one in found]
    if isinstance(source, Ratio) or source.native:
        return None
    labels |= _chosen(source.where)
    valid = prometheus_label(semconv.STEP_VALID)
    if source.measure in ("step_validity", "tool_success"):
        name = prometheus_series(semconv.STEPS)
        if source.measure == "tool_success":
            labels[prometheus_label(semconv.STEP_KIND)] = "tool_run"
        verdicts = ("true", "false")
        return [_input(name, labels | {valid: word}, word == "true", word == "false") for word in verdicts]
    if source.measure == "errors":
        labels[prometheus_label(semconv.OPERATION_NAME)] = "chat"
        name, failing = prometheus_series(semconv.CALLS), {prometheus_label(semconv.ERROR_TYPE): "timeout"}
        return [_input(name, labels, True, False), _input(name, labels | failing, False, True)]
    below = source.measure == "step_confidence"
    if needed_setting(source, objective.group_by):
        name = prometheus_series(semconv.STEP_BELOW if below else semconv.STEP_OVER)
        beyond, at = prometheus_label(semconv.STEP_BEYOND), prometheus_label(semconv.STEP_BOUND)
        return [
            _input(name, labels | {at: semconv.bound_label(bound), beyond: word}, word == "false", word == "true")
            for bound in sorted(set(bounds_of(source)))
            for word in ("false", "true")
        ]
    metric = {
        "step_confidence": semconv.STEP_CONFIDENCE_METRIC,
        "step_latency": semconv.STEP_DURATION,
        "time_to_first_chunk": semconv.FIRST_CHUNK,
        "saturation": semconv.RATELIMIT_USED,
    }[source.measure]
    name = prometheus_series(metric)
    buckets = [
        _input(f"{name}_bucket", labels | {"le": f"{bound:g}"}, not below, below)
        for bound in sorted(set(bounds_of(source)))
    ]
    return [_input(f"{name}_count", labels, True, True), *buckets]


def _chosen(where: Selection) -> dict[str, str]:
    """One value of each field that the selection names."""
    fields = {
        SERVICE_LABEL: where.service,
        prometheus_label(semconv.REQUEST_MODEL): where.model,
        prometheus_label(semconv.STEP_KIND): where.kind,
        prometheus_label(semconv.TOOL_NAME): where.tool,
        prometheus_label(semconv.STEP_INDEX): where.index,
        **{prometheus_label(semconv.LABEL_PREFIX + key): values for key, values in where.labels},
    }
    return {label: values[0] for label, values in fields.items() if values}


def _input(name: str, labels: dict[str, str], good: bool, bad: bool) -> _Input:
    matchers = ", ".join(f"{label}={quoted(value)}" for label, value in sorted(labels.items()))
    return _Input(f"{name}{{{matchers}}}", int(good), int(bad))


def _values(stretches: Iterable[Stretch], good: int, bad: int, born: bool) -> str:
    """The samples of a counter, one a minute, in promtool's short form."""
    parts, value, begun = [], 0.0, not born
    for stretch in stretches:
        step = good * ((stretch.total or 0) - stretch.bad) + bad * stretch.bad
        if stretch.total is None or not (begun or step):
            parts.append(f"_x{stretch.minutes}")
            continue
        begun = True
        parts.append(f"{value + step:.10g}+{step:.10g}x{stretch.minutes - 1}")
        value += step * stretch.minutes
    return ("_ " if born and good == 0 else "0 ") + " ".join(parts)


def _play(scenario: Scenario, inputs: Iterable[_Input]) -> Iterable[str]:
    yield "    input_series:"
    for given in inputs:
        born = scenario.born and given.good == 0
        values = _values(scenario.stretches, given.good, given.bad, born)
        yield f"      - {{series: {json.dumps(given.selector)}, values: {json.dumps(values)}}}"


def _expect(expr: str, minute: int, value: float | None) -> str:
    samples = "[]" if value is None else f"[{{labels: '{{}}', value: {value:g}}}]"
    return f"      - {{expr: {json.dumps(expr)}, eval_time: {minute}m, exp_samples: {samples}}}"


def _test(objective: Objective, scenario: Scenario, inputs: list[_Input]) -> Iterable[str]:
    yield f"  - name: {json.dumps(f'{objective.id}: {scenario.name}')}"
    yield "    interval: 1m"
    yield from _play(scenario, inputs)
    yield "    promql_expr_test:"
    disabled = {"page": objective.page.disabled, "ticket": objective.ticket.disabled}
    for minute in scenario.looks:
        for tier in objective.tiers:
            fires = None if disabled[tier.severity] else verdict(scenario, objective, tier, minute)
            if fires is not None:
                yield _expect(_firing(objective, f', burnrate_tier="{tier.name}"'), minute, 1 if fires else None)
    last = scenario.looks[-1]
    ratio = series.error_ratio(objective, "5m")
    bad, total = scenario.counts(last, 5)
    yield _expect(f"count({ratio})", last, 1 if total else None)
    if total:
        yield _expect(f"round(sum({ratio}), 0.0001)", last, round(bad / total, 4))
    # one that is no number would make the sum none
    yield _expect(f'count(sum({{__name__=~"slo:.+", {series.ID}="{objective.id}"}}) > -Inf)', last, 1)


def _absence(objective: Objective, inputs: list[_Input]) -> Iterable[str]:
    if objective.absent_after is None:
        return
    begin = 10
    end = begin + -(-max(objective.absent_after.seconds, 300) // 60) + 5
    scenario = Scenario("the data end", (Stretch(begin, 60), Stretch(end - begin, None)), (end,))
    yield f"  - name: {json.dumps(f'{objective.id}: {scenario.name}')}"
    yield "    interval: 1m"
    yield from _play(scenario, inputs)
    yield "    promql_expr_test:"
    name = absence(objective, LOCAL)[0].name
    firing = f'sum(ALERTS{{alertstate="firing", alertname="{name}", {series.ID}="{objective.id}"}})'
    yield _expect(firing, begin, None)
    yield _expect(firing, end, 1)


def _firing(objective: Objective, more: str = "") -> str:
    return f'count(ALERTS{{alertstate="firing", {series.ID}="{objective.id}"{more}}})'
