"""The receiver of Alertmanager's webhooks: what it was told, in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
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


def told_at(webhook: Webhook, *, at_once: bool = False) -> Callable[[str], str]:
    """Changes Alertmanager's file: takes the "#" off the example of a webhook and has tickets go the same way.

    What a group tells after its first alert need not wait; neither does the first one where ``at_once``.
    """

    def edit(text: str) -> str:
        example = "    # webhook_configs:\n    #   - {url: 'http://127.0.0.1:8080/alert', send_resolved: true}\n"
        taken = example.replace("# ", "").replace("http://127.0.0.1:8080/alert", webhook.url)
        changes = {example: taken, "receiver: ticket": "receiver: page", "group_interval: 5m": "group_interval: 5s"}
        if at_once:
            changes["group_wait: 30s"] = "group_wait: 1s"
        for old, new in changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return edit
