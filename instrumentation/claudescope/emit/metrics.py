"""The metrics of steps and calls, as ``semconv.METRICS`` lists them.

**First failures are visible.** A counter series that is born at 1 loses its first event in ``increase``. So the first
record of a label set first adds 0 for all three verdicts. The check is a label of invalid steps only, and which check
will fail is not known in advance: the zero of ``false`` is added without a check when the label set is new, and with
the check when that check first fails, each before its first 1. A sum over checks counts every step once: a step with
several failing checks counts under the first of them in the alphabet. ``on_new_series`` is called between the zeros
and the first 1: an owner that collects there gives the store the 0 it needs.

**Exemplars** are offered only for spans that are sampled and, by ``exemplar=False``, not for runs that sampling drops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter

from .. import semconv
from ..semconv import Metric, index_label, valid_label
from ..steps.model import Call, Chain, Step
from .active_calls import ActiveCalls
from .bounds import Bounds
from .content import encodable
from .ratelimit import limit_used
from .tally import Tally

__all__ = ["NO_EXEMPLAR", "OTHER", "Meters", "cache_written", "input_tokens"]

_TOOLS: Final = 50
_REASONS: Final = 50
_ERRORS: Final = 50
_BANDS: Final = 10
_BAND_NAMES: Final = [f"{(place + 1) / _BANDS:.1f}" for place in range(_BANDS)]
_LABEL_KEYS: Final = 5
_LABEL_VALUES: Final = 50
_LABEL_LENGTH: Final = 200
_SERIES: Final = 10_000
"""Label sets that are remembered as known; beyond it the memory starts afresh and zeros are added again (harmless)."""
OTHER: Final = "other"
"""Label value of everything beyond a cap."""
NO_EXEMPLAR: Final[Context] = trace.set_span_in_context(trace.INVALID_SPAN, Context())
"""An empty ``Context()`` is falsy: the SDK would take the ambient one, and its span as exemplar, instead."""

_Labels = dict[str, str]


class _Capped:
    """The first so many distinct values of a label; the rest is ``other``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(value)
        return value


