"""One question over HTTP to a part of the stack, and in words why there is no answer."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CLOSED", "Answer", "Row", "ask", "named", "rows"]

CLOSED: Final = "it closes the connection, as a port with TLS does when it is asked without"

_TIMEOUT: Final = 5.0
_MAX_ANSWER: Final = 8 * 2**20


class Row:
    """One object of a list in an answer, of which nothing is sure."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def text(self, *keys: str) -> str:
        """What is under these keys as text, empty where it is no text."""
        found: Any = self.fields
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else ""

    def rows(self, key: str) -> list[Row]:
        """The objects of the list under a key."""
        return rows(self.fields.get(key))


def named(part: str, version: object) -> str:
    """A part with its version, where it says one: what is built from source may say an empty one."""
    return f"{part} {version}" if version and isinstance(version, str) else part


def rows(found: Any) -> list[Row]:
    """The objects of a list; none where it is no list."""
    return [Row(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@dataclass(frozen=True)
class Answer:
    """``status`` is None where nothing answered; then ``problem`` says why, as the end of a sentence."""

    status: int | None
    body: bytes = b""
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether the part did what it was asked."""
        return self.status is not None and 200 <= self.status < 300

    def find(self, *keys: str) -> Any:
        """What the answer's JSON has under these keys; None where it has none, or is none: somebody else may answer."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def text(self, *keys: str) -> str:
        """The same as text, empty where it is no text."""
        found = self.find(*keys)
        return found if isinstance(found, str) else ""

    def rows(self, *keys: str) -> list[Row]:
        """The objects of the list that is there."""
        return rows(self.find(*keys))


def ask(
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    timeout: float | None = None,
    context: ssl.SSLContext | None = None,
) -> Answer:
    """GET, or POST with ``data``. ``timeout`` in seconds, 5 unless given. Raises nothing."""
    timeout = _TIMEOUT if timeout is None else timeout
    request = urllib.request.Request(url, data=data, headers=dict(headers or {}))
    try:
        # No proxy: the parts are on this machine or named by their addresses.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _body(error))
    except urllib.error.URLError as error:
        return Answer(None, problem=_problem(error.reason, timeout))
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Answer(None, problem=_problem(error, timeout))


def _body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_MAX_ANSWER)
    except (OSError, http.client.HTTPException):
        return b""


def _problem(reason: object, timeout: float) -> str:
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, ssl.SSLEOFError) or "CERTIFICATE_REQUIRED" in str(reason):
        return "it closes the connection, as a port does that wants a certificate to be shown"
    if isinstance(reason, ssl.SSLError):
        return f"the TLS handshake fails: {reason.reason or reason}"
    if isinstance(reason, socket.gaierror):
        return "there is no host of that name"
    if isinstance(reason, (http.client.BadStatusLine, http.client.RemoteDisconnected, ConnectionResetError)):
        return CLOSED
    return str(reason) or type(reason).__name__
