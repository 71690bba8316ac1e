"""The API's routes: which answer belongs to a request."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from .batches import Batch, Batches
from .connection import Connection, Request
from .exchange import Exchange, HangupError
from .faults import HTTPFault, Unprocessed
from .message import estimate_tokens, token
from .script import Pace, Script, ScriptError
from .threads import Threads, UnknownThreadError
from .wire import BedrockWire, Wire

__all__ = ["MODELS", "Routes"]

MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
"""What ``GET /v1/models`` lists."""

_BEDROCK = re.compile(r"/model/(?P<model>.+)/(?P<verb>invoke|invoke-with-response-stream)")
_VERTEX = re.compile(r".*/publishers/anthropic/models/(?P<model>[^/]+):(?P<verb>rawPredict|streamRawPredict)")
_BATCH = re.compile(r"/v1/messages/batches/(?P<id>[^/]+)(?P<verb>/results|/cancel)?")
_MODEL = re.compile(r"/v1/models/(?P<id>[^/]+)")


class Routes:
    """Answers requests by a script, all on one event loop.

    What an answer holds depends on the seed and on the request alone, and on how many equal requests came before:
    not on the order in which parallel requests arrive.
    """

    def __init__(self, script: Script, *, seed: int, pace: Pace, clock: Callable[[], int], batch_polls: int) -> None:
        self.script = script
        self._seed = seed
        self._pace = pace
        self._clock = clock
        self._batches = Batches(batch_polls)
        self._threads = Threads()
        self._seen: dict[str, int] = {}

    async def answer(self, request: Request, connection: Connection, on_error: Callable[[Exception], None]) -> None:
        """Answers one request; ``on_error`` gets the error where the script was at fault, before it is answered.

        Raises HangupError where the script cuts the connection.
        """
        key = hashlib.sha256(f"{request.method} {request.target}\n".encode() + request.body).hexdigest()
        number = self._seen[key] = self._seen.get(key, 0) + 1
        rng = random.Random(f"{self._seed}/{key}/{number}")
        bedrock = request.path.startswith("/model/")
        wire = (BedrockWire if bedrock else Wire)(token(rng, "req_011C", 20), self._clock)
        exchange = Exchange(request, connection, wire, self._pace, rng)
        try:
            await self._route(exchange, key)
        except Exception as error:
            if exchange.started or isinstance(error, HangupError | OSError):
                raise
            if isinstance(error, _RefusedError):
                await exchange.fail(error.fault)
            else:
                on_error(error)
                await exchange.fail(HTTPFault(400, message=f"{type(error).__name__}: {error}"))

    async def _route(self, exchange: Exchange, key: str) -> None:
        request = exchange.request
        method, path = request.method, request.path
        if method == "POST" and path == "/v1/messages":
            body = _body(request, "model", "max_tokens", "messages")
            await self._message(exchange, body, key, body["model"], stream=bool(body.get("stream")))
        elif method == "POST" and path == "/v1/messages/count_tokens":
            _body(request, "model", "messages")
            await exchange.send({"input_tokens": estimate_tokens(len(request.body))})
        elif method == "POST" and (match := _BEDROCK.fullmatch(path)):
            body = _body(request, "max_tokens", "messages")
            stream = match["verb"] == "invoke-with-response-stream"
            await self._message(exchange, body, key, match["model"], stream=stream)
        elif method == "POST" and (match := _VERTEX.fullmatch(path)):
            if match["model"] == "count-tokens":
                await exchange.send({"input_tokens": estimate_tokens(len(request.body))})
                return
            body = _body(request, "max_tokens", "messages")
            await self._message(exchange, body, key, match["model"], stream=match["verb"] == "streamRawPredict")
        elif path == "/v1/messages/batches" or _BATCH.fullmatch(path):
            await self._batch(exchange, key)
        elif method == "GET" and path == "/v1/models":
            models = [_model(name) for name in MODELS]
            await exchange.send({"data": models, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]})
        elif method == "GET" and (match := _MODEL.fullmatch(path)) and match["id"] in MODELS:
            await exchange.send(_model(match["id"]))
        else:
            raise _RefusedError(404, f"{method} {path}")

    async def _message(self, exchange: Exchange, body: dict[str, Any], key: str, model: str, *, stream: bool) -> None:
        try:
            conversation = self._threads.join(body)
        except UnknownThreadError:
            fault = HTTPFault(404, message="No usable thread state was found.", code="thread_not_found")
            raise _RefusedError(fault) from None
        reply = self.script.reply(conversation, key)
        await exchange.reply(reply, model, stream=stream, made=partial(self._threads.hold, conversation))

    async def _batch(self, exchange: Exchange, key: str) -> None:
        request, method = exchange.request, exchange.request.method
        base_url = "http://" + (request.header("host") or ["127.0.0.1"])[0]
        match = _BATCH.fullmatch(request.path)
        if match is None:
            if method == "POST":
                requests = _body(request, "requests")["requests"]
                if not isinstance(requests, list) or not all(_is_batch_request(item) for item in requests):
                    raise _RefusedError(
                        400, "requests: each needs a custom_id and params with model, max_tokens, messages"
                    )
                batch_id = token(exchange.rng, "msgbatch_01")
                made = self._batches.create(batch_id, self._clock(), requests, partial(self._outcome, exchange))
                await exchange.send(made.look(base_url))
            elif method == "GET":
                await exchange.send(self._batches.page(base_url))
            else:
                raise _RefusedError(404, f"{method} {request.path}")
            return
        batch: Batch | None = self._batches.get(match["id"])
        verb = match["verb"]
        if batch is None:
            raise _RefusedError(404, f"batch: {match['id']}")
        if (method, verb) == ("GET", None):
            await exchange.send(batch.look(base_url))
        elif (method, verb) == ("POST", "/cancel"):
            batch.cancel()
            await exchange.send(batch.describe(base_url))
        elif (method, verb) == ("GET", "/results"):
            if not batch.ended:
                raise _RefusedError(400, "The batch has not ended: it has no results yet.")
            await exchange.send(batch.results(), content_type="application/x-jsonl")
        elif (method, verb) == ("DELETE", None):
            self._batches.delete(batch.id)
            await exchange.send({"id": batch.id, "type": "message_batch_deleted"})
        else:
            raise _RefusedError(404, f"{method} {request.path}")

    def _outcome(self, exchange: Exchange, params: dict[str, Any]) -> dict[str, Any]:
        reply = self.script.reply(params, token(exchange.rng, "", 32))
        fault = reply.fault
        if isinstance(fault, Unprocessed):
            return {"type": fault.type}
        if isinstance(fault, HTTPFault):
            error = {"type": "error", "error": fault.error, "request_id": exchange.wire.request_id}
            return {"type": "errored", "error": error}
        if fault is not None:
            raise ScriptError(f"A request of a batch cannot end by {type(fault).__name__}.")
        return {"type": "succeeded", "message": exchange.message(reply, params["model"]).whole()}


class _RefusedError(Exception):
    """The request is at fault, not the script."""

    def __init__(self, fault: HTTPFault | int, message: str = "") -> None:
        super().__init__(message)
        self.fault = HTTPFault(fault, message=message) if isinstance(fault, int) else fault


def _body(request: Request, *required: str) -> dict[str, Any]:
    """The request's JSON object, with the fields that the API requires."""
    try:
        body = request.json
    except ValueError:
        raise _RefusedError(400, "The request body is not valid JSON") from None
    if not isinstance(body, dict):
        raise _RefusedError(400, "Input should be a valid dictionary")
    for name in required:
        if name not in body:
            raise _RefusedError(400, f"{name}: Field required")
    return body


def _is_batch_request(item: Any) -> bool:
    params = item.get("params") if isinstance(item, dict) and item.get("custom_id") else None
    return isinstance(params, dict) and {"model", "max_tokens", "messages"} <= params.keys()


def _model(id: str) -> dict[str, Any]:
    name = id.replace("-", " ").title()
    return {"type": "model", "id": id, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
