"""One attempt to deliver one encoded batch, over OTLP/gRPC. Imported only when the protocol is ``grpc``."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]

from .endpoint import Endpoint
from .transport import RESPONSES, Outcome, partial_success

__all__ = ["GrpcTransport"]

_METHODS: Final = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
_RETRYABLE: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
_UNAUTHORIZED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
_OPTIONS: Final = (("grpc.primary_user_agent", "OTel-OTLP-Exporter-claudescope"),)


class GrpcTransport:
    """OTLP/gRPC over one channel. The bytes go out as they are: nothing is decoded to be encoded again."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._target = urlsplit(endpoint.url).netloc or endpoint.url
        self._metadata = tuple((key.lower(), value) for key, value in endpoint.headers.items())
        self._channel: Any = None
        self._export: Any = None
        self._abandoned: list[Any] = []

    def prepare(self, payload: bytes) -> bytes:
        """See Transport. The channel compresses by itself."""
        return payload

    def send(self, body: bytes, timeout: float) -> Outcome:
        """See Transport."""
        try:
            if self._channel is None:
                self._open()
            response = self._export(body, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return self._failed(error)
        except (OSError, ValueError) as error:  # a certificate's file, a target that is none
            return Outcome("retry", str(error))
        return partial_success(self._endpoint, response)

    def _open(self) -> None:
        deflate = (
            grpc.Compression.Deflate if self._endpoint.compression == "deflate" else grpc.Compression.NoCompression
        )
        compression = grpc.Compression.Gzip if self._endpoint.compression == "gzip" else deflate
        if self._endpoint.insecure:
            self._channel = grpc.insecure_channel(self._target, options=_OPTIONS, compression=compression)
        else:
            credentials = grpc.ssl_channel_credentials(
                _read(self._endpoint.certificate),
                _read(self._endpoint.client_key),
                _read(self._endpoint.client_certificate),
            )
            self._channel = grpc.secure_channel(self._target, credentials, options=_OPTIONS, compression=compression)
        self._export = self._channel.unary_unary(
            _METHODS[self._endpoint.signal],
            request_serializer=None,
            response_deserializer=RESPONSES[self._endpoint.signal].FromString,
        )

    def _failed(self, error: Any) -> Outcome:
        code = error.code().name
        details = error.details() or ""
        reason = "connection refused" if "Connection refused" in details else f"gRPC {code} {details}".rstrip()
        retry_after = None
        for key, value in error.trailing_metadata() or ():
            if key == "google.rpc.retryinfo-bin":
                with contextlib.suppress(Exception):
                    delay = RetryInfo.FromString(value).retry_delay
                    retry_after = delay.seconds + delay.nanos / 1e9
        if code == "UNAVAILABLE":
            self.close()  # a channel waits ever longer, up to two minutes, before it connects again
        # RESOURCE_EXHAUSTED without a delay means that the batch itself is too much
        if code in _RETRYABLE or (code == "RESOURCE_EXHAUSTED" and retry_after is not None):
            return Outcome("retry", reason, retry_after=retry_after)
        return Outcome("rejected", reason, unauthorized=code in _UNAUTHORIZED)

    def close(self) -> None:
        """See Transport."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def abandon(self) -> None:
        """See Transport. The parent's channel is kept alive and unused: to close it in a child can hang."""
        if self._channel is not None:
            self._abandoned.append(self._channel)
            self._channel = self._export = None


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()