class Meters:
    """The instruments and how a step or a call is recorded on them. Used by one thread (the worker)."""

    def __init__(
        self,
        meter: Meter,
        labels: Iterable[str] = (),
        on_new_series: Callable[[], object] | None = None,
        *,
        step_bounds: Sequence[float] = (),
        confidence_bounds: Sequence[float] = (),
        in_flight: Callable[[], int] | None = None,
    ) -> None:
        """``labels`` are the keys of business labels that metrics carry, at most five of them.

        ``step_bounds`` (seconds) and ``confidence_bounds`` are those at which steps are counted. ``in_flight`` tells
        the calls in flight, on any thread; it is asked at each collection until ``retire``.
        """
        self._on_new_series = on_new_series
        self._in_flight = in_flight
        self._duration = _histogram(meter, semconv.STEP_DURATION)
        self._confidence = _histogram(meter, semconv.STEP_CONFIDENCE_METRIC)
        self._steps = _counter(meter, semconv.STEPS)
        self._chain_steps = _histogram(meter, semconv.CHAIN_STEPS)
        self._dropped = Tally(_counter(meter, semconv.DROPPED), NO_EXEMPLAR, self._born)
        self._operation = _histogram(meter, semconv.OPERATION_DURATION)
        self._usage = _histogram(meter, semconv.TOKEN_USAGE)
        self._tokens = Tally(_counter(meter, semconv.TOKENS), NO_EXEMPLAR, self._born)
        self._failures = Tally(_counter(meter, semconv.FAILURES), NO_EXEMPLAR, self._born)
        self._outcomes = Tally(_counter(meter, semconv.OUTCOMES), NO_EXEMPLAR, self._born)
        self._calls = Tally(_counter(meter, semconv.CALLS), NO_EXEMPLAR, self._born)
        self._over = self._bounds(meter, semconv.STEP_OVER, step_bounds)
        self._below = self._bounds(meter, semconv.STEP_BELOW, confidence_bounds)
        self._limit_used = _histogram(meter, semconv.RATELIMIT_USED)
        self._tool_duration = _histogram(meter, semconv.TOOL_DURATION)
        self._first_chunk = _histogram(meter, semconv.FIRST_CHUNK)
        self._chunk_gap = _histogram(meter, semconv.CHUNK_GAP)
        self._tool = _Capped(_TOOLS)
        self._reason = _Capped(_REASONS)
        self._error = _Capped(_ERRORS)
        self._labels = {key: (semconv.LABEL_PREFIX + key, _Capped(_LABEL_VALUES)) for key in list(labels)[:_LABEL_KEYS]}
        self._series: dict[tuple[str | None, ...], _Series] = {}
        self._active_calls = ActiveCalls.of(meter)
        self._active_calls.count = in_flight

    def _bounds(self, meter: Meter, metric: Metric, bounds: Sequence[float]) -> Bounds | None:
        return Bounds(Tally(_counter(meter, metric), NO_EXEMPLAR, self._born), bounds) if bounds else None

    def retire(self) -> None:
        """Others tell the calls in flight from now on: an instrument cannot be taken from its meter."""
        if self._active_calls.count is self._in_flight:
            self._active_calls.count = None

    def record_step(self, step: Step, call: Call, context: Context, exemplar: bool) -> None:
        """Records a finished, assessed step. ``context`` holds the step's span, for the exemplar."""
        context = context if exemplar else NO_EXEMPLAR
        series = self._known(step, call)
        source = step.latency_source
        if source is not None:
            attributes = series.duration.get(source)
            if attributes is None:
                attributes = series.duration[source] = {**series.base, semconv.STEP_LATENCY_SOURCE: source}
            self._duration.record(step.seconds, attributes, context)
            if self._over is not None and source != "consumer":
                over = [step.seconds > bound for bound in self._over.bounds]
                self._over.count(
                    (series.key, source), lambda: {**series.full, semconv.STEP_LATENCY_SOURCE: source}, over
                )
            if step.kind == "tool_run":
                self._tool_duration.record(step.seconds, _tool_labels(series.tool, step.is_error), context)
        if step.confidence is not None:
            self._confidence.record(step.confidence, series.base, context)
            if self._below is not None:
                below = [step.confidence < bound for bound in self._below.bounds]
                self._below.count(series.key, lambda: series.full, below)
        if step.valid is False:
            check = min((reason.check for reason in step.reasons), default="")
            verdict = series.failing.get(check)
            if verdict is None:
                verdict = dict(series.verdicts["false"])
                if check:
                    verdict[semconv.CHECK] = check
                    self._steps.add(0, verdict, NO_EXEMPLAR)
                    self._born()
                series.failing[check] = verdict
        else:
            verdict = series.verdicts[valid_label(step.valid)]
        # Of this counter the way leads to what is wrong; every step's is on its duration.
        self._steps.add(1, verdict, context if step.valid is False else NO_EXEMPLAR)
        if step.valid is False:
            self._count_failures(step, series.base)
        if step.valid is not None and step.confidence is not None:
            self._count_outcome(step.confidence, step.confidence_method or "", step.valid, call)

    def _count_outcome(self, confidence: float, method: str, valid: bool, call: Call) -> None:
        band = _BAND_NAMES[_band(confidence)]

        def labels() -> list[_Labels]:
            common = {
                semconv.REQUEST_MODEL: _label(call.model),
                semconv.STEP_CONFIDENCE_METHOD: _label(method),
                semconv.STEP_CONFIDENCE_BAND: band,
            }
            return [{**common, semconv.STEP_VALID: valid_label(verdict)} for verdict in (True, False)]

        self._outcomes.add((call.model, method, band), labels, (int(valid), int(not valid)))

    def _count_failures(self, step: Step, base: _Labels) -> None:
        labels = {key: base[key] for key in (semconv.REQUEST_MODEL, semconv.STEP_KIND)}
        for check, code in sorted({(reason.check, self._reason(reason.code)) for reason in step.reasons}):
            failure = [{**labels, semconv.CHECK: _label(check), semconv.REASON: _label(code)}]
            self._failures.add(tuple(failure[0].values()), failure.copy, (1,))

    def _business(self, *holders: Mapping[str, str]) -> list[str | None]:
        """The value of each business label that metrics carry, from the first of ``holders`` that has one."""
        found: list[str | None] = []
        for label, (_, cap) in self._labels.items():
            value = next((value for held in holders if (value := held.get(label))), None)
            found.append(None if value is None else cap(value))
        return found

    def _known(self, step: Step, call: Call) -> _Series:
        tool = None if step.tool_name is None else self._tool(step.tool_name)
        business = self._business(step.labels, call.labels, call.chain.labels)
        key = (call.model, step.kind, index_label(step.index), tool, *business)
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= _SERIES:
                self._series.clear()
            series = _Series(key, tool, self._named(business))
            self._series[key] = series
            for verdict in series.verdicts.values():
                self._steps.add(0, verdict, NO_EXEMPLAR)
            self._born()
        return series

    def record_call(self, call: Call, context: Context, exemplar: bool) -> None:
        """Records an ended call: duration, tokens and, streamed, its chunks' times. ``context`` holds its span."""
        context = context if exemplar else NO_EXEMPLAR
        labels = {
            semconv.OPERATION_NAME: call.operation,
            semconv.PROVIDER_NAME: call.provider,
            semconv.REQUEST_MODEL: _label(call.model),
        }
        if call.response_model:
            labels[semconv.RESPONSE_MODEL] = _label(call.response_model)
        if call.server_address:
            labels[semconv.SERVER_ADDRESS] = call.server_address
        duration = labels if call.error is None else {**labels, semconv.ERROR_TYPE: call.error.type}
        self._operation.record(max(0, call.ended - call.started) / 1e9, duration, context)
        if (used := limit_used(call.headers)) is not None:
            limited = {semconv.REQUEST_MODEL: labels[semconv.REQUEST_MODEL], semconv.RATELIMIT_KIND: used[0]}
            self._limit_used.record(used[1], limited, context)
        # After the histograms: what its zero exports then has their first values, and `increase` sees all but those.
        self._count_call(call)
        for kind, count in (("input", input_tokens(call.usage)), ("output", _count(call.usage, "output_tokens"))):
            if count is not None:
                self._usage.record(count, {**labels, semconv.TOKEN_TYPE: kind}, context)
        self._count_tokens(call)
        if call.first_chunk is not None:
            self._first_chunk.record(max(0, call.first_chunk - call.started) / 1e9, labels, context)
            if call.chunks > 1:
                # one record a stream: a record a chunk is what makes streams dear elsewhere
                gap = max(0, call.ended - call.first_chunk) / 1e9 / (call.chunks - 1)
                self._chunk_gap.record(gap, labels, context)

    def _count_call(self, call: Call) -> None:
        error = None if call.error is None else self._error(call.error.type)
        business = self._business(call.labels, call.chain.labels)

        def labels() -> list[_Labels]:
            found = {semconv.OPERATION_NAME: call.operation, semconv.REQUEST_MODEL: _label(call.model)}
            if error is not None:
                found[semconv.ERROR_TYPE] = _label(error)
            return [{**found, **self._named(business)}]

        self._calls.add((call.operation, call.model, error, *business), labels, (1,))

    def _named(self, business: Iterable[str | None]) -> _Labels:
        """The values that ``_business`` gave, by the labels' names."""
        names = (name for name, _ in self._labels.values())
        return {name: _label(value) for name, value in zip(names, business, strict=True) if value is not None}

    def _count_tokens(self, call: Call) -> None:
        used = _token_classes(call.usage)
        if not used:
            return
        business = self._business(call.labels, call.chain.labels)

        def labels() -> list[_Labels]:
            common = {semconv.REQUEST_MODEL: _label(call.model)}
            if call.response_model:
                common[semconv.RESPONSE_MODEL] = _label(call.response_model)
            common.update(self._named(business))
            return [{**common, semconv.TOKEN_CLASS: name} for name in used]

        self._tokens.add((call.model, call.response_model, *business), labels, tuple(used.values()))

    def chain_ended(self, chain: Chain, call: Call) -> None:
        """Records how many steps a chain has had when a call of it ends without asking for a tool."""
        self._chain_steps.record(chain.next_index, {semconv.REQUEST_MODEL: _label(call.model)}, NO_EXEMPLAR)

    def dropped(self, reason: str, kind: str, number: int) -> None:
        """Counts what claudescope itself could not keep. May be called on any thread."""
        labels = {semconv.DROPPED_REASON: reason, semconv.DROPPED_KIND: kind}
        self._dropped.add((reason, kind), lambda: [labels], (number,))

    def _born(self) -> None:
        if self._on_new_series is not None:
            self._on_new_series()


