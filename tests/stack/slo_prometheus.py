"""The same events for a Prometheus and for the embedded server: counters in its blocks, spans in the server's store."""

from __future__ import annotations

import json
import os
import random
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stack_native import BINARIES
from stack_programs import Program

from claudescope import semconv

SCRAPE_S = 15


class Event(NamedTuple):
    """A checked step: when it ended in ms, and whether it is invalid."""

    at_ms: int
    bad: bool


def poisson(rng: random.Random, from_ms: int, to_ms: int, per_s: float, share: float) -> list[Event]:
    """Events at random, so many a second on average."""
    found, at = [], float(from_ms)
    while (at := at + rng.expovariate(per_s) * 1000) < to_ms:
        found.append(Event(int(at), rng.random() < share))
    return found


def samples(events: Sequence[Event], from_ms: int, to_ms: int) -> list[tuple[int, int, int]]:
    """Time in ms, and the counters of bad and good events, as a scrape each 15 s sees them."""
    found, place, counts = [], 0, [0, 0]
    for at in range(from_ms, to_ms, SCRAPE_S * 1000):
        while place < len(events) and events[place].at_ms <= at:
            counts[events[place].bad] += 1
            place += 1
        found.append((at, counts[True], counts[False]))
    return found


def open_metrics(service: str, taken: Iterable[tuple[int, int, int]]) -> str:
    """The counter of steps by verdict, with times."""
    lines = []
    labels = f'service_name="{service}",job="{service}",instance="1"'
    for verdict, place in (("false", 1), ("true", 2)):
        for sample in taken:
            lines.append(
                f'claudescope_steps_total{{{labels},claudescope_step_valid="{verdict}"}} {sample[place]}'
                f" {sample[0] / 1000:.3f}"
            )
    return "\n".join(lines)


def backfill(folder: Path, texts: Iterable[str]) -> None:
    """Makes Prometheus' blocks of some series."""
    file = folder / "series.txt"
    file.write_text("# TYPE claudescope_steps counter\n" + "\n".join(texts) + "\n# EOF\n")
    command = [BINARIES / "promtool", "tsdb", "create-blocks-from", "openmetrics", file, folder / "tsdb"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def prometheus(folder: Path, port: int) -> Program:
    """A Prometheus over those blocks that scrapes nothing."""
    config = folder / "prometheus.yml"
    config.write_text("global: {evaluation_interval: 30s}\n")
    url = f"http://127.0.0.1:{port}"
    command = [
        BINARIES / "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--storage.tsdb.retention.time=60d",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    return Program("prometheus", command, os.environ, folder, f"{url}/-/ready")


def value(url: str, expression: str, at_s: float) -> float | None:
    """What an expression is at a time; None without data."""
    query = urllib.parse.urlencode({"query": expression, "time": at_s})
    with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=60) as answer:
        found = json.load(answer)["data"]["result"]
    assert len(found) <= 1, expression
    return float(found[0]["value"][1]) if found else None


def send(url: str, service: str, events: Sequence[Event]) -> None:
    """Sends the events as spans of steps."""
    for start in range(0, len(events), 2000):
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        resource.resource.attributes.add(key=semconv.SERVICE_NAME).value.string_value = service
        spans = resource.scope_spans.add().spans
        for event in events[start : start + 2000]:
            span = spans.add(trace_id=os.urandom(16), span_id=os.urandom(8), name="s", kind=1)
            span.end_time_unix_nano = event.at_ms * 1_000_000
            span.start_time_unix_nano = span.end_time_unix_nano - 1_000_000
            span.attributes.add(key=semconv.STEP_INDEX).value.int_value = 0
            span.attributes.add(key=semconv.STEP_KIND).value.string_value = "text"
            span.attributes.add(key=semconv.STEP_VALID).value.bool_value = not event.bad
        post = urllib.request.Request(
            f"{url}/v1/traces", request.SerializeToString(), {"Content-Type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(post, timeout=60) as answer:
            assert answer.status == 200
