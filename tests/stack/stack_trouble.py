"""What goes wrong with a stack, as much of it as an alert needs, and history that it did not live through."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from stack_native import BINARIES, Stack

Sample = tuple[str, float, float]
"""A series, its value and its time (Unix, seconds)."""


def _post(stack: Stack, signal: str, request: Message) -> None:
    """Sends it; that the collector refuses is part of the tests."""
    headers = {"content-type": "application/x-protobuf", "authorization": f"Bearer {stack.token}"}
    post = urllib.request.Request(f"{stack.endpoint}/v1/{signal}", request.SerializeToString(), headers)
    try:
        urllib.request.urlopen(post, timeout=60).close()
    except urllib.error.HTTPError as refused:
        refused.close()


def flood(stack: Stack, spans: int, attributes: Mapping[str, bool] | None = None) -> None:
    """Sends spans, each of a trace of its own, until the collector has been given so many."""
    request = ExportTraceServiceRequest()
    part = request.resource_spans.add().scope_spans.add()
    for _ in range(500):
        span = part.spans.add(
            trace_id=os.urandom(16), span_id=os.urandom(8), name="flood", end_time_unix_nano=time.time_ns()
        )
        for key, value in (attributes or {}).items():
            span.attributes.add(key=key).value.bool_value = value
    for _ in range(0, spans, 500):
        _post(stack, "traces", request)


def sample(stack: Stack, at: float) -> None:
    """Sends one sample of a gauge named ``clock`` with the time ``at`` (Unix, seconds)."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="clock")
    metric.gauge.data_points.add(time_unix_nano=int(at * 1e9), as_double=at)
    _post(stack, "metrics", request)


def backfill(stack: Stack, kind: str, name: str, samples: Iterable[Sample]) -> None:
    """Puts samples of the metric ``name`` into the blocks of a Prometheus that is not running yet."""
    family = name.removesuffix("_total") if kind == "counter" else name
    lines = [f"{series} {value} {at:.3f}" for series, value, at in samples]
    text = stack.folder / f"{name}.txt"
    text.write_text("\n".join([f"# TYPE {family} {kind}", *lines, "# EOF\n"]), "utf-8")
    data: Path = stack.folder / "prometheus"
    subprocess.run(
        [BINARIES / "promtool", "tsdb", "create-blocks-from", "openmetrics", text, data],
        check=True,
        capture_output=True,
        timeout=60,
    )