class _Series:
    """The attribute sets of one label set, made once: a record then costs no dictionary."""

    __slots__ = ("base", "duration", "failing", "full", "key", "tool", "verdicts")

    def __init__(self, key: tuple[str | None, ...], tool: str | None, business: Mapping[str, str]) -> None:
        model, kind, index = key[:3]
        self.key = key
        self.tool = tool
        self.base: _Labels = {
            semconv.REQUEST_MODEL: _label(model or ""),
            semconv.STEP_KIND: _label(kind or ""),
            semconv.STEP_INDEX: index or "",
        }
        rest = dict(business)
        if tool is not None:
            rest[semconv.TOOL_NAME] = _label(tool)
        self.full: _Labels = {**self.base, **rest}
        """With the tool and the business labels."""
        self.verdicts: dict[str, _Labels] = {
            label: {**self.full, semconv.STEP_VALID: label} for label in ("true", "false", "unknown")
        }
        self.duration: dict[str, _Labels] = {}
        self.failing: dict[str, _Labels] = {}


def _label(value: str) -> str:
    """A label's value, short and encodable: one that is not would keep all metrics from being exported, for ever."""
    return encodable(value[:_LABEL_LENGTH])


def _band(confidence: float) -> int:
    """The tenth, from 0 to 9, that ``confidence``, from 0 to 1, lies in; a bound belongs to the tenth below it."""
    # 0.1 * 3 is above 0.3: without the rounding it would be in the tenth above
    return min(_BANDS, max(1, math.ceil(round(confidence * _BANDS, 9)))) - 1


