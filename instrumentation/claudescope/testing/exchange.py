"""One request and its answer, with the faults that the script wants."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from .connection import Connection, Request
from .faults import ERROR_TYPES, Cut, Garbled, HTTPFault, Stall, StreamError, Unprocessed
from .message import Event, Message
from .script import Pace, Reply, ScriptError
from .wire import Wire, encode

__all__ = ["Exchange", "HangupError"]

_STATUS = {name: status for status, (name, _) in reversed(ERROR_TYPES.items())}


class HangupError(Exception):
    """The script ends the connection here; ``reset`` as in ``faults.Cut``."""

    def __init__(self, reset: bool) -> None:
        super().__init__(reset)
        self.reset = reset


class Exchange:
    """One request, the connection to answer on, and the wording of the platform."""

    def __init__(self, request: Request, connection: Connection, wire: Wire, pace: Pace, rng: random.Random) -> None:
        self.request = request
        self.wire = wire
        self.rng = rng
        self._connection = connection
        self._pace = pace
        self.started = False
        """Whether bytes of the answer may have gone out."""

    async def send(
        self,
        value: Any,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        content_type: str = "application/json",
    ) -> None:
        """Answers with JSON, or with bytes as they stand."""
        self.started = True
        body = value if isinstance(value, bytes) else encode(value)
        head = [("content-type", content_type), *self.wire.headers(limited=status == 429), *headers]
        await self._connection.answer(status, head, body)

    async def fail(self, fault: HTTPFault) -> None:
        """Answers with an HTTP error."""
        headers, body = self.wire.error(fault.error)
        if fault.retry_after is not None:
            headers.append(("retry-after", f"{fault.retry_after:g}"))
        retry = fault.status in (408, 409, 429) or fault.status >= 500
        headers.append(("x-should-retry", "true" if retry else "false"))
        await self.send(body if fault.body is None else fault.body, fault.status, headers)

    def message(self, reply: Reply, model: str) -> Message:
        """The message that a reply becomes."""
        size = len(self.request.body)
        return Message(reply, model=self.wire.model(model), request_bytes=size, pace=self._pace, rng=self.rng)

    async def reply(
        self, reply: Reply, model: str, *, stream: bool, made: Callable[[dict[str, Any]], None] = lambda message: None
    ) -> None:
        """Answers with a scripted reply; ``made`` gets the message before it is sent.

        Raises HangupError where the reply cuts the connection.
        """
        fault = reply.fault
        if reply.limits is not None:
            self.wire.limits = reply.limits
        if isinstance(fault, HTTPFault):
            await self.fail(fault)
            return
        if isinstance(fault, Unprocessed):
            raise ScriptError(f"A request outside of a batch cannot end {fault.type}.")
        message = self.message(reply, model)
        events = list(message.events())
        made(message.whole())
        if stream:
            _check_point(fault, events)
        if isinstance(fault, Cut | Stall) and fault.after == "request":
            await self._strike(fault)
        if stream:
            await self._stream(events, fault)
        else:
            await self._whole(message, events, fault)

    async def _whole(self, message: Message, events: list[Event], fault: Any) -> None:
        await _pause(sum(event.delay for event in events))
        if isinstance(fault, StreamError):
            await self.fail(HTTPFault(_STATUS.get(fault.type, 500), fault.type, fault.message))
            return
        body = encode(message.whole())
        if not isinstance(fault, Cut | Stall) or fault.after == "request":
            await self.send(body)
            return
        self.started = True
        head = [("content-type", "application/json"), *self.wire.headers()]
        await self._connection.answer(200, head, body, part=len(body) // 2)
        await self._strike(fault)
        await self._connection.write(body[len(body) // 2 :])

    async def _stream(self, events: list[Event], fault: Any) -> None:
        self.started = True
        head = [("content-type", self.wire.stream_type), ("cache-control", "no-cache"), *self.wire.headers()]
        await self._connection.start(200, head)
        if fault is not None and fault.after in ("headers", 0) and await self._strike(fault):
            return
        for sent, event in enumerate(events, 1):
            await _pause(event.delay)
            await self._connection.chunk(self.wire.event(event.name, encode(event.data)))
            if fault is not None and (fault.after == sent or fault.after in event.marks) and await self._strike(fault):
                return
        await self._connection.chunk(b"")

    async def _strike(self, fault: Any) -> bool:
        """Lets the fault happen; True when it was the end of the answer."""
        if isinstance(fault, Cut):
            raise HangupError(fault.reset)
        if isinstance(fault, Stall):
            await asyncio.sleep(fault.seconds)
            return False
        if isinstance(fault, Garbled):
            await self._connection.chunk(self.wire.event("content_block_delta", fault.text.encode()))
            return False
        await self._connection.chunk(self.wire.error_event(fault.type, fault.message))
        await self._connection.chunk(b"")
        return True


async def _pause(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


def _check_point(fault: Any, events: list[Event]) -> None:
    """Raises ScriptError when the stream never reaches the fault's point."""
    if fault is None or fault.after == "headers":
        return
    if fault.after == "request":
        reached = isinstance(fault, Cut | Stall)
    elif isinstance(fault.after, int):
        reached = 0 <= fault.after <= len(events)
    else:
        reached = any(fault.after in event.marks for event in events)
    if not reached:
        raise ScriptError(f"The fault is due after {fault.after!r}, which this reply's stream never reaches.")
