"""Which events an objective counts, under which labels, and which of them are bad: the definition in the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import orjson

from ... import semconv
from ...semconv.prometheus import prometheus_label
from ...slo.objective import CALL_MEASURES, Indicator, Objective, Selection
from ..records import CallRecord, Dims, StepFigures

__all__ = ["DIMENSIONS", "INDEX", "LABEL_PREFIX", "Judge", "UncountableError"]

_CANCELLED: Final = "cancelled"
"""The app's own doing, and no failure."""
LABEL_PREFIX: Final = prometheus_label(semconv.LABEL_PREFIX)


DIMENSIONS: Final = {
    prometheus_label(semconv.SERVICE_NAME): "service",
    prometheus_label(semconv.REQUEST_MODEL): "model",
    prometheus_label(semconv.STEP_KIND): "kind",
    prometheus_label(semconv.TOOL_NAME): "tool",
    prometheus_label(semconv.CHECK): "failed_check",
}
"""Labels of the metrics that are dimensions of a step; step number and business labels come besides."""
INDEX: Final = prometheus_label(semconv.STEP_INDEX)
_OF_CALLS: Final = ("service", "model")

StepVerdict = Callable[[StepFigures, float], bool | None]
CallVerdict = Callable[[CallRecord, float], bool | None]


class UncountableError(ValueError):
    """What the objective asks for is not in the server's spans: it needs a Prometheus."""


class _Want(NamedTuple):
    """A condition on one label."""

    name: str
    values: frozenset[str]


def _validity(unknown: str) -> StepVerdict:
    absent = {"bad": True, "good": False}.get(unknown)

    def judge(step: StepFigures, bound: float) -> bool | None:
        valid = step["is_valid"]
        return absent if valid is None else not valid

    return judge


def _confidence(step: StepFigures, bound: float) -> bool | None:
    confidence = step["confidence"]
    return None if confidence is None else confidence < bound


def _latency(step: StepFigures, bound: float) -> bool | None:
    source, latency = step["latency_source"], step["latency_us"]
    if source == "consumer" or (source is None and not latency):
        return None  # the app's own time, or none at all
    return latency > bound * 1_000_000


def _error(call: CallRecord, bound: float) -> bool | None:
    return call.error_type is not None and call.error_type != _CANCELLED


def _first_chunk(call: CallRecord, bound: float) -> bool | None:
    return None if call.first_chunk_ms is None else call.first_chunk_ms > bound * 1000


def _saturation(call: CallRecord, bound: float) -> bool | None:
    return None if call.limit_used is None else call.limit_used > bound


class Judge:
    """One objective's judgement. Raises UncountableError for an objective that the server cannot count.

    ``on_steps`` says whether its events are steps; else they are calls.
    """

    def __init__(self, objective: Objective) -> None:
        source = objective.source
        if not isinstance(source, Indicator):
            raise UncountableError("its indicator is PromQL")
        self.indicator = source
        self.on_steps = source.measure not in CALL_MEASURES
        self.labels = objective.group_by
        if objective.canary is not None and objective.canary.label not in self.labels:
            self.labels = (*objective.group_by, objective.canary.label)
        for name in self.labels:
            self._check(name)
        where = source.where
        if not self.on_steps and (where.kind or where.tool or where.index):
            raise UncountableError(f"{source.measure} is about calls, which have no kind, tool or step number")
        self._wants = _wants(where)
        self.bound = source.bound or 0.0
        self.loads = tuple(sorted(source.loads, key=lambda load: load.above))
        self.step: StepVerdict = {
            "step_validity": _validity(source.unknown),
            "step_confidence": _confidence,
            "step_latency": _latency,
        }.get(source.measure, _validity("exclude"))
        self.call: CallVerdict = {
            "errors": _error,
            "time_to_first_chunk": _first_chunk,
        }.get(source.measure, _saturation)

    def _check(self, name: str) -> None:
        known = name.startswith(LABEL_PREFIX) or name in DIMENSIONS or name == INDEX
        if not known:
            raise UncountableError(f"the server's steps have no label {name}")
        if not self.on_steps and (name == INDEX or DIMENSIONS.get(name, "service") not in _OF_CALLS):
            raise UncountableError(f"calls have no label {name}")

    @property
    def fingerprint(self) -> str:
        """What decides the counts, as text: objectives with another one are counted anew."""
        source = self.indicator
        where = source.where
        return orjson.dumps(
            [
                source.measure,
                [where.service, where.model, where.kind, where.tool, where.index, where.labels],
                source.bound,
                [[load.above, load.bound] for load in self.loads],
                source.unknown,
                self.labels,
            ]
        ).decode()

    def bound_at(self, rate: float) -> float:
        """The bound that holds while there are so many events a second."""
        bound = self.bound
        for load in self.loads:
            if rate > load.above:
                bound = load.bound
        return bound

    def group(self, dims: Dims, index: str, labels: Mapping[str, str]) -> dict[str, str] | None:
        """The values of its labels for events with these dimensions; None where it does not count them.

        ``index`` is the step's number as a label, empty for a call.
        """
        if self.indicator.measure == "tool_success" and dims.kind != "tool_run":
            return None
        for name, values in self._wants:
            if _value(name, dims, index, labels) not in values:
                return None
        return {name: _value(name, dims, index, labels) for name in self.labels}


def _wants(where: Selection) -> list[_Want]:
    """A selection's conditions; empty fields say nothing."""
    by_field = {field: name for name, field in DIMENSIONS.items()}
    wants = [
        _Want(by_field[field], frozenset(getattr(where, field)))
        for field in ("service", "model", "kind", "tool")
        if getattr(where, field)
    ]
    if where.index:
        wants.append(_Want(INDEX, frozenset(where.index)))
    for key, values in where.labels:
        name = key if key.startswith(LABEL_PREFIX) else LABEL_PREFIX + prometheus_label(key)
        wants.append(_Want(name, frozenset(values)))
    return wants


def _value(name: str, dims: Dims, index: str, labels: Mapping[str, str]) -> str:
    field = DIMENSIONS.get(name)
    if field is not None:
        return str(getattr(dims, field))
    if name == INDEX:
        return index
    for key, value in labels.items():
        if LABEL_PREFIX + prometheus_label(key) == name:
            return value
    return ""
