"""An endpoint: what it takes and gives, said once for the handler, for OpenAPI and for the tests."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..filters import StepFilter
from .parameters import FILTER, Parameter, ParameterError, parse, read_filter
from .security import is_loopback

__all__ = ["Asked", "Endpoint", "compressed", "json_response"]

_COMPRESSED: Final = 16_384
"""Bytes from which on an answer to another machine is compressed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its parameters as read, and the steps that its filter asks for."""

    given: dict[str, Any]
    where: StepFilter
    request: Request


@dataclass(frozen=True)
class Endpoint:
    """One path that is read with GET. ``answer`` gives data for JSON, or a response of its own."""

    path: str
    summary: str
    answer: Callable[[Asked], Awaitable[Any]]
    schema: Mapping[str, Any]
    """JSON schema of the answer; of text the empty one."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    within: Mapping[str, Parameter] = field(default_factory=dict)
    """Parameters that are parts of the path."""
    filtered: bool = False
    """Whether it takes the parameters of a step filter, too."""
    media: str = "application/json"
    errors: Mapping[int, str] = field(default_factory=dict)
    """Statuses of its own besides those that every endpoint may give, with what they mean."""

    @property
    def query(self) -> dict[str, Parameter]:
        """All query parameters."""
        return {**self.parameters, **(FILTER if self.filtered else {})}

    def route(self) -> Route:
        """The route for the application."""
        return Route(self.path, self._handle, methods=["GET"])

    async def _handle(self, request: Request) -> Response:
        query = request.query_params.multi_items()
        given = parse(query, self.query)
        given |= parse(request.path_params.items(), self.within)
        for start, end in (("from", "to"), ("steps_from", "steps_to")):
            if given.get(start, 0) >= given.get(end, float("inf")):
                raise ParameterError(start, f"{start} is not before {end}.", f"Give a {start} that is before {end}.")
        answer = await self.answer(Asked(given, read_filter(query), request))
        return answer if isinstance(answer, Response) else await json_response(answer, request)


async def json_response(data: Any, request: Request) -> Response:
    """JSON that no cache keeps; compressed when it is large and goes to another machine that takes it."""
    return await compressed(orjson.dumps(data), "application/json", request)


async def compressed(body: bytes, media: str, request: Request) -> Response:
    """A response that no cache keeps; compressed when it is large and goes to another machine that takes it.

    On loopback the bytes cost less than their compression.
    """
    headers = {"Cache-Control": "no-store"}
    if len(body) >= _COMPRESSED and "gzip" in request.headers.get("accept-encoding", "") and _is_far(request):
        body = await asyncio.to_thread(gzip.compress, body, 1)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(body, 200, headers, media)


def _is_far(request: Request) -> bool:
    return request.client is not None and not is_loopback(request.client.host)
