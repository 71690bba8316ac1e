"""``/api/steps``: the list of steps."""

from __future__ import annotations

from typing import Any

from ..store.reader import Reader
from ..store.step_list import StepQuery
from .endpoint import Asked, Endpoint
from .parameters import LIMIT_DEFAULT, PAGE, PERIOD, Parameter
from .schemas import listed
from .values import hex_id, text

__all__ = ["Steps"]


class Steps:
    """Steps from the store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def endpoints(self) -> list[Endpoint]:
        """The one endpoint."""
        own = {
            "run": Parameter(text, "Steps of this run."),
            "trace": Parameter(hex_id(32), "Steps of this trace."),
        }
        return [
            Endpoint(
                "/api/steps",
                "Steps by when they ended, newest first unless order=asc.",
                self._list,
                listed("Step"),
                {**own, **PERIOD, **PAGE},
                filtered=True,
            )
        ]

    async def _list(self, asked: Asked) -> Any:
        given = asked.given
        query = StepQuery(
            where=asked.where,
            run=given.get("run"),
            trace=given.get("trace"),
            from_ms=given.get("from"),
            to_ms=given.get("to"),
            descending=given.get("order") != "asc",
            cursor=given.get("cursor"),
            limit=given.get("limit", LIMIT_DEFAULT),
        )
        return await self._reader.steps(query)
