"""The HTTP side: the webhook that Alertmanager calls, the health check, and the pages of explanations."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
from collections.abc import Awaitable, Callable
from time import time
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..version import __version__
from . import page
from .alert import OBJECTIVE, MalformedError, parse
from .database import StoreError
from .queue import FullError, Kept, Queue
from .ticket import Links, Ticket
from .worker import Workers

__all__ = ["MAX_BODY", "Site", "make_app"]

logger = logging.getLogger(__name__)

MAX_BODY: Final = 16 * 2**20
"""Bytes of one webhook; those that are read at once have four times as much together."""
_MAX_HELD: Final = 4 * MAX_BODY
_BODY_TIME: Final = 30.0
_MAX_LIST: Final = 200
_MAX_FILTERS: Final = 20
_MAX_QUERY: Final = 8192
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SVG_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_NAME: Final = "claudescope explainer"
_SHORT: Final = {"slo": OBJECTIVE, "window": "long"}


def _error(status: int, code: str, message: str, fix: str, **headers: str) -> Response:
    body = orjson.dumps({"error": {"code": code, "message": message, "fix": fix}})
    return Response(body, status, {**_HEADERS, **headers}, "application/json")


def _json(found: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(found), status, _HEADERS, "application/json")


class Site:
    """What the routes work with."""

    def __init__(self, queue: Queue, links: Links, token: str) -> None:
        self._queue = queue
        self._links = links
        self._token = token.encode()
        self._held = 0
        self.workers: Workers | None = None
        self.ignored = 0
        """Alerts of no objective, since the start."""

    # ------------------------------------------------------------------------------------------------------ who may ask

    def knows(self, request: Request, *, by_password: bool) -> bool:
        """Whether the request shows the token: as a bearer token, or in a browser as a password, with any name."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        shown = given.strip().encode("latin-1", "replace")
        if scheme.lower() == "basic" and by_password:
            try:
                shown = base64.b64decode(shown, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(shown, self._token)

    # ------------------------------------------------------------------------------------------------------ the webhook

    async def take(self, request: Request) -> Response:
        """``POST /alerts``: answers when everything is on disk."""
        if not self.knows(request, by_password=False):
            return _error(
                401,
                "token_needed",
                "This webhook needs the explainer's token.",
                "Set `http_config.authorization.credentials_file` in Alertmanager's receiver.",
                **{"WWW-Authenticate": "Bearer"},
            )
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _error(415, "not_json", "A webhook is JSON.", "Send `Content-Type: application/json`.")
        kept = 0
        parts: list[bytes] = []

        async def read() -> None:
            nonlocal kept
            async for part in request.stream():
                kept += len(part)
                self._held += len(part)
                if kept > MAX_BODY or self._held > _MAX_HELD:
                    parts.clear()
                    return
                parts.append(part)

        try:
            await asyncio.wait_for(read(), _BODY_TIME)
            if kept > MAX_BODY:
                return _error(
                    413,
                    "too_large",
                    f"A webhook has at most {MAX_BODY >> 20} MiB.",
                    "Set `max_alerts` in Alertmanager's receiver.",
                    Connection="close",
                )
            if self._held > _MAX_HELD:
                return _busy("Too many webhooks at once.", Connection="close")
            return await self._accept(b"".join(parts))
        except ClientDisconnect:
            return Response(status_code=400)
        except asyncio.TimeoutError:  # another class before Python 3.11
            return _error(408, "too_slow", "The webhook did not come in time.", "Send it again.", Connection="close")
        finally:
            self._held -= kept

    async def _accept(self, body: bytes) -> Response:
        try:
            delivery = await asyncio.to_thread(parse, body)
        except MalformedError as error:
            return _error(400, "malformed", f"This is no webhook of Alertmanager: {error}.", "Send one of version 4.")
        ours = [alert for alert in delivery.alerts if alert.objective]
        ignored = len(delivery.alerts) - len(ours)
        try:
            accepted = await asyncio.to_thread(self._queue.accept, ours, int(time() * 1000))
        except FullError:
            return _busy("As many alerts wait as may.")
        except StoreError as error:
            logger.error("an alert was not taken: %s", error)
            return _busy("The queue cannot be written.")
        self.ignored += ignored
        if delivery.malformed:
            logger.warning("%d alerts of a webhook are none", delivery.malformed)
        if delivery.truncated:
            logger.warning("Alertmanager left %d alerts out of a webhook (max_alerts)", delivery.truncated)
        return _json({**accepted._asdict(), "ignored": ignored, "malformed": delivery.malformed})

    # -------------------------------------------------------------------------------------------------------- the pages

    async def health(self, request: Request) -> Response:
        """``GET /healthz``: 200 while alerts are taken; with the token, also what does not work."""
        try:
            counts = await asyncio.to_thread(self._queue.counts)
        except StoreError:
            return _json({"service": _NAME, "version": __version__, "status": "the queue fails"}, 503)
        states = [state for place in counts.values() for state in place.items()]
        found: dict[str, Any] = {
            "service": _NAME,
            "version": __version__,
            "status": "ok",
            "waiting": sum(count for state, count in states if state == "waiting"),
            "dead": sum(count for state, count in states if state == "dead"),
        }
        if self.knows(request, by_password=True):
            found["places"] = counts
            found["problems"] = self.workers.problems() if self.workers else {}
            found["ignored"] = self.ignored
            found["dead_letters"] = await asyncio.to_thread(self._queue.dead)
        return _json(found)

    async def listing(self, request: Request) -> Response:
        """``GET /explanations``: the newest alerts, those with the labels that the query names."""
        labels = _labels(request.query_params)
        found = await asyncio.to_thread(self._queue.latest, _MAX_LIST, labels)
        if _form(request) == "json":
            return _json({"items": [self._json(kept) for kept in found]})
        tickets = [Ticket(kept, self._links) for kept in found]
        return Response(page.listing(tickets, labels), 200, _HEADERS, "text/html")

    async def explain(self, request: Request) -> Response:
        """``GET /explain?slo=ID&LABEL=VALUE``, as annotations of alerts have it: to the newest one that fits."""
        labels = _labels(request.query_params)
        found = await asyncio.to_thread(self._queue.latest, 1, labels)
        if not found:
            return RedirectResponse(f"explanations?{urlencode(labels)}", 303, _HEADERS)
        alert = found[0].alert
        return RedirectResponse(f"explanations/{alert.fingerprint}?starts={alert.starts}", 303, _HEADERS)

    async def explanation(self, request: Request) -> Response:
        """``GET /explanations/FINGERPRINT?starts=MS&format=html|json|text|svg``: an alert, by default the last time."""
        starts = request.query_params.get("starts", "")
        if starts and not (starts.isascii() and starts.isdigit() and len(starts) < 16):
            return _error(400, "bad_starts", f"starts is {starts[:50]!r}.", "It takes Unix time in milliseconds.")
        kept = await asyncio.to_thread(
            self._queue.find, request.path_params["fingerprint"], int(starts) if starts else None
        )
        if kept is None:
            return _error(404, "not_found", "This alert is not known.", "See /explanations.")
        form = _form(request)
        if form == "json":
            return _json(self._json(kept))
        if form == "text":
            return Response(Ticket(kept, self._links).text() + "\n", 200, _HEADERS, "text/plain")
        if form == "svg":
            picture = str((kept.report or {}).get("svg") or "")
            if not picture:
                return _error(404, "no_picture", "There is no picture of it.", "See format=text.")
            return Response(picture, 200, {**_HEADERS, "Content-Security-Policy": _SVG_POLICY}, "image/svg+xml")
        states = await asyncio.to_thread(self._queue.states, kept.id)
        return Response(page.explanation(Ticket(kept, self._links), states), 200, _HEADERS, "text/html")

    async def style(self, _: Request) -> Response:
        """``GET /style.css``."""
        return Response(page.STYLE, 200, _HEADERS, "text/css")

    async def home(self, _: Request) -> Response:
        """``GET /``: to the list."""
        return RedirectResponse("explanations", 303, _HEADERS)

    def _json(self, kept: Kept) -> dict[str, Any]:
        return {**Ticket(kept, self._links).json(), "explained": kept.report is not None, "received_ms": kept.received}


def _busy(why: str, **headers: str) -> Response:
    return _error(503, "busy", why, "Send it again, as Alertmanager does.", **{"Retry-After": "5", **headers})


def _labels(query: QueryParams) -> dict[str, str]:
    """The labels that a query names; ``slo`` and ``window`` are short for the objective's and its long window's."""
    found = {}
    for key, value in list(query.items())[:_MAX_FILTERS]:
        if key.isidentifier() and key.isascii() and key not in ("format", "starts"):
            found[_SHORT.get(key, key)] = value
    return found


def _form(request: Request) -> str:
    """What is asked for: ``format`` of the query, else what a browser or a script accepts."""
    named = request.query_params.get("format", "")
    if named in ("html", "json", "text", "svg"):
        return named
    accepted = request.headers.get("accept", "")
    return "json" if "application/json" in accepted and "text/html" not in accepted else "html"


def make_app(site: Site) -> ASGIApp:
    """The application."""

    def guarded(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def ask(request: Request) -> Response:
            if len(request.url.query) > _MAX_QUERY:
                return _error(414, "too_long", f"A query has at most {_MAX_QUERY} bytes.", "Ask for less.")
            if not site.knows(request, by_password=True):
                return _error(
                    401,
                    "token_needed",
                    "This page needs the explainer's token.",
                    "In a browser it is the password, with any name; else send `Authorization: Bearer TOKEN`.",
                    **{"WWW-Authenticate": 'Basic realm="claudescope explainer", charset="UTF-8"'},
                )
            try:
                return await answer(request)
            except StoreError as error:
                logger.error("a page was not made: %s", error)
                return _busy("The queue cannot be read.")

        return ask

    async def failed(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return _error(status, "not_found" if status == 404 else "refused", f"This is not there ({status}).", "See /.")

    return Starlette(
        routes=[
            Route("/alerts", site.take, methods=["POST"]),
            Route("/healthz", site.health, methods=["GET"]),
            Route("/explain", guarded(site.explain), methods=["GET"]),
            Route("/explanations", guarded(site.listing), methods=["GET"]),
            Route("/explanations/{fingerprint}", guarded(site.explanation), methods=["GET"]),
            Route("/style.css", site.style, methods=["GET"]),
            Route("/", guarded(site.home), methods=["GET"]),
        ],
        exception_handlers={HTTPException: failed},
    )
