"""The event stream and who may listen."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.responses import Response, StreamingResponse

from ..stream import Hub, TooManyClientsError
from .endpoint import Asked, Endpoint
from .parameters import Parameter
from .security import error_response
from .values import text

__all__ = ["MAX_PER_ADDRESS", "Events"]

MAX_PER_ADDRESS: Final = 32
"""Streams of one address, so that one machine does not keep the others out."""


class Events:
    """``/api/stream`` over the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._addresses: Counter[str] = Counter()

    def endpoints(self) -> list[Endpoint]:
        """The one endpoint."""
        return [
            Endpoint(
                "/api/stream",
                "Server-sent events as they come: step, run, stats, lag.",
                self._stream,
                {"type": "string"},
                {"last_event_id": Parameter(text, "An event's id to go on after, where no Last-Event-ID can be sent.")},
                media="text/event-stream",
                errors={429: "Too many streams are open."},
            )
        ]

    async def _stream(self, asked: Asked) -> Response:
        address = asked.request.client.host if asked.request.client is not None else ""
        try:
            self._hub.check_room()
            if self._addresses[address] >= MAX_PER_ADDRESS:
                raise TooManyClientsError
        except TooManyClientsError:
            return error_response(
                429, "too_many_streams", "Too many pages are open.", "Close some of them.", {"Retry-After": "5"}
            )
        last = asked.request.headers.get("last-event-id") or asked.given.get("last_event_id")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._listen(address, last), media_type="text/event-stream", headers=headers)

    async def _listen(self, address: str, last: str | None) -> AsyncGenerator[bytes, None]:
        self._addresses[address] += 1
        try:
            async with aclosing(self._hub.subscribe(last)) as frames:
                async for some in frames:
                    yield some
        finally:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]
