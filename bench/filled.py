"""A store of a week of agent runs, made through the real reader of spans and the real writer of tables.

    python bench/filled.py FOLDER [--steps N] [--days N] [--seed N]

A run has 8 steps in two calls of a model; three services, four models (one without a price), twelve tools, labels, one
step in fifty invalid, one run in a hundred failed. The same seed and end give the same store. About 15,000 steps a
second, 0.9 GB for a million.
"""

import argparse
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from claudescope import semconv
from claudescope.live.records import Batch, read_spans
from claudescope.live.store.jobs import Job, StoredStep
from claudescope.live.store.schema import FILE_NAME, connect
from claudescope.live.store.tables import Tables
from claudescope.prices import Prices

__all__ = ["RUN_STEPS", "fill", "written"]

RUN_STEPS = 8
KINDS = ("thinking", "text", "tool_use", "tool_run", "thinking", "thinking", "tool_use", "text")
SERVICES = ("support-agent", "billing-agent", "search")
MODELS = ("claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5", "house-model-1")
TOOLS = tuple(f"tool_{number}" for number in range(12))
CHECKS = ("tool_input.schema_mismatch@12-40", "tool_name.unknown", "tool_result.error", "stop_reason.max_tokens")
TIERS = ("free", "plus", "enterprise")
_GROUP = 64
"""Runs of one transaction."""
_known: dict[tuple[str, Any], KeyValue] = {}


def attribute(key: str, value: Any) -> KeyValue:
    """One attribute; those seen before are not made again."""
    found = _known.get((key, value))
    if found is None:
        found = KeyValue(key=key)
        if isinstance(value, tuple):
            found.value.array_value.values.add().string_value = value[0]
        else:
            field = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}[type(value)]
            setattr(found.value, field, value)
        if len(_known) < 10_000:
            _known[key, value] = found
    return found


def add_run(spans: Any, dice: random.Random, ended_ms: int) -> None:
    """The spans of one run that ends at ``ended_ms``."""
    trace, chain = dice.randbytes(16), dice.randbytes(16).hex()
    model, tier = dice.choice(MODELS), dice.choice(TIERS)
    both = [
        attribute(semconv.CHAIN_ID, chain),
        attribute(semconv.REQUEST_MODEL, model),
        attribute(semconv.PROVIDER_NAME, "anthropic"),
        attribute(semconv.REQUEST_SHA256, "sha256:" + "ab" * 32),
        attribute(semconv.LABEL_PREFIX + "tier", tier),
    ]
    if dice.random() < 0.001:
        both.append(attribute(semconv.LABEL_PREFIX + "customer", f"c-{dice.randrange(20)}"))
    failed = dice.random() < 0.01
    at = (ended_ms - dice.randrange(5_000, 60_000)) * 1_000_000
    for half in (0, 1):
        call, began = dice.randbytes(8), at
        for index in range(half * 4, half * 4 + 4):
            kind = KINDS[index]
            took = int(dice.lognormvariate(-0.5, 1.0) * 1e9)
            span = spans.add(trace_id=trace, span_id=dice.randbytes(8), parent_span_id=call, kind=1)
            span.name = f"{semconv.STEP_SPAN} {kind}"
            span.start_time_unix_nano, span.end_time_unix_nano = at, at + took
            at += took
            attributes = [
                *both,
                attribute(semconv.STEP_INDEX, index),
                attribute(semconv.STEP_KIND, kind),
                attribute(semconv.STEP_LATENCY_SOURCE, "consumer" if dice.random() < 0.03 else "measured"),
            ]
            if kind.startswith("tool"):
                attributes.append(attribute(semconv.TOOL_NAME, dice.choice(TOOLS)))
            if dice.random() < 0.6:
                attributes.append(attribute(semconv.STEP_CONFIDENCE, round(dice.betavariate(8, 2), 2)))
                attributes.append(attribute(semconv.STEP_CONFIDENCE_METHOD, "verbalised"))
                attributes.append(attribute(semconv.STEP_CONFIDENCE_CALIBRATED, False))
            chance = dice.random()
            if chance < 0.8:
                attributes.append(attribute(semconv.STEP_VALID, chance > 0.02))
            if chance <= 0.02:
                attributes.append(attribute(semconv.STEP_VALIDITY_REASON, dice.choice(CHECKS)))
            span.attributes.extend(attributes)
        span = spans.add(trace_id=trace, span_id=call, kind=3, name=f"chat {model}")
        span.start_time_unix_nano, span.end_time_unix_nano = began, at
        attributes = [
            *both,
            attribute(semconv.OPERATION_NAME, "chat"),
            attribute(semconv.USAGE_INPUT, dice.randrange(500, 20_000)),
            attribute(semconv.USAGE_OUTPUT, dice.randrange(50, 2_000)),
            attribute(semconv.FINISH_REASONS, (("end_turn" if half else "tool_use"),)),
        ]
        if failed and half:
            attributes.append(attribute(semconv.ERROR_TYPE, "overloaded_error"))
        span.attributes.extend(attributes)


def written(db: sqlite3.Connection, steps: int, days: float = 7, seed: int = 1, until_ms: int | None = None) -> Any:
    """Fills the store; yields the stored steps of each transaction, the oldest first (a generator)."""
    dice = random.Random(seed)
    tables = Tables(db, Prices.load())
    until_ms = int(time.time() * 1000) if until_ms is None else until_ms
    runs = steps // RUN_STEPS
    span_ms = days * 86_400_000
    for first in range(0, runs, _GROUP):
        request = ExportTraceServiceRequest()
        by_service = {}
        for service in SERVICES:
            resource_spans = request.resource_spans.add()
            resource_spans.resource.attributes.add(key=semconv.SERVICE_NAME).value.string_value = service
            by_service[service] = resource_spans.scope_spans.add()
            by_service[service].scope.name = semconv.SCOPE
        for run in range(first, min(first + _GROUP, runs)):
            ended_ms = until_ms - int(span_ms * (1 - (run + 1) / runs))
            add_run(by_service[dice.choice(SERVICES)].spans, dice, ended_ms)
        batch = Batch()
        for _ in read_spans(request, batch):
            pass
        db.execute("BEGIN IMMEDIATE")
        (stored,) = tables.write([Job(batch=batch, size=batch.size)])
        db.execute("COMMIT")
        yield stored.steps


def fill(folder: Path, steps: int, days: float = 7, seed: int = 1, until_ms: int | None = None) -> None:
    """Makes a store of so many steps in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    db = connect(folder)
    try:
        made: list[StoredStep]
        for made in written(db, steps, days, seed, until_ms):
            del made
        db.execute("PRAGMA optimize")
    finally:
        db.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.perf_counter()
    fill(arguments.folder, arguments.steps, arguments.days, arguments.seed)
    seconds = time.perf_counter() - began
    size = (arguments.folder / FILE_NAME).stat().st_size
    print(f"{arguments.steps:,} steps in {seconds:.0f} s, {size / 1e6:,.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
