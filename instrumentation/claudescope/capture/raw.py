"""Notices what becomes of a response that the SDK gives to the app unread: read whole, closed, or dropped."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from ..guard import guard

__all__ = ["watch"]

Over = Callable[[Any, "BaseException | None"], None]
"""Gets the response, or None when it is gone, and the error that ended its reading."""


def watch(response: Any, over: Over, asynchronous: bool) -> None:
    """Calls ``over`` each time the app has read, closed or dropped ``response``.

    ``over`` must not hold the response: one that is dropped is freed at once, as it is without this.
    """
    weakref.finalize(response, _tell, over, None, None).atexit = False
    watched = _Watched(response, over)
    if asynchronous:
        response.aread, response.aclose = watched.aread, watched.aclose
    else:
        response.read, response.close = watched.read, watched.close


class _Watched:
    """The methods that stand in for a response's own. Holds it weakly: a cycle would keep a dropped one open."""

    __slots__ = ("known", "over", "reading")

    def __init__(self, response: Any, over: Over) -> None:
        self.known = weakref.ref(response)
        self.over = over
        self.reading = False
        """The response closes itself at the end of its body, before ``content`` is there."""

    def read(self) -> Any:
        response = self._response()
        self.reading = True
        try:
            content = type(response).read(response)
        except BaseException as error:
            _tell(self.over, response, error)
            raise
        finally:
            self.reading = False
        self._leave(response, "read", "close")
        return content

    def close(self) -> None:
        response = self.known()
        if response is None:
            return
        try:
            type(response).close(response)
        finally:
            if not self.reading:
                _tell(self.over, response, _broken())

    async def aread(self) -> Any:
        response = self._response()
        self.reading = True
        try:
            content = await type(response).aread(response)
        except BaseException as error:
            _tell(self.over, response, error)
            raise
        finally:
            self.reading = False
        self._leave(response, "aread", "aclose")
        return content

    async def aclose(self) -> None:
        response = self.known()
        if response is None:
            return
        try:
            await type(response).aclose(response)
        finally:
            if not self.reading:
                _tell(self.over, response, _broken())

    def _leave(self, response: Any, *names: str) -> None:
        for name in names:
            vars(response).pop(name, None)  # all is known; a response that was read may be pickled
        _tell(self.over, response, None)

    def _response(self) -> Any:
        response = self.known()
        if response is None:
            raise ReferenceError("the response is gone")  # only for somebody who kept the bound method alone
        return response


def _broken() -> BaseException | None:
    """The failure of the connection that makes a response close itself, if that is why."""
    error = sys.exc_info()[1]
    return error if any(base.__name__ == "TransportError" for base in type(error).__mro__) else None


def _tell(over: Over, response: Any, error: BaseException | None) -> None:
    try:
        over(response, error)
    except Exception as fault:  # noqa: BLE001 - the guard
        guard.contain("end a raw response", fault)
