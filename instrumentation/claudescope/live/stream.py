"""Server-sent events: one ring of recent events that every client reads at its own pace.

Nothing is buffered for a client: one that falls behind the ring, or comes back too late, gets ``lag`` with the number
of events it missed. Steps that come faster than anybody can look at are left out for all, and counted the same way:
they are stored, and the figures have them. An ``id`` is the server's start and the event's number, so
``Last-Event-ID`` resumes exactly.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from typing import Any, Final

import orjson

__all__ = ["Hub", "TooManyClientsError"]

RING: Final = 8192
"""Events kept for resume."""
RING_BYTES: Final = 32 * 2**20
"""Bytes of events kept: large ones push others out early."""
MAX_CLIENTS: Final = 64
STEPS_PER_S: Final = 2000
"""Steps a second in the stream; as many again at once. A page takes a core of its machine for about 15,000."""
_BURST: Final = 512
_HEARTBEAT: Final = 15.0
_ID: Final = re.compile(r"([0-9a-z]{1,32})-([0-9]{1,18})")


class TooManyClientsError(Exception):
    """No more clients are taken."""


class Hub:
    """Publishes events to any number of clients. Used by the event loop only."""

    def __init__(self, epoch: str, ring: int = RING, ring_bytes: int = RING_BYTES) -> None:
        self._epoch = epoch
        self._size = ring
        self._ring: list[bytes] = [b""] * ring
        self._next = 0
        self._oldest = 0
        self._bytes = 0
        self._max_bytes = ring_bytes
        self._wake: set[asyncio.Event] = set()
        self._closed = False
        self.lagged = 0
        """Events that clients missed."""
        self._left_out = 0
        self._allowed = float(STEPS_PER_S)
        self._allowed_at = time.monotonic()

    @property
    def clients(self) -> int:
        """Clients that read now."""
        return len(self._wake)

    @property
    def next_number(self) -> int:
        """Number of the next event."""
        return self._next

    def publish(self, event: str, data: Any) -> None:
        """Gives one event to everybody."""
        number = self._next
        frame = b"event: %b\nid: %b-%d\ndata: %b\n\n" % (
            event.encode(),
            self._epoch.encode(),
            number,
            orjson.dumps(data),
        )
        if number - self._oldest >= self._size:
            self._forget()
        self._ring[number % self._size] = frame
        self._next = number + 1
        self._bytes += len(frame)
        while self._bytes > self._max_bytes and self._oldest < number:
            self._forget()
        for wake in self._wake:
            wake.set()

    def publish_step(self, step: Any) -> None:
        """Gives a step to everybody, unless there were over ``STEPS_PER_S`` in the last second."""
        now = time.monotonic()
        self._allowed = min(STEPS_PER_S, self._allowed + (now - self._allowed_at) * STEPS_PER_S)
        self._allowed_at = now
        if self._allowed < 1:
            self._left_out += 1
            return
        self._allowed -= 1
        self.publish("step", step)

    def tell_left_out(self) -> None:
        """Publishes ``lag`` if steps were left out since the last time."""
        if self._left_out:
            self.lagged += self._left_out * len(self._wake)
            self.publish("lag", {"count": self._left_out})
            self._left_out = 0

    def _forget(self) -> None:
        at = self._oldest % self._size
        self._bytes -= len(self._ring[at])
        self._ring[at] = b""
        self._oldest += 1

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        for wake in self._wake:
            wake.set()

    def _lag(self, missed: int | None) -> bytes:
        self.lagged += missed or 0
        return b'event: lag\ndata: {"count":%b}\n\n' % (b"null" if missed is None else b"%d" % missed)

    def _start(self, last_event_id: str | None) -> tuple[int, bytes]:
        if not last_event_id:
            return self._next, b""
        match = _ID.fullmatch(last_event_id)
        if match is None or match[1] != self._epoch or int(match[2]) >= self._next:
            return self._next, self._lag(None)  # another server's id: nobody knows what was missed
        return int(match[2]) + 1, b""

    def check_room(self) -> None:
        """Raises TooManyClientsError when no more clients are taken."""
        if len(self._wake) >= MAX_CLIENTS:
            raise TooManyClientsError

    async def subscribe(self, last_event_id: str | None = None) -> AsyncGenerator[bytes, None]:
        """Frames for one client, many at once when there are many; a comment when nothing happens for 15 s."""
        wake = asyncio.Event()
        self._wake.add(wake)
        try:
            at, first = self._start(last_event_id)
            yield b": claudescope\nretry: 1000\n\n" + first
            while not self._closed:
                oldest = self._oldest
                if at < oldest:
                    yield self._lag(oldest - at)
                    at = max(at, oldest)
                    continue
                if at < self._next:
                    end = min(self._next, at + _BURST)
                    frames = b"".join([self._ring[number % self._size] for number in range(at, end)])
                    at = end
                    yield frames
                    continue
                wake.clear()
                try:
                    await asyncio.wait_for(wake.wait(), _HEARTBEAT)
                except (asyncio.TimeoutError, TimeoutError):
                    yield b": still here\n\n"
        finally:
            self._wake.discard(wake)
