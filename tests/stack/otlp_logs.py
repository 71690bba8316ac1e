"""A log store that keeps what it is sent: OTLP/HTTP on loopback."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest


class LogSink:
    """A context manager; ``text()`` is everything that came."""

    def __init__(self) -> None:
        self.messages: list[ExportLogsServiceRequest] = []
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                messages.append(ExportLogsServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def records(self) -> int:
        return sum(
            len(scope.log_records)
            for message in tuple(self.messages)
            for part in message.resource_logs
            for scope in part.scope_logs
        )

    def text(self) -> str:
        return "\n".join(map(str, self.messages))

    def clear(self) -> None:
        self.messages.clear()

    def __enter__(self) -> LogSink:
        threading.Thread(target=self._server.serve_forever, name="log sink", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
