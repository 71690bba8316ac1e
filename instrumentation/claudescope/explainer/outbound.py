"""Requests to other services: JSON out and in, with a limit on time and size, and failures told apart by what helps."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, Final, NoReturn, Protocol

import orjson

from ..version import __version__

__all__ = ["AwayError", "Caller", "HttpCaller", "RefusedError", "UnreadError", "bearer", "shown"]

_MAX_ANSWER: Final = 8 * 2**20
_MAX_SHOWN: Final = 300
_FOR_GOOD: Final = frozenset({400, 405, 406, 410, 411, 413, 414, 415, 422})
"""Statuses that the same request would get again; others may be cured by whoever runs the other side, or by time."""
_AGENT: Final = f"claudescope/{__version__}"


class AwayError(Exception):
    """It may work later: nothing answers, the other side fails, or wants another token. The text says what is wrong."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        super().__init__(problem)
        self.wait = wait
        """Seconds that the other side asks for; 0 where it asks for none."""


class UnreadError(AwayError):
    """The other side took it (2xx), and what it said besides cannot be read."""


class RefusedError(Exception):
    """The other side does not want it, and will not. The text says why."""


class Caller(Protocol):
    """Asks another service."""

    def __call__(
        self, method: str, url: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:  # JSON
        """The JSON of the answer, None for none. Raises AwayError and RefusedError."""
        ...


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token; nothing for none."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def shown(text: object) -> str:
    """What another service says, short enough for a log, on one line."""
    return " ".join(str(text).split())[:_MAX_SHOWN]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to whatever it names."""

    def redirect_request(self, *_: object) -> None:
        return None


class HttpCaller:
    """Over HTTP, by the proxy of the environment. ``timeout`` in seconds, for each of connecting and reading."""

    def __init__(self, timeout: float, now: Callable[[], float] = time) -> None:
        self._timeout = timeout
        self._now = now
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __call__(self, method: str, url: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """One request; a ``body`` goes as JSON."""
        given = {"Accept": "application/json", "User-Agent": _AGENT, **(headers or {})}
        data = None
        if body is not None:
            data = orjson.dumps(body)
            given["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=data, headers=given, method=method)
        try:
            answer = self._opener.open(request, timeout=self._timeout)
        except urllib.error.HTTPError as error:
            with error:
                self._refused(error)
        except urllib.error.URLError as error:
            raise AwayError(_why(error.reason, self._timeout)) from None
        except (OSError, http.client.HTTPException) as error:
            raise AwayError(_why(error, self._timeout)) from None
        try:
            with answer:
                content = answer.read(_MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException) as error:
            raise UnreadError(_why(error, self._timeout)) from None
        if len(content) > _MAX_ANSWER:
            raise UnreadError(f"its answer is over {_MAX_ANSWER >> 20} MiB")
        if not content:
            return None
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise UnreadError("its answer is no JSON") from None

    def _refused(self, error: urllib.error.HTTPError) -> NoReturn:
        try:
            said = shown(error.read(_MAX_SHOWN * 4).decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):
            said = ""
        problem = f"it answers {error.code}{f': {said}' if said else ''}"
        if error.code in _FOR_GOOD:
            raise RefusedError(problem) from None
        raise AwayError(problem, self._wait(error.headers.get("Retry-After", ""))) from None

    def _wait(self, asked: str) -> float:
        """``Retry-After`` in seconds; it is a number or a date."""
        if asked.isascii() and asked.isdigit():
            return float(asked)
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - self._now())
        except (TypeError, ValueError):
            return 0.0


def _why(reason: object, timeout: float) -> str:
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    return shown(reason) or type(reason).__name__
