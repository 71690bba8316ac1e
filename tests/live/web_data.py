"""A server's worth of steps, calls, logs and metrics of every shape, for the tests of the API."""

from __future__ import annotations

import random
import time

from live_kit import Client, Sender
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from claudescope import semconv

SERVICES = ("shop", "desk")
MODELS = ("claude-sonnet-4-5", "unheard-of-1", None)
KINDS = ("thinking", "text", "tool_use")
TOOLS = ("search", "pay")
CHECKS = ("tool_input", "stop_reason")
TEAMS = ("billing", "search", "")
RUNS = 12
STEPS = 20
CONFIDENCES = (None, 0.0, 0.33, 0.7, 0.95, 1.0)
LATENCIES_MS = (0, 3, 100, 800, 2500)


def fill(live: Client) -> None:
    """Some runs of some steps: the same at each call but for the time."""
    rng = random.Random(7)
    now = int(time.time() * 1000)
    for number in range(RUNS):
        sender = Sender(SERVICES[number % 2])
        trace = bytes([number + 1]) * 16
        run = {semconv.CHAIN_ID: f"{number + 1:032x}" if number else "odd/run id?&%"}
        model = MODELS[number % 3]
        about = {semconv.REQUEST_MODEL: model} if model else {}
        end = now - (RUNS - number) * 30_000
        root = sender.span(
            {**run, semconv.OPERATION_NAME: "invoke_workflow"}, trace, end_ms=end, name="invoke_workflow"
        )
        call = sender.span(
            {
                **run,
                **about,
                semconv.OPERATION_NAME: "chat",
                semconv.USAGE_INPUT: 900,
                semconv.USAGE_CACHE_READ: 100,
                semconv.USAGE_OUTPUT: 50,
                semconv.TIME_TO_FIRST_CHUNK: 0.25,
                semconv.RETRY_COUNT: number % 2,
                semconv.FINISH_REASONS: ["end_turn"],
                **({semconv.ERROR_TYPE: "overloaded_error", semconv.HTTP_STATUS: 529} if number == 3 else {}),
            },
            trace,
            parent=root,
            end_ms=end,
            name="chat",
        )
        for index in range(STEPS):
            kind = rng.choice(KINDS)
            valid = rng.choice((True, False, None))
            confidence = rng.choice(CONFIDENCES)
            team = rng.choice(TEAMS)
            latency = rng.choice(LATENCIES_MS)
            source = rng.choice(("measured", "consumer", "apportioned")) if latency else None
            attributes = {
                **run,
                **about,
                semconv.STEP_KIND: kind,
                semconv.STEP_VALID: valid,
                semconv.STEP_CONFIDENCE: confidence,
                semconv.STEP_CONFIDENCE_METHOD: "verbalised",
                semconv.STEP_CONFIDENCE_CALIBRATED: False,
                semconv.STEP_LATENCY_SOURCE: source,
                semconv.TOOL_NAME: rng.choice(TOOLS) if kind == "tool_use" else None,
                semconv.STEP_VALIDITY_REASON: f"{rng.choice(CHECKS)}.code@1-3 other.code" if valid is False else None,
                semconv.STEP_TEXT: f"what {kind} says" if index == 5 else None,
                semconv.LABEL_PREFIX + "team": team or None,
                semconv.LABEL_PREFIX + "tier": "gold" if index % 4 == 0 else None,
            }
            sender.step(
                index,
                {key: value for key, value in attributes.items() if value is not None},
                trace=trace,
                parent=call,
                end_ms=end + index,
                latency_ms=latency,
            )
        sender.spans[0].events.add(name="e", time_unix_nano=now * 1_000_000)
        sender.spans[0].links.add(trace_id=b"\x63" * 16, span_id=b"\x63" * 8)
        live.send(sender)
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"\1" * 16, span_id=b"\2" * 8)
    record.event_name = semconv.EVALUATION_EVENT
    live.post(logs.SerializeToString(), "/v1/logs")
    metrics = ExportMetricsServiceRequest()
    resource = metrics.resource_metrics.add()
    resource.resource.attributes.add(key=semconv.SERVICE_NAME).value.string_value = SERVICES[0]
    for metric, labels in (
        (semconv.STEPS, {semconv.STEP_VALID: "true"}),
        (semconv.DROPPED, {semconv.DROPPED_REASON: "queue_full", semconv.DROPPED_KIND: "step"}),
    ):
        made = resource.scope_metrics.add().metrics.add(name=metric.name, unit=metric.unit)
        made.sum.aggregation_temporality = 2
        point = made.sum.data_points.add(as_int=4, start_time_unix_nano=5)
        for key, value in labels.items():
            point.attributes.add(key=key).value.string_value = value
    live.post(metrics.SerializeToString(), "/v1/metrics")
