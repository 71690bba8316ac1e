"""The exporter that does not lose and does not lie, against real servers on loopback."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from otlp_sink import Answer, Sink, eventually, make_certificate

from claudescope.emit import refusals
from claudescope.emit.batching import BatchLimits, LogBatchProcessor, SpanBatchProcessor, schedule_delay_millis
from claudescope.emit.endpoint import resolve
from claudescope.emit.exporter import (
    OtlpLogExporter,
    OtlpMetricExporter,
    OtlpSpanExporter,
    make_log_exporter,
    make_metric_exporter,
    make_span_exporter,
    say_losses,
)


@pytest.fixture
def span_exporter(settings, on_drop):
    made = []

    def make(url, env=None, **values):
        exporter = OtlpSpanExporter(
            resolve("traces", {"OTEL_EXPORTER_OTLP_ENDPOINT": url, **(env or {})}), settings(**values), on_drop
        )
        made.append(exporter)
        return exporter

    yield make
    for exporter in made:
        exporter.shutdown(timeout_millis=0)


def test_export_delivers_and_flush_is_true(sink, span_exporter, make_spans, drops):
    exporter = span_exporter(sink.url)
    assert exporter.export(make_spans(3)) is SpanExportResult.SUCCESS
    assert exporter.force_flush(30_000) is True
    assert sink.span_names() == ["span 0", "span 1", "span 2"]
    path, headers, message = sink.requests[0]
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/x-protobuf"
    assert message.resource_spans[0].resource.attributes[0].value.string_value == "t"
    assert drops == []
    assert exporter.losses == {}


def test_one_connection_serves_all_batches(sink, span_exporter, make_spans):
    exporter = span_exporter(sink.url)
    for index in range(5):
        exporter.export(make_spans(1, first=index))
        assert exporter.force_flush(30_000) is True
    assert sink.connections == 1
    assert len(sink.requests) == 5


def test_a_server_that_comes_up_later_gets_everything_in_order(free_port, span_exporter, make_spans, drops):
    exporter = span_exporter(f"http://127.0.0.1:{free_port}")
    for index in range(20):
        assert exporter.export(make_spans(5, first=5 * index)) is SpanExportResult.SUCCESS
    eventually(lambda: exporter.sender.last_error == "connection refused")
    assert exporter.force_flush(50) is False  # nobody there yet: nothing is lost, but nothing is delivered either
    assert exporter.sender.waiting == 100
    late = Sink(port=free_port)
    try:
        assert exporter.force_flush(30_000) is True
        assert late.span_names() == [f"span {index}" for index in range(100)]
        # 20 batches waited behind the first group; they go out together, not one by one
        assert len(late.requests) <= 3
        assert drops == []
    finally:
        late.close()


def test_a_server_that_goes_away_and_comes_back_loses_nothing(span_exporter, make_spans, drops):
    first = Sink()
    exporter = span_exporter(first.url)
    exporter.export(make_spans(10))
    assert exporter.force_flush(30_000) is True
    first.close()
    for index in range(10, 60):
        exporter.export(make_spans(1, first=index))
    second = Sink(port=first.port)
    try:
        assert exporter.force_flush(30_000) is True
        assert first.span_names() + second.span_names() == [f"span {index}" for index in range(60)]
        assert drops == []
    finally:
        second.close()


def test_away_for_longer_than_the_buffer_is_counted_exactly(free_port, span_exporter, make_spans, drops):
    batch = make_spans(10)
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    size = encode_spans(batch).ByteSize()
    exporter = span_exporter(f"http://127.0.0.1:{free_port}", export_buffer=3 * size)
    results = [exporter.export(batch) for _ in range(5)]
    # three batches of 10 fit; the two newest are dropped
    assert results == [SpanExportResult.SUCCESS] * 3 + [SpanExportResult.FAILURE] * 2
    assert drops == [("buffer_full", "span", 10), ("buffer_full", "span", 10)]
    assert exporter.losses == {"buffer_full": 20}
    sink = Sink(port=free_port)
    try:
        assert exporter.force_flush(30_000) is False  # all that waited is delivered, but something was dropped
        assert len(sink.span_names()) == 30
        assert exporter.force_flush(30_000) is True  # nothing was dropped since
    finally:
        sink.close()


def test_away_for_longer_than_the_retry_is_counted_exactly(free_port, span_exporter, make_spans, drops):
    exporter = span_exporter(f"http://127.0.0.1:{free_port}", export_retry=0.3)
    exporter.export(make_spans(7))
    exporter.export(make_spans(5))
    eventually(lambda: sum(number for _, _, number in drops) == 12)
    assert {(reason, kind) for reason, kind, _ in drops} == {("retry_exhausted", "span")}
    assert exporter.force_flush(30_000) is False
    assert exporter.force_flush(30_000) is True
    sink = Sink(port=free_port)
    try:
        exporter.export(make_spans(2))
        assert exporter.force_flush(30_000) is True
        assert len(sink.span_names()) == 2
    finally:
        sink.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_retryable_answers_are_tried_again(status, sink, span_exporter, make_spans, drops):
    sink.answers.extend([Answer(status)] * 3)
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(4))
    assert exporter.force_flush(30_000) is True
    assert (sink.refused, len(sink.span_names()), drops) == (3, 4, [])


def test_retry_after_is_honoured_even_by_flush(sink, span_exporter, make_spans):
    sink.answers.append(Answer(503, {"Retry-After": "1"}))
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(1))
    eventually(lambda: sink.refused == 1)
    assert exporter.force_flush(30_000) is True
    assert sink.times[1] - sink.times[0] >= 1.0


def test_retry_after_beyond_the_limit_does_not_keep_a_batch_for_ever(sink, span_exporter, make_spans, drops):
    sink.default = Answer(503, {"Retry-After": "3600"})
    exporter = span_exporter(sink.url, export_retry=0.2)
    exporter.export(make_spans(3))
    eventually(lambda: drops == [("retry_exhausted", "span", 3)])
    assert sink.refused == 1


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_other_answers_are_rejected_and_not_tried_again(status, sink, span_exporter, make_spans, drops):
    sink.answers.append(Answer(status))
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(4))
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 4)]
    assert sink.refused == 1
    exporter.export(make_spans(1))
    assert exporter.force_flush(30_000) is True


def test_refused_credentials_are_said_once_and_not_once_a_signal(sink, settings, make_spans, caplog):
    """Three batches of two signals are refused, then both are taken, and a later refusal is news."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}
    spans = OtlpSpanExporter(resolve("traces", env), settings())
    metrics = OtlpMetricExporter(resolve("metrics", env), settings(), env)
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("t")
    meter.create_counter("c").add(1)
    collected = reader.get_metrics_data()

    def send():
        spans.export(make_spans(2))
        taken = spans.force_flush(30_000)
        metrics.export(collected)
        return taken, metrics.force_flush(30_000)

    try:
        sink.default = Answer(401)
        assert [send(), send(), send()] == [(False, False)] * 3
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith(f"claudescope: {sink.url} refuses everything (HTTP 401 Unauthorized)")
        assert line.endswith(
            "Set OTEL_EXPORTER_OTLP_HEADERS to those that it takes, such as authorization=Bearer%20TOKEN."
        )
        assert (spans.losses, metrics.losses) == ({"rejected": 6}, {"rejected": 3})
        sink.default = Answer(200)
        assert send() == (True, True)
        sink.default = Answer(403)
        assert send() == (False, False)
        assert "(HTTP 403 Forbidden)" in caplog.records[-1].getMessage()
        assert len(caplog.records) == 2
    finally:
        spans.shutdown(timeout_millis=0)
        metrics.shutdown(timeout_millis=0)


