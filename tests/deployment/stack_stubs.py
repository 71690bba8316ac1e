"""Small servers on loopback that answer as the parts of the stack do, where the real programs are not at hand."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

Reply = tuple[int, Any]
TOKEN = "a-token"


class Stub:
    """Answers each path of ``replies``, looked up without its query; anything else is 404. Keeps what was asked."""

    def __init__(
        self, replies: Mapping[str, Reply | Callable[[Any], Reply]], tls: ssl.SSLContext | None = None
    ) -> None:
        self.replies = dict(replies)
        self.asked: list[tuple[str, bytes]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                stub.asked.append((self.path, body))
                path = self.path.partition("?")[0]
                reply = next((found for key, found in stub.replies.items() if path.startswith(key)), (404, {}))
                status, answer = reply(self) if callable(reply) else reply
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _otlp(request: Any) -> Reply:
    return (200, {}) if request.headers.get("Authorization") == f"Bearer {TOKEN}" else (401, {})


def _counted() -> Callable[[Any], Reply]:
    """What the collector counts comes at the second question: the first is asked before the span is sent."""
    times: list[None] = []

    def reply(_: Any) -> Reply:
        times.append(None)
        series = [{"metric": {}, "values": [[1.7e9, "1"], [1.7e9 + len(times), str(len(times))]]}]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": series}}

    return reply


def data(**what: Any) -> Reply:
    return 200, {"status": "success", "data": what}


RULES = [
    {"name": "CollectorDown", "type": "alerting", "health": "ok", "state": "inactive"},
    {"name": "a:b", "type": "recording", "health": "ok"},
]
TARGETS = [
    {"health": "up", "labels": {"job": job}, "scrapeUrl": "u", "lastError": ""} for job in ("collector", "jaeger")
]


def healthy() -> dict[str, dict[str, Any]]:
    """What each part answers when all is well; tests change it."""
    login = "Basic YWRtaW46YS1wYXNzd29yZA=="  # admin:a-password

    def inside(answer: Any) -> Callable[[Any], Reply]:
        return lambda request: (200, answer) if request.headers.get("Authorization") == login else (401, {})

    return {
        "collector": {"/v1/traces": _otlp},
        "jaeger": {
            "/api/v3/services": (200, {"services": ["shop"]}),
            "/api/metrics/minstep": (200, {"data": 1}),
            "/api/v3/traces/": (200, {"result": {"resourceSpans": [{}]}}),
        },
        "prometheus": {
            "/api/v1/status/buildinfo": data(version="3.16.0"),
            "/api/v1/status/flags": data(
                **{"web.enable-otlp-receiver": "true", "enable-feature": "exemplar-storage,x"}
            ),
            "/api/v1/rules": data(groups=[{"rules": RULES}]),
            "/api/v1/targets": data(activeTargets=TARGETS),
            "/api/v1/alertmanagers": data(activeAlertmanagers=[{"url": "u"}]),
            "/api/v1/query": _counted(),
        },
        "alertmanager": {
            "/api/v2/status": (
                200,
                {
                    "versionInfo": {"version": "0.31.1"},
                    "config": {"original": "receivers:\n- name: page\n  webhook_configs:\n  - url: <secret>\n"},
                },
            )
        },
        "grafana": {
            "/api/health": (200, {"database": "ok", "version": "13.2.3"}),
            "/api/datasources/uid/prometheus/health": inside({"status": "OK", "message": "fine"}),
            "/api/datasources/uid/jaeger/health": inside({"status": "OK"}),
            "/api/datasources/proxy/uid/alertmanager/api/v2/status": inside({"versionInfo": {"version": "0.31.1"}}),
            "/api/search": inside([{"uid": "claudescope-overview"}, {"uid": "claudescope-steps"}, {"uid": "other"}]),
        },
    }


@contextlib.contextmanager
def grpc_stub(token: str = TOKEN, tls: tuple[bytes, bytes] | None = None) -> Iterator[int]:
    """An OTLP/gRPC receiver that wants a token; gives its port."""

    def export(_: bytes, context: grpc.ServicerContext) -> bytes:
        if ("authorization", f"Bearer {token}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        return ExportTraceServiceResponse().SerializeToString()

    server = grpc.server(futures.ThreadPoolExecutor(2))
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    if tls is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([tls]))
    server.start()
    try:
        yield port
    finally:
        server.stop(None)
