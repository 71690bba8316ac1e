"""An HTTP connection that has to bring its requests in time.

The number of connections is limited, so one that is opened and left, or brings a byte now and then, would keep others
out for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

_REQUEST_TIME: Final = 30.0
"""Seconds from the connection, or from the first byte of a later request, to the last byte of the request."""


class Connection(H11Protocol):
    """uvicorn's connection with a limit on how long a request may take to come. Answers may take as long as they do."""

    _late: asyncio.TimerHandle | None = None

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
        """Nothing more comes."""
        self._expect_nothing()
        super().connection_lost(exc)

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
