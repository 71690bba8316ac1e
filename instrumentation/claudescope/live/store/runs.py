"""A run (chain): what its steps and calls add up to, and how that is merged into its row."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ..records import CallRecord, StepRecord, label_json

__all__ = ["COLUMNS", "MERGE", "Costs", "RunChange", "RunChanges", "RunLinks", "severity"]

_REMEMBERED: Final = 16_384
_MAX_LABELS: Final = 16_384
"""Characters of a run's labels in the store, about; steps keep all of theirs."""

COLUMNS: Final = (
    "id",
    "run_id",
    "trace_id",
    "service",
    "model",
    "name",
    "started_ms",
    "ended_ms",
    "seen_ms",
    "steps",
    "calls",
    "invalid",
    "min_confidence",
    "max_latency_us",
    "max_index",
    "worst_rank",
    "worst_index",
    "worst_span",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "unpriced",
    "end_rank",
    "failed",
    "final",
    "labels",
)

MERGE: Final = f""" ON CONFLICT (run_id) DO UPDATE SET
    model = coalesce(model, excluded.model),
    name = coalesce(name, excluded.name),
    started_ms = min(started_ms, excluded.started_ms),
    ended_ms = max(ended_ms, excluded.ended_ms),
    seen_ms = max(seen_ms, excluded.seen_ms),
    steps = steps + excluded.steps,
    calls = calls + excluded.calls,
    invalid = invalid + excluded.invalid,
    min_confidence = min(coalesce(min_confidence, excluded.min_confidence),
                         coalesce(excluded.min_confidence, min_confidence)),
    max_latency_us = max(max_latency_us, excluded.max_latency_us),
    max_index = max(max_index, excluded.max_index),
    worst_index = CASE WHEN excluded.worst_rank > worst_rank THEN excluded.worst_index ELSE worst_index END,
    worst_span = CASE WHEN excluded.worst_rank > worst_rank THEN excluded.worst_span ELSE worst_span END,
    worst_rank = max(worst_rank, excluded.worst_rank),
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN cost_usd
                    ELSE coalesce(cost_usd, 0.0) + excluded.cost_usd END,
    unpriced = unpriced + excluded.unpriced,
    failed = CASE WHEN excluded.end_rank >= end_rank THEN excluded.failed ELSE failed END,
    final = CASE WHEN excluded.end_rank >= end_rank THEN excluded.final ELSE final END,
    end_rank = max(end_rank, excluded.end_rank),
    labels = CASE WHEN labels IS NULL THEN excluded.labels
                  WHEN excluded.labels IS NULL OR excluded.labels = labels OR length(labels) > {_MAX_LABELS} THEN labels
                  ELSE json_patch(excluded.labels, labels) END"""


class Costs(Protocol):
    """A price table."""

    def cost(
        self,
        model: str | None,
        input_tokens: int,
        cache_read: int,
        cache_write: int,
        output_tokens: int,
        cache_write_1h: int = 0,
    ) -> float | None:
        """USD of a call, or None for a model without a price. Input includes what the cache read and wrote.

        ``cache_write_1h`` of what it wrote are kept for an hour.
        """


def severity(step: StepRecord) -> float:
    """The order of badness: an invalid step is 3, else 2 - confidence, else below 1 and growing with latency."""
    if step["is_valid"] is False:
        return 3.0
    if step["confidence"] is not None:
        return 2.0 - step["confidence"]
    return 1.0 - 1.0 / (1.0 + step["latency_us"])


class RunLinks:
    """Remembers which run a call's steps named, and which call spans are wrapped around a counted one."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, str] = OrderedDict()
        self._wrappers: OrderedDict[bytes, None] = OrderedDict()

    def saw_step(self, call_span_id: str, run_id: str) -> None:
        """A step of ``run_id`` is a child of the call's span."""
        self._runs[call_span_id] = run_id
        if len(self._runs) > _REMEMBERED:
            self._runs.popitem(last=False)

    def run_of(self, call: CallRecord) -> str:
        """The call's run: what the span says, else what its steps said, else its trace."""
        return call.run_id or self._runs.get(call.span_id.hex()) or call.trace_id

    def counts(self, call: CallRecord) -> bool:
        """False for a span around a call that was counted: two instrumentations may each make one."""
        if call.root:
            return True  # it is around its run's calls, and is none
        if call.span_id in self._wrappers:
            return False
        if call.parent_id:
            self._wrappers[call.parent_id] = None
            if len(self._wrappers) > _REMEMBERED:
                self._wrappers.popitem(last=False)
        return True


