"""Stores for the tests of the commands that read and write them without a server."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from claudescope import semconv
from claudescope.live.receiver.offline import OfflineStore
from claudescope.live.server import LiveServer
from claudescope.settings import Settings

START_MS = (int(time.time()) // 3600 - 1) * 3_600_000
"""On the hour, one to two hours ago: a server keeps what is so young."""


def _value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)


def add_span(
    spans: Any, trace: int, span: int, parent: int, ended_ms: int, name: str, attributes: dict[str, Any]
) -> None:
    made = spans.add(
        trace_id=trace.to_bytes(16, "big"),
        span_id=span.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        kind=1,
        start_time_unix_nano=(ended_ms - 100) * 1_000_000,
        end_time_unix_nano=ended_ms * 1_000_000 + 5,
    )
    for key, value in attributes.items():
        made.attributes.add(key=key, value=_value(value))


def run_of(number: int, service: str = "shop", start_ms: int = START_MS) -> ExportTraceServiceRequest:
    """One trace: a call of Sonnet 4.5 with two steps, the second invalid, and a span of the app around it."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key=semconv.SERVICE_NAME, value=_value(service))
    scope = resource.scope_spans.add()
    scope.scope.name = "claudescope"
    at, base = start_ms + number * 1000, number * 10
    step = {semconv.STEP_KIND: "text", semconv.REQUEST_MODEL: "claude-sonnet-4-5", semconv.CHAIN_ID: f"{number:032x}"}
    label = {semconv.LABEL_PREFIX + "team": "blue" if number % 2 else "red"}
    add_span(
        scope.spans,
        number,
        base + 1,
        base + 3,
        at + 100,
        "reasoning_step text",
        {semconv.STEP_INDEX: 0, **step, **label},
    )
    failed = {
        semconv.STEP_INDEX: 1,
        semconv.STEP_VALID: False,
        semconv.STEP_VALIDITY_REASON: "tool_json.syntax@3-7",
        semconv.STEP_CONFIDENCE: 0.25,
        semconv.STEP_LATENCY_SOURCE: "measured",
    }
    add_span(scope.spans, number, base + 2, base + 3, at + 200, "reasoning_step text", {**step, **failed, **label})
    call = {
        semconv.OPERATION_NAME: "chat",
        semconv.REQUEST_MODEL: "claude-sonnet-4-5",
        semconv.CHAIN_ID: f"{number:032x}",
        semconv.USAGE_INPUT: 1000,
        semconv.USAGE_OUTPUT: 100,
    }
    add_span(scope.spans, number, base + 3, base + 4, at + 200, "chat claude-sonnet-4-5", call)
    other = resource.scope_spans.add()
    other.scope.name = "web"
    add_span(other.spans, number, base + 4, 0, at + 300, "GET /", {"http.route": "/", "n": 2**53 + 1, "x": 1e300})
    return request


def event_of(number: int, service: str = "shop", start_ms: int = START_MS) -> ExportLogsServiceRequest:
    """One log record of the invalid step of ``run_of``."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.add(key=semconv.SERVICE_NAME, value=_value(service))
    record = resource.scope_logs.add().log_records.add(
        time_unix_nano=(start_ms + number * 1000 + 200) * 1_000_000,
        trace_id=number.to_bytes(16, "big"),
        span_id=(number * 10 + 2).to_bytes(8, "big"),
        event_name=semconv.EVALUATION_EVENT,
        severity_number=13,
    )
    record.attributes.add(key=semconv.EVALUATION_NAME, value=_value("validity"))
    return request


def fill_store(folder: Path, runs: int, **more: Any) -> None:
    """Runs 1 to ``runs``, a second apart, each with an event."""
    with closing(OfflineStore(folder, None)) as store:
        for number in range(1, runs + 1):
            store.take(run_of(number, **more))
            store.take(event_of(number, **more))


_LEFT_OUT = {
    "runs": {"id", "seen_ms"},
    "steps": {"id", "run", "series"},
    "calls": {"id", "run"},
    "series": {"id", "counted"},
}

_RUN = " JOIN (SELECT id AS r, run_id FROM runs) ON r = run"
_SERIES = " JOIN (SELECT id AS s, service, model, kind, tool, labels FROM series) ON s = series"
_JOINED = {"steps": _RUN + _SERIES, "calls": _RUN}


def contents(folder: Path) -> dict[str, list[Any]]:
    """All that a store holds, without the numbers of rows."""
    found: dict[str, list[Any]] = {}
    with closing(sqlite3.connect(folder / "store.sqlite")) as db:
        db.row_factory = sqlite3.Row
        for table in ("runs", "steps", "calls", "series", "events", "texts"):
            rows = db.execute(f"SELECT * FROM {table}{_JOINED.get(table, '')}").fetchall()
            hidden = _LEFT_OUT.get(table, set()) | {"r", "s"}
            found[table] = sorted(repr({key: row[key] for key in row.keys() if key not in hidden}) for row in rows)  # noqa: SIM118
        spans = db.execute(
            "SELECT trace_id, resource, scope, ended_ms, span_ids, data FROM spans JOIN sources ON sources.id = source"
        )
        found["spans"] = sorted(repr(tuple(row)) for row in spans)
    return found


class Serving:
    """A server on a thread of this process."""

    def __init__(self, folder, **settings):
        self.server = LiveServer(Settings({"data": folder, "port": 0, "grpc_port": 0, **settings}))
        ready = threading.Event()
        self.thread = threading.Thread(target=self.server.run, args=(lambda url: ready.set(),))
        self.thread.start()
        assert ready.wait(30)

    def __enter__(self):
        return self.server.url

    def __exit__(self, *error):
        self.server.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()