def test_a_signal_with_credentials_of_its_own_does_not_make_the_other_one_say_it_again(
    sink, settings, make_spans, caplog
):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}
    spans = OtlpSpanExporter(resolve("traces", env), settings())
    try:
        for _ in range(3):
            sink.answers.append(Answer(401))
            spans.export(make_spans(1))
            assert spans.force_flush(30_000) is False
            refusals.over(sink.url, "log")  # what a signal with headers of its own does
        assert len(caplog.records) == 1
    finally:
        spans.shutdown(timeout_millis=0)


def test_a_rejected_joint_request_is_split_so_that_only_the_bad_batch_is_lost(
    free_port, span_exporter, make_spans, drops
):
    exporter = span_exporter(f"http://127.0.0.1:{free_port}")
    exporter.export(make_spans(1))
    eventually(lambda: exporter.sender.last_error)
    for index in range(1, 4):
        exporter.export(make_spans(1, first=index))
    # span 0 alone (its group was made when nothing else waited); then 1-3 jointly: 400; then 1, 2 (400), 3
    sink = Sink(port=free_port, answers=[Answer(), Answer(400), Answer(), Answer(400), Answer()])
    try:
        assert exporter.force_flush(30_000) is False
        assert sink.span_names() == ["span 0", "span 1", "span 3"]
        assert drops == [("rejected", "span", 1)]
    finally:
        sink.close()


