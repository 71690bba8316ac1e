"""An HTTP connection that has to bring its requests, and take its answers, in time.

The number of connections is limited, so one that is opened and left, brings a byte now and then, or asks and never
reads, would keep others out for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

_REQUEST_TIME: Final = 30.0
"""Seconds from the connection, or from the first byte of a later request, to the last byte of the request."""
_STUCK_TIME: Final = 60.0
"""Seconds that an answer may wait for a client that takes nothing of it."""


class Connection(H11Protocol):
    """uvicorn's connection with limits on how long a request may take to come and an answer may wait to be taken.

    To make the answer may take as long as it does.
    """

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """The first request is expected from now on."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """A whole request stops the clock; a part of one starts it."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect()
        else:
            self._expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes or goes."""
        self._expect_nothing()
        self._moves()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client is slower than the answer; called once until ``resume_writing``."""
        super().pause_writing()
        self._stuck = self.loop.call_later(_STUCK_TIME, self.transport.abort)  # close would wait for what is unsent

    def resume_writing(self) -> None:
        """The client has taken most of it."""
        super().resume_writing()
        self._moves()

    def _moves(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(_REQUEST_TIME, self._give_up)

    def _expect_nothing(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
