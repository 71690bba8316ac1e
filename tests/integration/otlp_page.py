"""What receives in these tests: an OTLP server over HTTP and gRPC that remembers what came, and how."""

import gzip
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

REQUESTS = {
    "traces": traces.ExportTraceServiceRequest,
    "metrics": metrics.ExportMetricsServiceRequest,
    "logs": logs.ExportLogsServiceRequest,
}


def value_of(value):
    which = value.WhichOneof("value")
    if which == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, which)


def mapping(pairs):
    return {pair.key: value_of(pair.value) for pair in pairs}


class Page:
    """``requests`` holds (signal, protocol, headers, message), in order of arrival."""

    def __init__(self):
        self.requests = []
        page = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress}
                data = unpack.get(headers.get("content-encoding"), bytes)(raw)
                signal = self.path.rsplit("/", 1)[-1]
                page.requests.append((signal, "http/protobuf", headers, REQUESTS[signal].FromString(data)))
                self.send_response_only(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format, *args):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self._grpc = None

    def grpc(self):
        """Starts the gRPC side; gives its address."""
        import grpc

        self._grpc = grpc.server(ThreadPoolExecutor(2))
        for signal, service in (
            ("traces", "trace.v1.Trace"),
            ("metrics", "metrics.v1.Metrics"),
            ("logs", "logs.v1.Logs"),
        ):
            name = f"opentelemetry.proto.collector.{service}Service"

            def export(message, context, signal=signal):
                self.requests.append((signal, "grpc", dict(context.invocation_metadata()), message))
                return b""

            handler = grpc.unary_unary_rpc_method_handler(export, REQUESTS[signal].FromString, bytes)
            self._grpc.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": handler}),))
        port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()
        return f"http://127.0.0.1:{port}"

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        if self._grpc is not None:
            self._grpc.stop(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def headers(self, signal):
        return [headers for kind, _, headers, _ in self.requests if kind == signal]

    def protocols(self):
        return {(signal, protocol) for signal, protocol, _, _ in self.requests}

    @property
    def spans(self):
        """Each span as a dict; ``attributes`` and ``resource`` as mappings."""
        return [
            {
                "name": span.name,
                "scope": scope.scope.name,
                "id": span.span_id.hex(),
                "parent": span.parent_span_id.hex(),
                "trace": span.trace_id.hex(),
                "attributes": mapping(span.attributes),
                "resource": mapping(resource.resource.attributes),
            }
            for signal, _, _, message in self.requests
            if signal == "traces"
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def steps(self):
        return [span for span in self.spans if span["name"].startswith("reasoning_step")]

    @property
    def events(self):
        return [
            {"name": record.event_name, "scope": scope.scope.name, "attributes": mapping(record.attributes)}
            for signal, _, _, message in self.requests
            if signal == "logs"
            for resource in message.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def samples(self, name):
        """(labels, points in order of arrival) of each series of a metric."""
        found = {}
        for signal, _, _, message in self.requests:
            if signal != "metrics":
                continue
            for resource in message.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        if metric.name == name:
                            data = getattr(metric, metric.WhichOneof("data"))
                            for point in data.data_points:
                                labels = tuple(sorted(mapping(point.attributes).items()))
                                found.setdefault(labels, []).append(point)
        return found
