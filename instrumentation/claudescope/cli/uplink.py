"""A server that has the data folder, as somewhere to send requests to."""

from __future__ import annotations

import http.client
import json
import time
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ..errors import UsageError

__all__ = ["RefusedError", "Uplink"]

_PATIENCE: Final = 60.0
"""Seconds that a request is tried again while the server is behind."""
_TIMEOUT: Final = 60.0


class RefusedError(Exception):
    """The request is not one that is taken; the text says why."""


class Uplink:
    """OTLP/HTTP to one server. Raises UsageError when it ends, does not let us in, or stays behind for a minute."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        self._headers = {"Content-Type": "application/x-protobuf", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def take(self, request: ExportTraceServiceRequest | ExportLogsServiceRequest) -> None:
        """Sends one request; what this returned for is stored. Raises RefusedError."""
        path = "/v1/traces" if isinstance(request, ExportTraceServiceRequest) else "/v1/logs"
        body = request.SerializeToString()
        until = time.monotonic() + _PATIENCE
        while True:
            status, answer, wait = self._post(path, body)
            if status == 200:
                return
            if status == 401:
                raise UsageError(f"The server at {self._url} needs its token.", "Set CLAUDESCOPE_TOKEN.")
            if status != 503:
                raise RefusedError(_reason(answer, status))
            if time.monotonic() > until:
                raise UsageError(f"The server at {self._url} does not take it: {_reason(answer, status)}.")
            time.sleep(wait)

    def _post(self, path: str, body: bytes) -> tuple[int, bytes, float]:
        for again in (True, False):
            try:
                self._connection.request("POST", path, body, self._headers)
                answer = self._connection.getresponse()
                wait = float(answer.headers.get("Retry-After", "1"))
                return answer.status, answer.read(), wait
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()  # one that was kept open may have been closed meanwhile: once more
                if not again:
                    raise UsageError(
                        f"The server at {self._url} does not answer: {error}.", "Start it again."
                    ) from None
        raise AssertionError

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def _reason(answer: bytes, status: int) -> str:
    try:
        message = json.loads(answer)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = f"status {status}"
    return str(message).rstrip(".")