def _tool_labels(tool: str | None, failed: bool | None) -> _Labels:
    labels = {semconv.OPERATION_NAME: "execute_tool"}
    if tool is not None:
        labels[semconv.TOOL_NAME] = _label(tool)
    if failed:
        labels[semconv.ERROR_TYPE] = "tool_error"
    return labels


def _token_classes(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens by what they are priced as; empty where the usage says neither input nor output."""
    fresh, output = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    if fresh is None and output is None:
        return {}
    written, hour = cache_written(usage)
    return {
        "input": fresh or 0,
        "cache_read": _count(usage, "cache_read_input_tokens") or 0,
        "cache_write_5m": written - hour,
        "cache_write_1h": hour,
        "output": output or 0,
    }


def cache_written(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens written to the cache, and those of them that are kept for an hour."""
    written = _count(usage, "cache_creation_input_tokens") or 0
    by_age = usage.get("cache_creation")
    hour = _count(by_age, "ephemeral_1h_input_tokens") or 0 if isinstance(by_age, Mapping) else 0
    return written, min(written, hour)


def input_tokens(usage: Mapping[str, Any]) -> int | None:
    """All input tokens of a usage object, cached ones included, as the conventions and the SDK's own span have it."""
    fresh = _count(usage, "input_tokens")
    if fresh is None:
        return None
    return fresh + (_count(usage, "cache_read_input_tokens") or 0) + (_count(usage, "cache_creation_input_tokens") or 0)


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _histogram(meter: Meter, metric: Metric) -> Histogram:
    # the SDK's own default boundaries are made for milliseconds
    return meter.create_histogram(
        metric.name, metric.unit, metric.brief, explicit_bucket_boundaries_advisory=list(metric.boundaries)
    )


def _counter(meter: Meter, metric: Metric) -> Counter:
    return meter.create_counter(metric.name, metric.unit, metric.brief)
