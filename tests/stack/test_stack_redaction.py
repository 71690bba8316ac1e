"""200 planted secrets and personal details: none arrives; with redaction off all do, so the search can find them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode
from otlp_logs import LogSink
from stack_apps import app_environment, finish, start_app
from stack_backends import eventually
from stack_secrets import core, planted

from claudescope.testing.standin import StandIn

pytestmark = pytest.mark.stack

SERVICE = "planted"
SECRETS = planted()
PLACES = ("attribute", "list", "event name", "event attribute", "span name", "status", "resource", "label")


def emit(stack) -> None:
    """Plants each secret in one place of a trace (in turn), as a metric's label and in a log record."""
    headers = {"authorization": f"Bearer {stack.token}"}
    resource = {"service.name": SERVICE, "service.instance.id": "one", "user.id": "user-1", "attempt": 3}
    for index, (_, _, text) in enumerate(SECRETS):
        if PLACES[index % len(PLACES)] == "resource":
            resource[f"note.{index}"] = text
    described = Resource(resource)
    tracers = TracerProvider(resource=described, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{stack.endpoint}/v1/traces", headers=headers)))
    exporter = OTLPMetricExporter(f"{stack.endpoint}/v1/metrics", headers=headers)
    meters = MeterProvider(
        [PeriodicExportingMetricReader(exporter, 60_000)], resource=described, shutdown_on_exit=False
    )
    loggers = LoggerProvider(resource=described, shutdown_on_exit=False)
    loggers.add_log_record_processor(
        SimpleLogRecordProcessor(OTLPLogExporter(f"{stack.endpoint}/v1/logs", headers=headers))
    )
    counter = meters.get_meter("planted").create_counter("planted.probe")
    tracer, logger = tracers.get_tracer("planted"), loggers.get_logger("planted")
    for index, (_, _, text) in enumerate(SECRETS):
        place = PLACES[index % len(PLACES)]
        with tracer.start_as_current_span(text if place == "span name" else "work") as span:
            span.set_attribute("harmless", 0.4111111111111111)
            span.set_attribute("gen_ai.usage.input_tokens", 4096)
            if place == "attribute":
                span.set_attribute("note", text)
            elif place == "list":
                span.set_attribute("notes", ["one", text])
            elif place == "event name":
                span.add_event(text)
            elif place == "event attribute":
                span.add_event("said", {"text": text})
            elif place == "status":
                span.set_status(Status(StatusCode.ERROR, text))
            elif place == "label":
                span.set_attribute("claudescope.label.contact", text)
            counter.add(1, {"note": text})
            if index < 20:
                logger.emit(
                    severity_number=SeverityNumber.INFO,
                    body=text if index % 2 else {"said": [text]},
                    attributes={"note": text, "notes": ["one", text]},
                    event_name=text,
                )
    assert tracers.force_flush()
    assert meters.force_flush()
    tracers.shutdown()
    meters.shutdown()
    loggers.shutdown()


def arrived(stack, sink: LogSink) -> tuple[str, str, str]:
    """Everything that Jaeger, Prometheus and the log store have, as text."""
    assert eventually(lambda: len(stack.jaeger.raw(SERVICE)) == len(SECRETS), 60)
    assert eventually(lambda: stack.prometheus.value("sum(planted_probe_total)") == len(SECRETS), 60)
    assert eventually(lambda: sink.records == 20)
    traces = json.dumps(stack.jaeger.raw(SERVICE), ensure_ascii=False)
    spans = json.dumps(stack.jaeger.spans(SERVICE), ensure_ascii=False)
    series = json.dumps(stack.prometheus.series('{__name__=~".+"}'), ensure_ascii=False)
    metadata = json.dumps(stack.prometheus.metadata(), ensure_ascii=False)
    return traces + spans, series + metadata, sink.text()


def seen(text: str) -> set[int]:
    """The secrets of which the text holds the part that matters, as itself or as JSON spells it in JSON."""
    return {
        index
        for index, (kind, secret, _) in enumerate(SECRETS)
        if core(kind, secret) in text or json.dumps(core(kind, secret))[1:-1] in text
    }


def said(missed: set[int]) -> Counter[tuple[str, str]]:
    return Counter((SECRETS[index][0], PLACES[index % len(PLACES)]) for index in missed)


@pytest.fixture(scope="module")
def sink():
    with LogSink() as running:
        yield running


def test_none_arrives_with_redaction_on(new_stack, sink) -> None:
    logs = {"CS_LOGS_EXPORTERS": "[otlp_http/logs]", "CS_LOGS_ENDPOINT": sink.url}
    stack = new_stack(environment=logs)
    emit(stack)
    traces, metrics, logged = arrived(stack, sink)
    assert said(seen(traces)) == {}
    assert said(seen(metrics)) == {}
    assert said(seen(logged)) == {}

    # what is no secret is as it was, and what was one can still be told apart and looked up by who has the key
    spans = stack.jaeger.spans(SERVICE)
    assert {span["attributes"]["harmless"] for span in spans} == {0.4111111111111111}
    assert {span["attributes"]["gen_ai.usage.input_tokens"] for span in spans} == {4096}
    assert {span["resource"]["attempt"] for span in spans} == {3}
    keyed = hmac.new(stack.hmac_key.encode(), b"user-1", hashlib.sha256).hexdigest()
    assert {span["resource"]["user.id"] for span in spans} == {keyed}
    assert len(stack.prometheus.series("planted_probe_total")) == len(SECRETS)
    assert not [span for span in spans if any(name.startswith("cs.redact") for name in span["attributes"])]


def test_all_arrive_with_redaction_off(new_stack, sink) -> None:
    sink.clear()
    logs = {"CS_LOGS_EXPORTERS": "[otlp_http/logs]", "CS_LOGS_ENDPOINT": sink.url}
    stack = new_stack(environment={"CS_INTAKE": "[memory_limiter]", **logs})
    emit(stack)
    traces, metrics, logged = arrived(stack, sink)
    everything = set(range(len(SECRETS)))
    assert said(everything - seen(traces)) == {}
    assert said(everything - seen(metrics)) == {}
    assert said(set(range(20)) - seen(logged)) == {}


def test_nothing_of_an_ordinary_app_is_taken_for_a_secret(new_stack, tmp_path) -> None:
    """All content is sent; the examples' texts hold none, though they are full of numbers, dates and order numbers."""
    stack = new_stack()
    service = "support_agent"
    script = Path(shutil.copy(Path(__file__).resolve().parents[2] / "examples" / f"{service}.py", tmp_path))
    with StandIn() as standin:
        finish(start_app(script, env=app_environment(stack, standin, CLAUDESCOPE_CONTENT="full")))
    assert eventually(lambda: len(stack.jaeger.spans(service)) > 10)
    spans = stack.jaeger.spans(service)
    assert any("gen_ai.input.messages" in span["attributes"] for span in spans)
    hashed = re.compile("(?<!sha256:)(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
    assert [
        (name, value)
        for span in spans
        for name, value in {**span["attributes"], **span["resource"], "name": span["name"]}.items()
        if hashed.search(str(value))
    ] == []