@dataclass(slots=True)
class RunChange:
    """What one transaction adds to a run."""

    trace_id: str
    service: str
    model: str | None
    started_ms: int
    ended_ms: int
    name: str | None = None
    steps: int = 0
    calls: int = 0
    invalid: int = 0
    min_confidence: float | None = None
    max_latency_us: int = 0
    max_index: int = -1
    worst_rank: float = -1.0
    worst_index: int | None = None
    worst_span: bytes | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    unpriced: int = 0
    end_rank: int = -1
    failed: bool = False
    final: bool = False
    labels: dict[str, str] = field(default_factory=dict)


class RunChanges:
    """Collects the changes of one transaction. ``now`` is the server's time in ms."""

    def __init__(self, links: RunLinks, costs: Costs | None, now: int) -> None:
        self._links = links
        self._costs = costs
        self._now = now
        self.runs: dict[str, RunChange] = {}
        self.calls: list[tuple[str, CallRecord, float | None]] = []
        """Calls that count, with the run's id and the cost in USD where it is known."""

    def add_step(self, step: StepRecord, span_id: bytes) -> str:
        """Adds a step; returns its run's id."""
        run_id = step["run_id"]
        ended = step["ts_ms"]
        started = ended - step["latency_us"] // 1000
        change = self.runs.get(run_id)
        if change is None:
            change = RunChange(step["trace_id"], step["service"], step["model"], started, ended)
            self.runs[run_id] = change
        elif started < change.started_ms:
            change.started_ms = started
        if change.model is None:
            change.model = step["model"]
        if ended > change.ended_ms:
            change.ended_ms = ended
        change.steps += 1
        if step["is_valid"] is False:
            change.invalid += 1
        confidence = step["confidence"]
        if confidence is not None and (change.min_confidence is None or confidence < change.min_confidence):
            change.min_confidence = confidence
        if step["latency_us"] > change.max_latency_us:
            change.max_latency_us = step["latency_us"]
        if step["step_index"] > change.max_index:
            change.max_index = step["step_index"]
        if step["labels"]:
            change.labels = {**step["labels"], **change.labels}
        rank = severity(step)
        if rank > change.worst_rank:
            change.worst_rank, change.worst_index, change.worst_span = rank, step["step_index"], span_id
        if step["call_span_id"]:
            self._links.saw_step(step["call_span_id"], run_id)
        return run_id

    def add_call(self, call: CallRecord) -> str | None:
        """Adds a call or a run's root span; returns the run's id, or None when the call is counted already."""
        if not self._links.counts(call):
            return None
        run_id = self._links.run_of(call)
        change = self.runs.get(run_id)
        if change is None:
            change = RunChange(call.trace_id, call.service, None, call.started_ms, call.ended_ms)
            self.runs[run_id] = change
        change.started_ms = min(change.started_ms, call.started_ms)
        change.ended_ms = max(change.ended_ms, call.ended_ms)
        if call.root:
            change.name = change.name or call.name
        else:
            change.model = change.model or call.model
            self._add_usage(change, run_id, call)
        if call.labels:
            change.labels = {**call.labels, **change.labels}
        rank = 2 * call.ended_ms + call.root  # a root wins over a call that ended in the same millisecond
        if rank >= change.end_rank:
            change.end_rank, change.failed, change.final = rank, call.failed, call.final
        return run_id

    def _add_usage(self, change: RunChange, run_id: str, call: CallRecord) -> None:
        tokens = call.input_tokens, call.cache_read_tokens, call.cache_write_tokens, call.output_tokens
        cost = None
        if self._costs is not None and any(tokens):
            for model in (call.model, call.response_model):
                cost = self._costs.cost(model, *tokens, call.cache_write_1h_tokens) if cost is None else cost
        change.calls += 1
        change.input_tokens += call.input_tokens
        change.output_tokens += call.output_tokens
        if cost is not None:
            change.cost_usd = (change.cost_usd or 0.0) + cost
        elif any(tokens):
            change.unpriced += 1
        self.calls.append((run_id, call, cost))

    def rows(self, numbers: dict[str, int]) -> list[Any]:
        """The values of all runs' rows, in the order of ``COLUMNS``."""
        values: list[Any] = []
        for run_id, change in self.runs.items():
            values += (
                numbers[run_id],
                run_id,
                bytes.fromhex(change.trace_id),
                change.service,
                change.model,
                change.name,
                change.started_ms,
                change.ended_ms,
                self._now,
                change.steps,
                change.calls,
                change.invalid,
                change.min_confidence,
                change.max_latency_us,
                change.max_index,
                change.worst_rank,
                change.worst_index,
                change.worst_span,
                change.input_tokens,
                change.output_tokens,
                change.cost_usd,
                change.unpriced,
                change.end_rank,
                change.failed,
                change.final,
                label_json(change.labels) if change.labels else None,
            )
        return values
