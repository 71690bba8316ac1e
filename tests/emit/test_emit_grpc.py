"""The same exporter over OTLP/gRPC, against a real server."""

import subprocess
import sys
from concurrent import futures

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from otlp_sink import eventually, make_certificate

from claudescope.emit.endpoint import resolve
from claudescope.emit.exporter import OtlpSpanExporter


class Service(TraceServiceServicer):
    def __init__(self, answers=()):
        self.answers = list(answers)
        self.names = []
        self.metadata = []

    def Export(self, request, context):
        self.metadata.append(dict(context.invocation_metadata()))
        answer = self.answers.pop(0) if self.answers else ExportTraceServiceResponse()
        if isinstance(answer, tuple):
            code, trailing = answer
            context.set_trailing_metadata(trailing)
            context.abort(code, "told to")
        self.names += [
            span.name for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]
        return answer


@pytest.fixture
def serve():
    servers = []

    def start(service, port=0):
        server = grpc.server(futures.ThreadPoolExecutor(2))
        add_TraceServiceServicer_to_server(service, server)
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        servers.append(server)
        return bound

    yield start
    for server in servers:
        server.stop(None).wait(5)


@pytest.fixture
def export(settings, on_drop):
    made = []

    def make(port, **env):
        variables = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
        exporter = OtlpSpanExporter(resolve("traces", {**variables, **env}), settings(), on_drop)
        made.append(exporter)
        return exporter

    yield make
    for exporter in made:
        exporter.shutdown(timeout_millis=0)


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_delivers_with_headers(compression, serve, export, make_spans, drops):
    service = Service()
    exporter = export(
        serve(service), OTEL_EXPORTER_OTLP_COMPRESSION=compression, OTEL_EXPORTER_OTLP_HEADERS="X-Token=abc"
    )
    exporter.export(make_spans(3))
    assert exporter.force_flush(30_000) is True
    assert service.names == ["span 0", "span 1", "span 2"]
    assert service.metadata[0]["x-token"] == "abc"
    assert drops == []


def test_a_server_that_comes_up_later(free_port, serve, export, make_spans, drops):
    exporter = export(free_port)
    exporter.export(make_spans(5))
    eventually(lambda: exporter.sender.last_error == "connection refused")
    service = Service()
    serve(service, free_port)
    assert exporter.force_flush(30_000) is True
    assert len(service.names) == 5
    assert drops == []


def test_codes_that_may_be_tried_again_are(serve, export, make_spans, drops):
    delay = RetryInfo(retry_delay=Duration(nanos=50_000_000)).SerializeToString()
    service = Service(
        [
            (grpc.StatusCode.UNAVAILABLE, ()),
            (grpc.StatusCode.DEADLINE_EXCEEDED, ()),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, (("google.rpc.retryinfo-bin", delay),)),
        ]
    )
    exporter = export(serve(service))
    exporter.export(make_spans(2))
    assert exporter.force_flush(30_000) is True
    assert (service.names, service.answers, drops) == (["span 0", "span 1"], [], [])


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNIMPLEMENTED"])
def test_other_codes_are_rejected(code, serve, export, make_spans, drops):
    exporter = export(serve(Service([(grpc.StatusCode[code], ())])))
    exporter.export(make_spans(2))
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 2)]
    assert exporter.sender.last_error == f"gRPC {code} told to"


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "PERMISSION_DENIED"])
def test_refused_credentials_are_said_with_what_to_change(code, serve, export, make_spans, caplog):
    exporter = export(serve(Service([(grpc.StatusCode[code], ())] * 2)))
    for _ in range(2):
        exporter.export(make_spans(2))
        assert exporter.force_flush(30_000) is False
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"refuses everything (gRPC {code} told to)" in line
    assert "Set OTEL_EXPORTER_OTLP_HEADERS" in line


def test_a_partial_success_is_a_loss(serve, export, make_spans, drops):
    answer = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=1))
    exporter = export(serve(Service([answer])))
    exporter.export(make_spans(2))
    assert exporter.force_flush(30_000) is False
    assert drops == [("rejected", "span", 1)]


def test_tls_with_a_certificate_of_ones_own(tmp_path, settings, make_spans):
    certificate, key = make_certificate(tmp_path)
    service = Service()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(service, server)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    env = {
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"https://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate),
    }
    exporter = OtlpSpanExporter(resolve("traces", env), settings())
    try:
        exporter.export(make_spans(2))
        assert exporter.force_flush(30_000) is True
        assert service.names == ["span 0", "span 1"]
    finally:
        exporter.shutdown(timeout_millis=0)
        server.stop(None).wait(5)


def test_grpc_is_imported_only_when_it_is_asked_for():
    code = (
        "import sys\n"
        "from claudescope.emit.exporter import make_span_exporter\n"
        "from claudescope.settings import Settings\n"
        "make_span_exporter(Settings({}), {})\n"
        "print(sorted({'grpc', 'requests', 'anthropic'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
