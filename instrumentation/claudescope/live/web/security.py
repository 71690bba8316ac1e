"""Who may ask: Host and Origin headers, the token, and the headers that keep a browser from doing more."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["COOKIE", "MAX_PARAMETERS", "MAX_QUERY", "Guard", "error_response", "is_loopback"]

COOKIE: Final = "claudescope"
MAX_QUERY: Final = 8192
"""Bytes of a query."""
MAX_PARAMETERS: Final = 100
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    b" base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


_AGAIN: Final = b'<!doctype html><meta http-equiv="refresh" content="0"><title>claudescope</title>'
"""A SameSite=Strict cookie stays away where a link on another site's page leads here, even through our own redirect.
The same address asked for again, by a page of ours, brings it.
"""


def _from_another_site(headers: Mapping[bytes, str]) -> bool:
    return headers.get(b"sec-fetch-site") == "cross-site" and headers.get(b"sec-fetch-mode") == "navigate"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def error_response(
    status: int, code: str, message: str, fix: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The one form of errors: ``{"error": {"code", "message", "fix"}}``."""
    body = orjson.dumps({"error": {"code": code, "message": message, "fix": fix}})
    return Response(body, status, headers, "application/json")


class Guard:
    """Wraps the application. On loopback the Host header must name loopback, so that no web page that points a name of
    its own here (DNS rebinding) can read anything; with a token, everything but ``/healthz`` needs it.
    """

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self._app = app
        self._any_host = not is_loopback(host)  # listening further needs a token, and a rebound page has none
        self._token = token.encode()
        self._cookie = hashlib.sha256(b"claudescope page " + self._token).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        refusal = self._refuse(scope, headers)
        if refusal is not None:
            return await refusal(scope, receive, guarded)
        return await self._app(scope, receive, guarded)

    def _refuse(self, scope: Scope, headers: dict[bytes, str]) -> Response | None:
        host = headers.get(b"host", "")
        if not self._any_host and not self._names_loopback(host):
            return error_response(
                421, "wrong_host", f"The Host header is {host[:100]!r}.", "Ask for localhost or 127.0.0.1."
            )
        origin = headers.get(b"origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD") and not self._is_of(origin, host):
            return error_response(
                403, "wrong_origin", "The request comes from another site's page.", "Send it from a program."
            )
        query: bytes = scope["query_string"]
        if len(query) > MAX_QUERY:
            return error_response(
                414, "query_too_long", f"The query is over {MAX_QUERY} bytes.", "Ask for less at once."
            )
        if query.count(b"&") >= MAX_PARAMETERS:
            return error_response(
                414, "query_too_long", f"The query has over {MAX_PARAMETERS} parameters.", "Ask for less at once."
            )
        if not self._token or scope["path"] == "/healthz":
            return None
        if scope["path"] == "/" and scope["method"] == "GET" and b"token=" in query:
            opened = self._open(query.decode("latin-1"))
            if opened is not None:
                return opened
        if self._knows(headers):
            return None
        if scope["path"] == "/" and _from_another_site(headers):
            return Response(_AGAIN, 200, {"Cache-Control": "no-store"}, "text/html")
        return error_response(
            401,
            "token_needed",
            "This server needs its token.",
            "Send `Authorization: Bearer TOKEN`, or open the page at /?token=TOKEN.",
            {"WWW-Authenticate": "Bearer"},
        )

    def _open(self, query: str) -> Response | None:
        """The page's first opening: the token becomes a cookie and leaves the address, the rest of it stays."""
        given = parse_qsl(query, keep_blank_values=True)
        token = next((value for name, value in given if name == "token"), "")
        if not hmac.compare_digest(token.encode(), self._token):
            return None
        rest = urlencode([pair for pair in given if pair[0] != "token"])
        answer = RedirectResponse(f"/?{rest}" if rest else "/", 303)
        answer.set_cookie(COOKIE, self._cookie, httponly=True, samesite="strict", path="/")
        return answer

    @staticmethod
    def _is_of(origin: str, host: str) -> bool:
        try:
            return urlsplit(origin).netloc == host
        except ValueError:
            return False

    @staticmethod
    def _names_loopback(host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name is not None and is_loopback(name)

    def _knows(self, headers: dict[bytes, str]) -> bool:
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), self._token):
            return True
        # By hand: SimpleCookie gives up at a cookie that it does not like, and those of all ports of a host come here.
        cookies = (cookie.strip().partition("=") for cookie in headers.get(b"cookie", "").split(";"))
        ours = (value.encode("latin-1") for name, _, value in cookies if name == COOKIE)
        return any(hmac.compare_digest(value, self._cookie.encode()) for value in ours)