def test_a_partial_success_is_a_loss(sink, span_exporter, make_spans, drops):
    partial = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    )
    sink.answers.append(Answer(200, {"Content-Type": "application/x-protobuf"}, partial.SerializeToString()))
    sink.answers.append(
        Answer(200, {"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":""}}')
    )
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(5))
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 2)]
    exporter.export(make_spans(5))
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 2), ("rejected", "span", 3)]
    assert exporter.sender.last_error == "too old"


def test_a_server_that_hangs_is_left_after_the_timeout(sink, span_exporter, make_spans, drops):
    sink.answers.append(Answer(hang=60))
    exporter = span_exporter(sink.url, {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.3"})
    exporter.export(make_spans(2))
    eventually(lambda: exporter.sender.last_error == "timed out")
    assert exporter.force_flush(30_000) is True
    assert drops == []


def test_an_answer_that_is_no_http_is_tried_again(span_exporter, make_spans, drops):
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        exporter = span_exporter(f"http://127.0.0.1:{port}")
        exporter.export(make_spans(1))
        eventually(lambda: exporter.sender.last_error)
        thread.join()
    sink = Sink(port=port)
    try:
        assert exporter.force_flush(30_000) is True
        assert drops == []
    finally:
        sink.close()


def test_shutdown_waits_no_longer_than_told_and_counts_what_is_left(
    free_port, span_exporter, make_spans, drops, capsys
):
    exporter = span_exporter(f"http://127.0.0.1:{free_port}")
    exporter.export(make_spans(123))
    eventually(lambda: exporter.sender.last_error)
    start = time.monotonic()
    exporter.shutdown(timeout_millis=300)
    assert 0.3 <= time.monotonic() - start < 5
    assert drops == [("retry_exhausted", "span", 123)]
    assert say_losses([exporter, object()]) == 123
    assert capsys.readouterr().err == (
        f"claudescope: 123 spans were not delivered to http://127.0.0.1:{free_port}: connection refused\n"
    )
    assert exporter.export(make_spans(1)) is SpanExportResult.FAILURE


def test_nothing_lost_says_nothing(sink, span_exporter, make_spans, capsys):
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(1))
    exporter.shutdown(timeout_millis=30_000)
    assert say_losses([exporter]) == 0
    assert capsys.readouterr().err == ""
    assert sink.span_names() == ["span 0"]


SCRIPT = """
import atexit, sys, time
from claudescope.emit import refusals
from claudescope.emit.batching import BatchLimits, LogBatchProcessor, SpanBatchProcessor
from claudescope.emit.exporter import make_log_exporter, make_span_exporter, say_losses
from claudescope.settings import Settings
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
import os

settings = Settings({"exit_wait": float(sys.argv[1])})
spans, logs = make_span_exporter(settings, os.environ), make_log_exporter(settings, os.environ)
limits = BatchLimits.read(spans.endpoint, os.environ)
provider, loggers = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
span_processor, log_processor = SpanBatchProcessor(spans, limits), LogBatchProcessor(logs, limits)
provider.add_span_processor(span_processor)
loggers.add_log_record_processor(log_processor)

def end():
    until = time.monotonic() + settings.exit_wait
    for processor in (span_processor, log_processor):
        processor.shutdown(max(0, until - time.monotonic()) * 1000)
    say_losses((spans, logs))

atexit.register(end)

def emit(first, number, records=4):
    tracer, logger = provider.get_tracer("t"), loggers.get_logger("t")
    for index in range(first, first + number):
        tracer.start_span(f"span {index}").end()
    for _ in range(records):
        logger.emit(LogRecord(event_name="e", timestamp=1))
"""


def run_script(tail, url, wait="0.5"):
    env = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + textwrap.dedent(tail), wait],
        env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": url},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_process_that_ends_with_nobody_listening_says_what_was_lost(free_port):
    url = f"http://127.0.0.1:{free_port}"
    ended = run_script("start = time.monotonic(); emit(0, 123)", url)
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[-1] == (
        f"claudescope: 123 spans and 4 logs were not delivered to {url}: connection refused"
    )


