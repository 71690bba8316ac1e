"""OTLP over gRPC. ``grpc`` is imported when the first client connects, not before.

The port is an ordinary listener; the first connection starts a gRPC server on a free port of loopback, and bytes are
passed on to it. Whoever never uses gRPC pays neither its memory nor its start.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections.abc import Callable
from typing import Any, Final

from .ingest import Ingest
from .otlp import MAX_BODY, PROTOBUF, OtlpError, success_body

__all__ = ["GrpcPort"]

_METHODS: Final = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}
_WAIT: Final = 30.0


class GrpcPort:
    """Listens on ``listener``; ``start`` and ``stop`` on the event loop."""

    def __init__(self, ingest: Ingest, listener: socket.socket, token: str) -> None:
        self._ingest = ingest
        self._listener = listener
        self._token = token
        self._server: Any = None
        self._port = 0
        self._starting = asyncio.Lock()
        self._acceptor: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Takes connections from now on."""
        self._acceptor = await asyncio.start_server(self._connect, sock=self._listener)

    async def stop(self) -> None:
        """Ends the server and its connections."""
        if self._acceptor is not None:
            self._acceptor.close()
        for pipe in self._pipes:
            pipe.cancel()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop(1.0).wait)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        try:
            async with self._starting:
                if self._server is None:
                    loop = asyncio.get_running_loop()
                    self._server, self._port = await asyncio.to_thread(self._serve, loop)
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # either side went away, or the server stops
        finally:
            self._pipes.discard(task)
            writer.close()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> tuple[Any, int]:
        from concurrent.futures import ThreadPoolExecutor

        import grpc  # type: ignore[import-untyped]

        ingest, token = self._ingest, f"Bearer {self._token}".encode() if self._token else b""

        def method(signal: str) -> Callable[[bytes, Any], bytes]:
            def export(body: bytes, context: Any) -> bytes:
                metadata = dict(context.invocation_metadata() or ())
                if token and not hmac.compare_digest(str(metadata.get("authorization", "")).encode(), token):
                    context.abort(grpc.StatusCode.UNAUTHENTICATED, "This server needs its token.")
                try:
                    taking = asyncio.run_coroutine_threadsafe(ingest.take(signal, body, PROTOBUF), loop)
                    outcome = taking.result(_WAIT)
                except OtlpError as error:
                    code = {400: grpc.StatusCode.INVALID_ARGUMENT, 413: grpc.StatusCode.RESOURCE_EXHAUSTED}
                    context.abort(code.get(error.status, grpc.StatusCode.UNAVAILABLE), error.message)
                return success_body(signal, PROTOBUF, outcome.rejected, outcome.why)

            return export

        class Services(grpc.GenericRpcHandler):  # type: ignore[misc]
            def service(self, details: Any) -> Any:
                signal = _METHODS.get(details.method)
                return signal and grpc.unary_unary_rpc_method_handler(method(signal))

        server = grpc.server(
            ThreadPoolExecutor(8, "claudescope-grpc"),
            handlers=(Services(),),
            options=(("grpc.max_receive_message_length", MAX_BODY), ("grpc.so_reuseport", 0)),
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, port


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
