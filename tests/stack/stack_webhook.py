"""The receiver of Alertmanager's webhooks: what it was told, in order."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """A context manager; ``deliveries`` are the bodies that came, ``alerts`` what they hold."""

    def __init__(self) -> None:
        self.deliveries: list[dict[str, Any]] = []
        deliveries = self.deliveries

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                deliveries.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alert"

    def alerts(self, name: str, status: str = "firing") -> list[dict[str, Any]]:
        return [
            alert
            for delivery in tuple(self.deliveries)
            for alert in delivery["alerts"]
            if alert["labels"]["alertname"] == name and alert["status"] == status
        ]

    def __enter__(self) -> Webhook:
        threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
