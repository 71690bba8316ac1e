"""One attempt to deliver one encoded batch, over OTLP/HTTP.

The standard library's HTTP client is used rather than ``requests``: nothing in the app patches it for tracing, it costs
no import, and one attempt is exactly one request.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import math
import ssl
import time
import urllib.request
import zlib
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, Protocol
from urllib.parse import unquote, urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from .endpoint import Endpoint

__all__ = ["RESPONSES", "HttpTransport", "Outcome", "Transport", "partial_success"]

_RETRYABLE: Final = frozenset({429, 502, 503, 504})  # the OTLP specification's list
RESPONSES: Final[dict[str, Any]] = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REJECTED_FIELDS: Final = {
    "traces": "rejected_spans",
    "logs": "rejected_log_records",
    "metrics": "rejected_data_points",
}
_UNAUTHORIZED: Final = frozenset({401, 403})
_MAX_RESPONSE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt. ``rejected`` counts the items that a delivered batch lost to a partial success."""

    status: Literal["delivered", "retry", "rejected"]
    reason: str = ""
    rejected: int = 0
    retry_after: float | None = None
    """Seconds that the server asked to be left alone."""
    unauthorized: bool = False
    """Whether it was rejected for who sends it, and so all else that is sent there will be."""


class Transport(Protocol):
    """A way to one endpoint. Used by one thread at a time."""

    def prepare(self, payload: bytes) -> bytes:
        """The payload as it is sent, so that compression is paid once for all attempts."""
        ...

    def send(self, body: bytes, timeout: float) -> Outcome:
        """One attempt of at most about ``timeout`` seconds. Never raises."""
        ...

    def close(self) -> None:
        """Closes the connection; the next attempt opens another."""
        ...

    def abandon(self) -> None:
        """Forgets the connection in a forked child, without a word to the server."""
        ...


def partial_success(endpoint: Endpoint, response: Any) -> Outcome:
    """The outcome that an OTLP response message tells."""
    partial = response.partial_success
    rejected = getattr(partial, _REJECTED_FIELDS[endpoint.signal])
    return Outcome("delivered", partial.error_message, max(0, rejected))


class HttpTransport:
    """OTLP/HTTP with protobuf bodies over one kept-alive connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._url = urlsplit(endpoint.url)
        self._target = self._url.path or "/"
        if self._url.query:
            self._target += f"?{self._url.query}"
        self._headers = {"content-type": "application/x-protobuf", "user-agent": "OTel-OTLP-Exporter-claudescope"}
        if endpoint.compression != "none":
            self._headers["content-encoding"] = endpoint.compression
        if self._url.username:
            pair = f"{unquote(self._url.username)}:{unquote(self._url.password or '')}"
            self._headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self._headers.update({key.lower(): value for key, value in endpoint.headers.items()})
        self._connection: http.client.HTTPConnection | None = None

    def prepare(self, payload: bytes) -> bytes:
        """See Transport."""
        if self._endpoint.compression == "gzip":
            return gzip.compress(payload, 6)
        return zlib.compress(payload) if self._endpoint.compression == "deflate" else payload

    def send(self, body: bytes, timeout: float) -> Outcome:
        """See Transport."""
        while True:
            reused = self._connection is not None
            try:
                return self._request(body, timeout)
            except (ConnectionError, http.client.RemoteDisconnected) as error:
                self.close()
                if not reused:  # a kept-alive connection that the server has closed is no failure of the server
                    return Outcome("retry", _words(error))
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                return Outcome("retry", _words(error))

    def _request(self, body: bytes, timeout: float) -> Outcome:
        connection = self._connect(timeout)
        connection.request("POST", self._target, body, self._headers)
        response = connection.getresponse()
        answer = response.read(_MAX_RESPONSE)
        if response.will_close or not response.isclosed():
            self.close()
        reason = f"HTTP {response.status} {response.reason}".rstrip()
        if 200 <= response.status < 300:
            return self._accepted(response.getheader("content-type", ""), answer)
        if response.status in _RETRYABLE:
            return Outcome("retry", reason, retry_after=_retry_after(response.getheader("retry-after")))
        if location := response.getheader("location"):
            reason += f", redirected to {location}"
        return Outcome("rejected", reason, unauthorized=response.status in _UNAUTHORIZED)

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is not None:
            self._connection.timeout = timeout
            if self._connection.sock is not None:
                self._connection.sock.settimeout(timeout)
            return self._connection
        host = self._url.hostname
        if self._url.scheme not in ("http", "https") or not host:
            raise ValueError(f"{self._endpoint.address} is not an http or https address")
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        proxy = None
        if not self._endpoint.loopback and not urllib.request.proxy_bypass(host):
            proxy = urllib.request.getproxies().get(self._url.scheme)
        via = urlsplit(proxy) if proxy else None
        near = (via.hostname or "", via.port or 8080) if via else (host, port)
        connection: http.client.HTTPConnection
        if self._url.scheme == "https":
            connection = http.client.HTTPSConnection(*near, timeout=timeout, context=self._tls())
            if via:
                connection.set_tunnel(host, port)
        else:
            connection = http.client.HTTPConnection(*near, timeout=timeout)
            if via and not self._target.startswith("http"):
                self._target = f"http://{self._url.netloc.rpartition('@')[2]}{self._target}"
        self._connection = connection
        return connection

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._endpoint.certificate)
        if self._endpoint.certificate is None:
            with contextlib.suppress(ImportError):  # some builds of Python bring no certificates of their own
                import certifi

                context.load_verify_locations(certifi.where())
        if self._endpoint.client_certificate:
            context.load_cert_chain(self._endpoint.client_certificate, self._endpoint.client_key)
        return context

    def _accepted(self, content_type: str, answer: bytes) -> Outcome:
        try:
            if content_type.startswith("application/json"):
                partial = json.loads(answer or b"{}").get("partialSuccess") or {}
                head, *tail = _REJECTED_FIELDS[self._endpoint.signal].split("_")
                field = head + "".join(word.title() for word in tail)
                return Outcome("delivered", str(partial.get("errorMessage", "")), max(0, int(partial.get(field, 0))))
            return partial_success(self._endpoint, RESPONSES[self._endpoint.signal].FromString(answer))
        except Exception:  # noqa: BLE001 - a strange body of a 200 is still a 200
            return Outcome("delivered")

    def close(self) -> None:
        """See Transport."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def abandon(self) -> None:
        """See Transport. Closing a plain socket here tells the server nothing: the parent still holds it."""
        with contextlib.suppress(Exception):
            self.close()


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header, given as a number or a date; None when absent or unreadable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _words(error: Exception) -> str:
    """An error in the words that a person knows it by."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "timed out"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    named = getattr(error, "filename", None)
    return f"{named}: {text}" if named else text or type(error).__name__
