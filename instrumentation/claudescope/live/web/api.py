"""The answers of the REST API and the stream."""

from __future__ import annotations

import time
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..receiver.counters import Counters
from ..rollups.aggregates import BUCKET_MS, HeatMap
from ..store.reader import Reader, Select
from ..stream import Hub, TooManyClientsError
from .parameters import LIMIT_DEFAULT, ParameterError, cursor, hex_id, limit, moment, parse, text, verdict, whole
from .parameters import choice as one_of
from .security import error_response

__all__ = ["Api", "json_response"]

_INDEX: Final = whole(0, 2**31 - 1)
_STEP_PARAMETERS: Final = {
    "limit": limit,
    "cursor": cursor,
    "from": moment,
    "to": moment,
    "order": one_of("asc", "desc"),
    "run": text,
    "trace": hex_id(32),
    "service": text,
    "model": text,
    "kind": text,
    "tool": text,
    "index": _INDEX,
    "valid": verdict,
}
_RUN_PARAMETERS: Final = {
    "limit": limit,
    "cursor": cursor,
    "from": moment,
    "to": moment,
    "order": one_of("asc", "desc"),
    "run": text,
    "service": text,
}
_HEAT_PARAMETERS: Final = {"from": moment, "to": moment, "bucket": whole(10, 3600)}
_HEAT_RANGE_MS: Final = 15 * 60_000


def json_response(data: Any, status: int = 200) -> Response:
    """JSON that no cache keeps."""
    return Response(orjson.dumps(data), status, {"Cache-Control": "no-store"}, "application/json")


class Api:
    """Handlers over the reader, the aggregates and the stream."""

    def __init__(self, reader: Reader, heat: HeatMap, hub: Hub, counters: Counters, version: str) -> None:
        self._reader = reader
        self._heat = heat
        self._hub = hub
        self._counters = counters
        self._health = {"service": "claudescope", "version": version, "started": int(time.time() * 1000)}

    async def healthz(self, request: Request) -> Response:
        """Who this is."""
        return json_response(self._health)

    async def steps(self, request: Request) -> Response:
        """Steps, newest first unless ``order=asc``."""
        given = parse(request.query_params, _STEP_PARAMETERS)
        select = Select("s.ts_ms", given.get("order") != "asc")
        select.between(given.get("from"), given.get("to"))
        select.after(given.get("cursor"), "s.id")
        if "run" in given:
            select.where("s.run = (SELECT id FROM runs WHERE run_id = ?)", given["run"])
        if "trace" in given:
            select.where("s.trace_id = ?", given["trace"])
        if "index" in given:
            select.where("s.step_index = ?", given["index"])
        for name in ("service", "model", "kind", "tool"):
            if name in given:
                select.where(f"s.{name} = ?", given[name])
        if "valid" in given:
            value = {"true": 1, "false": 0, "unknown": None}[given["valid"]]
            select.where("s.is_valid IS ?", value)
        return json_response(await self._reader.steps(select, given.get("limit", LIMIT_DEFAULT), "run" in given))

    async def runs(self, request: Request) -> Response:
        """Runs, the latest started first unless ``order=asc``."""
        given = parse(request.query_params, _RUN_PARAMETERS)
        select = Select("started_ms", given.get("order") != "asc")
        select.between(given.get("from"), given.get("to"))
        select.after(given.get("cursor"), "id")
        if "run" in given:
            select.where("run_id = ?", given["run"])
        if "service" in given:
            select.where("service = ?", given["service"])
        return json_response(await self._reader.runs(select, given.get("limit", LIMIT_DEFAULT)))

    async def trace(self, request: Request) -> Response:
        """One trace: all its spans, of any sender, and its log events."""
        parse(request.query_params, {"-": text})
        trace_id = parse({"trace_id": request.path_params["trace_id"]}, {"trace_id": hex_id(32)})["trace_id"]
        found = await self._reader.trace(trace_id)
        if found is None:
            return error_response(404, "no_such_trace", "There is no such trace.", "Look at /api/runs for those there.")
        return json_response(found)

    async def heatmap(self, request: Request) -> Response:
        """Cells by time and step number; ``bucket`` in seconds, rounded up to ten."""
        given = parse(request.query_params, _HEAT_PARAMETERS)
        now = int(time.time() * 1000)
        to_ms = given.get("to", now + BUCKET_MS)
        from_ms = given.get("from", to_ms - _HEAT_RANGE_MS)
        if from_ms >= to_ms:
            raise ParameterError("from", "from is not before to.", "Give a from that is before to.")
        bucket_ms = -(-given.get("bucket", 10) * 1000 // BUCKET_MS) * BUCKET_MS
        items = self._heat.cells(from_ms, to_ms, bucket_ms)
        return json_response({"items": items, "next": None, "bucket_ms": bucket_ms, "quantile_error": 0.05})

    async def counters(self, request: Request) -> Response:
        """The counters that apps sent, and the steps that were stored, by verdict."""
        parse(request.query_params, {"-": text})
        return json_response({"items": self._counters.items(), "next": None, "stored": self._heat.totals()})

    async def stream(self, request: Request) -> Response:
        """Server-sent events: ``step``, ``run``, ``stats``, ``lag``."""
        given = parse(request.query_params, {"last_event_id": text})
        try:
            self._hub.check_room()
        except TooManyClientsError:
            return error_response(
                429, "too_many_streams", "Too many pages are open.", "Close some of them.", {"Retry-After": "5"}
            )
        last = request.headers.get("last-event-id") or given.get("last_event_id")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._hub.subscribe(last), media_type="text/event-stream", headers=headers)
