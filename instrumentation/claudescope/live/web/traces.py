"""``/api/traces/{trace_id}``: one trace, whoever sent it."""

from __future__ import annotations

from typing import Any

from ..store.reader import Reader
from .endpoint import Asked, Endpoint
from .parameters import Parameter
from .schemas import ref
from .security import error_response
from .values import hex_id

__all__ = ["Traces"]


class Traces:
    """Traces from the store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def endpoints(self) -> list[Endpoint]:
        """The one endpoint."""
        return [
            Endpoint(
                "/api/traces/{trace_id}",
                "All spans of a trace, of any sender, and its log events.",
                self._one,
                ref("Trace"),
                within={"trace_id": Parameter(hex_id(32), "The trace.")},
                errors={404: "There is no such trace."},
            )
        ]

    async def _one(self, asked: Asked) -> Any:
        found = await self._reader.trace(asked.given["trace_id"])
        if found is None:
            return error_response(404, "no_such_trace", "There is no such trace.", "Look at /api/runs for those there.")
        return found
