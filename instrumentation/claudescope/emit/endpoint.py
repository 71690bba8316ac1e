"""Where a signal is sent and how, as the standard OTEL_EXPORTER_OTLP_* variables say it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from opentelemetry.util.re import parse_env_headers

__all__ = ["Endpoint", "Signal", "resolve"]

_logger = logging.getLogger(__name__)

Signal = Literal["traces", "logs", "metrics"]

_PREFIX: Final = "OTEL_EXPORTER_OTLP_"
_DEFAULT_TIMEOUT: Final = 10.0


@dataclass(frozen=True)
class Endpoint:
    """One signal's endpoint: full URL (HTTP) or target (gRPC), headers, timeout in seconds, compression and TLS files.

    ``compression`` is ``none``, ``gzip`` or ``deflate``. ``insecure`` (gRPC only) is True for a connection without TLS.
    """

    signal: Signal
    protocol: Literal["http/protobuf", "grpc"]
    url: str
    headers: Mapping[str, str]
    timeout: float
    compression: str
    certificate: str | None
    client_key: str | None
    client_certificate: str | None
    insecure: bool

    @property
    def host(self) -> str:
        """The host's name or address, without port and brackets."""
        url = self.url if "//" in self.url else f"//{self.url}"
        return (urlsplit(url).hostname or "").rstrip(".")

    @property
    def address(self) -> str:
        """Scheme, host and port, as it is shown to people: no credentials, no path."""
        url = urlsplit(self.url)
        if not url.netloc:
            return self.url
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}"

    @property
    def loopback(self) -> bool:
        """Whether the endpoint is on this machine."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.") or self.host.endswith(".localhost")


def resolve(signal: Signal, env: Mapping[str, str]) -> Endpoint:
    """The endpoint of a signal. A signal's own variable wins over the general one; an empty one counts as unset."""

    def read(name: str) -> str | None:
        value = env.get(f"{_PREFIX}{signal.upper()}_{name}") or env.get(_PREFIX + name)
        return value.strip() if value and value.strip() else None

    protocol: Literal["http/protobuf", "grpc"] = "grpc" if read("PROTOCOL") == "grpc" else "http/protobuf"
    own = env.get(f"{_PREFIX}{signal.upper()}_ENDPOINT", "").strip()
    general = env.get(_PREFIX + "ENDPOINT", "").strip()
    if protocol == "grpc":
        url = own or general or "http://localhost:4317"
    else:
        url = own or f"{(general or 'http://localhost:4318').removesuffix('/')}/v1/{signal}"
    scheme = urlsplit(url).scheme
    insecure = read("INSECURE")
    compression = (read("COMPRESSION") or "none").lower()
    if compression not in ("none", "gzip", "deflate"):
        _logger.warning("%sCOMPRESSION=%s is not known; nothing is compressed.", _PREFIX, compression)
        compression = "none"
    return Endpoint(
        signal=signal,
        protocol=protocol,
        url=url,
        headers=parse_env_headers(read("HEADERS") or "", liberal=True),
        timeout=_seconds(read("TIMEOUT")),
        compression=compression,
        certificate=read("CERTIFICATE"),
        client_key=read("CLIENT_KEY"),
        client_certificate=read("CLIENT_CERTIFICATE"),
        insecure=scheme == "http" if insecure is None or scheme == "https" else insecure.lower() == "true",
    )


def _seconds(value: str | None) -> float:
    """A timeout in seconds, as the Python SDK reads these variables."""
    try:
        seconds = _DEFAULT_TIMEOUT if value is None else float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 3600:
        _logger.warning("%sTIMEOUT=%s is not a number of seconds; %g is used.", _PREFIX, value, _DEFAULT_TIMEOUT)
        return _DEFAULT_TIMEOUT
    return seconds
