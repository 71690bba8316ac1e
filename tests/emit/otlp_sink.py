"""A real OTLP/HTTP server on loopback that can be told how to answer."""

import contextlib
import gzip
import threading
import time
import zlib
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


def eventually(condition, seconds=30.0):
    """Waits for what must become true; the limit is generous, since a loaded machine is slow."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.005)


class Answer:
    """Status, headers and body of one response; ``hang`` seconds before it."""

    def __init__(self, status=200, headers=None, body=b"", hang=0.0):
        self.status, self.headers, self.body, self.hang = status, headers or {}, body, hang


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


class Sink:
    """``answers`` are given first, one a request; then ``default``. ``requests`` holds (path, headers, message)."""

    def __init__(self, port=0, default=None, answers=(), tls=None):
        self.answers = deque(answers)
        self.default = default or Answer()
        self.requests = []
        self.refused = 0
        self.times = []
        self.connections = 0
        self._over = threading.Event()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                sink.connections += 1
                sink._open.add(self.connection)

            def finish(self):
                sink._open.discard(self.connection)
                super().finish()

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["content-length"]))
                sink.times.append(time.monotonic())
                encoding = self.headers.get("content-encoding")
                data = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(encoding, bytes)(raw)
                answer = sink.answers.popleft() if sink.answers else sink.default
                if answer.hang:
                    sink._over.wait(answer.hang)
                if answer.status < 300:
                    sink.requests.append(
                        (self.path, dict(self.headers), MESSAGES[urlsplit(self.path).path].FromString(data))
                    )
                else:
                    sink.refused += 1
                try:
                    self.send_response(answer.status)
                    for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer.body)
                except OSError:
                    pass

            def log_message(self, *args):
                pass

        self._open = set()
        self._server = _Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._open):  # a server that goes away takes its kept-alive connections with it
            with contextlib.suppress(OSError):
                connection.shutdown(2)

    def span_names(self):
        return [
            span.name
            for path, _, message in self.requests
            if path == "/v1/traces"
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def log_count(self):
        return sum(
            len(scope.log_records)
            for path, _, message in self.requests
            if path == "/v1/logs"
            for resource in message.resource_logs
            for scope in resource.scope_logs
        )


def make_certificate(folder):
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sink")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"