def test_a_process_that_ends_at_once_delivers(sink):
    # nothing has been sent when the interpreter begins to end: the processors and senders have just been made
    ended = run_script("emit(0, 57)", sink.url, "60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sink.span_names() == [f"span {index}" for index in range(57)]
    assert sink.log_count() == 4


def test_items_made_while_the_interpreter_ends_are_delivered(sink):
    # atexit runs the last registered first; Python 3.12 and later start no thread any more by then
    ended = run_script("atexit.register(emit, 0, 3)", sink.url, "60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sink.span_names() == ["span 0", "span 1", "span 2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_sends_its_own_spans_and_not_its_parents(sink):
    sink.answers.append(Answer(503, {"Retry-After": "1"}))  # so that the parent's batch still waits when it forks
    ended = run_script(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        emit(0, 2, records=0)
        span_processor._batching.drain()
        while not spans.sender.last_error:
            time.sleep(0.005)
        child = os.fork()
        emit(10 if child else 20, 3)
        if child:
            os.waitpid(child, 0)
        """,
        sink.url,
        "60",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    # the parent's 0, 1 once, from the parent only
    assert sorted(sink.span_names()) == sorted(f"span {index}" for index in (0, 1, 10, 11, 12, 20, 21, 22))


def test_batch_processor_batches_counts_what_finds_no_room_and_makes_flush_false(sink, span_exporter, drops):
    exporter = span_exporter(sink.url)
    processor = SpanBatchProcessor(exporter, BatchLimits(delay_millis=3_600_000, batch=1000, queue=10))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("t")
    for index in range(12):
        tracer.start_span(f"span {index}").end()
    assert sink.requests == []  # an hour has not passed and a batch is not full
    assert processor.force_flush(30_000) is False
    assert drops == [("queue_full", "span", 1)] * 2
    assert sink.span_names() == [f"span {index}" for index in range(10)]
    assert processor.force_flush(30_000) is True
    processor.shutdown(1000)


def test_batch_processor_exports_a_full_batch_without_waiting(sink, span_exporter):
    exporter = span_exporter(sink.url)
    processor = SpanBatchProcessor(exporter, BatchLimits(delay_millis=3_600_000, batch=4, queue=100))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for index in range(4):
        provider.get_tracer("t").start_span(f"span {index}").end()
    eventually(lambda: len(sink.span_names()) == 4)
    processor.shutdown(1000)


def test_batch_processor_exports_after_its_delay(sink, span_exporter):
    exporter = span_exporter(sink.url)
    processor = SpanBatchProcessor(exporter, BatchLimits.read(exporter.endpoint, {}))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    for round_ in range(3):
        provider.get_tracer("t").start_span("s").end()
        eventually(lambda round_=round_: len(sink.span_names()) == round_ + 1)
    processor.shutdown(1000)


def test_logs_and_metrics_take_the_same_way(sink, settings, on_drop, drops):
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": sink.url}
    logs = make_log_exporter(settings(), env, on_drop)
    assert isinstance(logs, OtlpLogExporter)
    processor = LogBatchProcessor(logs, BatchLimits.read(logs.endpoint, env, "OTEL_BLRP"))
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(processor)
    loggers.get_logger("t").emit(LogRecord(event_name="e", severity_number=SeverityNumber.INFO, attributes={"a": 1}))
    assert processor.force_flush(30_000) is True
    metrics = make_metric_exporter(settings(), env, on_drop)
    assert isinstance(metrics, OtlpMetricExporter)
    reader = PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)
    meters = MeterProvider([reader], shutdown_on_exit=False)
    counter = meters.get_meter("t").create_counter("c")
    counter.add(2)
    counter.add(3, {"k": "v"})
    reader.collect()
    assert metrics.force_flush(30_000) is True
    assert sorted(path for path, _, _ in sink.requests) == ["/v1/logs", "/v1/metrics"]
    assert sink.log_count() == 1
    sink.answers.append(Answer(400))
    reader.collect()
    assert metrics.force_flush(30_000) is False
    assert drops == [("rejected", "metric", 2)]  # two data points
    meters.shutdown()
    processor.shutdown()


def test_an_item_that_cannot_be_encoded_is_counted_and_takes_no_other_with_it(sink, span_exporter, make_spans, drops):
    exporter = span_exporter(sink.url)
    spans = list(make_spans(7))
    spans[3]._name = "half a pair: \ud83d"  # JSON can spell it, UTF-8 cannot
    assert exporter.export(spans) is SpanExportResult.FAILURE
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 1)]
    assert sink.span_names() == [f"span {index}" for index in (0, 1, 2, 4, 5, 6)]


def test_an_oversized_batch_is_split(sink, span_exporter, make_spans, monkeypatch):
    from claudescope.emit import exporter as module

    monkeypatch.setattr(module, "LARGEST_REQUEST", 2000)
    exporter = span_exporter(sink.url)
    exporter.export(make_spans(8, text="x" * 900))  # about 1 kB a span: no request holds two
    assert exporter.force_flush(30_000) is True
    assert sink.span_names() == [f"span {index}" for index in range(8)]


@pytest.mark.parametrize("compression", ["gzip", "deflate", "none"])
def test_compression_and_headers_general_and_of_the_signal(compression, sink, span_exporter, make_spans):
    exporter = span_exporter(
        sink.url,
        {
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": compression,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-a=general",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "X-A=own,authorization=Bearer%20t",
        },
    )
    exporter.export(make_spans(3))
    assert exporter.force_flush(30_000) is True
    headers = sink.requests[0][1]
    assert headers.get("content-encoding") == (None if compression == "none" else compression)
    assert (headers["x-a"], headers["authorization"]) == ("own", "Bearer t")
    assert len(sink.span_names()) == 3


def test_the_senders_requests_are_not_traced(sink, span_exporter, make_spans):
    from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled, is_instrumentation_enabled

    exporter = span_exporter(sink.url)
    seen = []
    send = exporter.sender._transport.send

    def watched(body, timeout):
        seen.append((is_instrumentation_enabled(), is_http_instrumentation_enabled()))
        return send(body, timeout)

    exporter.sender._transport.send = watched
    exporter.export(make_spans(1))
    assert exporter.force_flush(30_000) is True
    assert seen == [(False, False)]


def test_exporters_by_name(settings):
    assert make_span_exporter(settings(), {"OTEL_TRACES_EXPORTER": "none"}) is None
    assert make_log_exporter(settings(), {"OTEL_LOGS_EXPORTER": "none"}) is None
    assert make_metric_exporter(settings(), {"OTEL_METRICS_EXPORTER": "none"}) is None
    made = [
        make_span_exporter(settings(), {"OTEL_TRACES_EXPORTER": "console"}),
        make_log_exporter(settings(), {"OTEL_LOGS_EXPORTER": "console"}),
        make_metric_exporter(settings(), {"OTEL_METRICS_EXPORTER": "console"}),
        make_span_exporter(settings(), {"OTEL_TRACES_EXPORTER": "zipkin"}),
    ]
    assert [type(exporter).__name__ for exporter in made] == [
        "ConsoleSpanExporter",
        "ConsoleLogRecordExporter",
        "ConsoleMetricExporter",
        "OtlpSpanExporter",
    ]


def test_schedule_delay():
    def delay(url, **env):
        return schedule_delay_millis(resolve("traces", {"OTEL_EXPORTER_OTLP_ENDPOINT": url}), env)

    assert [delay(f"http://{host}") for host in ("localhost:4318", "127.0.0.1:9", "[::1]:4318")] == [20, 20, 20]
    assert delay("http://collector:4318") == 5000
    assert delay("http://localhost:4318", OTEL_BSP_SCHEDULE_DELAY="700") == 700
    assert delay("http://collector:4318", OTEL_BSP_SCHEDULE_DELAY="700") == 700
    assert delay("http://localhost:4318", OTEL_BSP_SCHEDULE_DELAY="soon") == 20
    endpoint = resolve("traces", {})
    assert BatchLimits.read(endpoint, {"OTEL_BSP_MAX_QUEUE_SIZE": "9", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "99"}) == (
        BatchLimits(20, 9, 9)
    )


def test_a_proxy_is_used_for_what_is_not_on_this_machine(sink, span_exporter, make_spans, monkeypatch):
    monkeypatch.setenv("http_proxy", sink.url)
    monkeypatch.delenv("no_proxy", raising=False)
    exporter = span_exporter("http://collector.invalid:4318")
    exporter.export(make_spans(2))
    assert exporter.force_flush(30_000) is True
    assert sink.requests[0][0] == "http://collector.invalid:4318/v1/traces"
    assert sink.requests[0][1]["Host"] == "collector.invalid:4318"


def test_tls_with_a_certificate_of_ones_own_and_of_the_client(tmp_path, span_exporter, make_spans, drops):
    import ssl

    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    sink = Sink(tls=context)
    try:
        stranger = span_exporter(sink.url)
        stranger.export(make_spans(1))
        eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in stranger.sender.last_error)
        env = {
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate),
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificate),
            "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(key),
        }
        friend = span_exporter(sink.url, env)
        friend.export(make_spans(2))
        assert friend.force_flush(30_000) is True
        assert sink.span_names() == ["span 0", "span 1"]
    finally:
        sink.close()


def test_a_certificate_that_is_not_there_is_named(tmp_path, span_exporter, make_spans):
    exporter = span_exporter("https://127.0.0.1:9", {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "gone.pem")})
    exporter.export(make_spans(1))
    eventually(lambda: exporter.sender.last_error)
    assert exporter.sender.last_error.endswith("No such file or directory")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_minute_without_a_server_at_100_spans_a_second_loses_nothing(free_port, span_exporter, drops):
    exporter = span_exporter(f"http://127.0.0.1:{free_port}")
    processor = SpanBatchProcessor(exporter, BatchLimits.read(exporter.endpoint, {}))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("t")
    start = time.monotonic()
    late, count = None, 0
    while (now := time.monotonic() - start) < 62:
        if late is None and now > 60:
            late = Sink(port=free_port)
        tracer.start_span(f"span {count}").end()
        count += 1
        time.sleep(max(0.0, start + count / 100 - time.monotonic()))
    try:
        assert processor.force_flush(60_000) is True
        assert late.span_names() == [f"span {index}" for index in range(count)]
        assert count > 1000
        assert drops == []
    finally:
        processor.shutdown(1000)
        late.close()
