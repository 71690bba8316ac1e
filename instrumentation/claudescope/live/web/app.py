"""The one HTTP application: OTLP in, API and page out."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..receiver.ingest import SIGNALS, Ingest
from ..receiver.otlp import JSON, MAX_BODY, OtlpError, encoding_of, error_body, success_body, too_large, unpack
from ..store.deadline import SlowAnswerError
from .api import Api
from .parameters import ParameterError
from .security import Guard, error_response

__all__ = ["make_app"]

_MAX_HELD: Final = 8 * MAX_BODY
_MAX_DRAINED: Final = 4 * MAX_BODY
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class _Room:
    """Bytes of bodies that are being read or worked on, of all requests together. Raises OtlpError 503 over a limit."""

    def __init__(self) -> None:
        self.held = 0

    def take(self, size: int) -> None:
        if self.held + size > _MAX_HELD:
            raise OtlpError(503, "busy", "Too many large requests at once.", "Send the same batch again.", 1)
        self.held += size


async def _read_body(request: Request, keep: Callable[[int], None]) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size <= MAX_BODY:
            keep(len(part))
            parts.append(part)
        else:
            # read on a while without keeping it: a sender whose connection breaks never sees the 413, and tries again
            parts.clear()
            if size > _MAX_DRAINED:
                break
    if size > MAX_BODY:
        raise too_large()
    return b"".join(parts)


def _receiver(ingest: Ingest, signal: str, room: _Room) -> Callable[[Request], Awaitable[Response]]:
    async def receive(request: Request) -> Response:
        encoding = JSON
        held = 0

        def keep(size: int) -> None:
            nonlocal held
            room.take(size)
            held += size

        try:
            encoding = encoding_of(request.headers.get("content-type", ""))
            raw = await _read_body(request, keep)
            body = unpack(raw, request.headers.get("content-encoding", ""))
            if body is not raw:
                keep(len(body))
            outcome = await ingest.take(signal, body, encoding)
        except OtlpError as error:
            headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            if error.status in (413, 503):
                headers["Connection"] = "close"  # there may be more of the body
            return Response(error_body(error, encoding), error.status, headers, encoding)
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            room.held -= held
        return Response(success_body(signal, encoding, outcome.rejected, outcome.why), 200, None, encoding)

    return receive


def _pages() -> list[Route]:
    """Routes of the page's files, which are read once."""
    routes = []
    for file in files("claudescope.live").joinpath("page").iterdir():
        media = _TYPES.get("." + file.name.rpartition(".")[2])
        if media is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            routes.append(Route(path, _page(file.read_bytes(), media), methods=["GET"]))
    return routes


def _page(body: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    packed = gzip.compress(body, mtime=0)

    async def serve(request: Request) -> Response:
        headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        accepted = request.headers.get("accept-encoding", "").split(",")
        if any(coding.strip() == "gzip" for coding in accepted):
            return Response(packed, 200, {**headers, "Content-Encoding": "gzip"}, media)
        return Response(body, 200, headers, media)

    return serve


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return error_response(
            405, "wrong_method", f"{request.method} is not taken here.", "See the API's documentation."
        )
    return error_response(404, "not_found", "There is nothing at this path.", "The page is at /, the API below /api/.")


async def _bad_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, ParameterError)
    return error_response(400, "bad_parameter", error.message, error.fix)


async def _slow(request: Request, error: Exception) -> Response:
    return error_response(
        503,
        "query_too_slow",
        "The answer took too long and was given up.",
        "Ask for less: a shorter time, a smaller limit, fewer conditions.",
        {"Retry-After": "1"},
    )


async def _broken(request: Request, error: Exception) -> Response:
    return error_response(503, "internal_error", "The server failed to answer.", "Its log on stderr says more.")


def make_app(ingest: Ingest, api: Api, host: str, token: str) -> ASGIApp:
    """The application with its guard; ``host`` is what it listens on."""
    room = _Room()
    routes = [Route(f"/v1/{signal}", _receiver(ingest, signal, room), methods=["POST"]) for signal in SIGNALS]
    routes += [endpoint.route() for endpoint in api.endpoints]
    routes += _pages()
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _http_error,
            ParameterError: _bad_parameter,
            SlowAnswerError: _slow,
            Exception: _broken,
        },
    )
    app.router.redirect_slashes = False  # a redirect would repeat whatever the Host header says
    return Guard(app, host, token)
