"""``/api/runs`` and ``/api/runs/{run_id}``: agent runs."""

from __future__ import annotations

from typing import Any

from ..store.reader import Reader
from ..store.run_list import SORTS, STATUSES, RunQuery
from .endpoint import Asked, Endpoint
from .parameters import LIMIT_DEFAULT, PAGE, PERIOD, Parameter
from .schemas import listed, ref
from .security import error_response
from .values import choice, moment, text

__all__ = ["Runs"]


class Runs:
    """Runs from the store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def endpoints(self) -> list[Endpoint]:
        """The list and one run."""
        own = {
            "run": Parameter(text, "This run."),
            "q": Parameter(
                text,
                "A run or trace id, at least 4 hex digits that one begins with, a label as KEY:VALUE, or else a part of"
                " a step's captured text.",
            ),
            "status": Parameter(choice(*STATUSES), "How it ended, or `running`."),
            "steps_from": Parameter(moment, "With a step that ended then or later, and that is as the filter asks."),
            "steps_to": Parameter(moment, "With a step that ended before, and that is as the filter asks."),
            "sort": Parameter(choice(*SORTS), "What the list is sorted by; `started` unless given."),
        }
        return [
            Endpoint(
                "/api/runs",
                "Runs that have a step as the filter asks, the latest started first.",
                self._list,
                listed("Run"),
                {**own, **PERIOD, **PAGE},
                filtered=True,
            ),
            Endpoint(
                "/api/runs/{run_id:path}",
                "A run with its steps, calls, spans and log events.",
                self._one,
                ref("WholeRun"),
                within={"run_id": Parameter(text, "The run.")},
                errors={404: "There is no such run."},
            ),
        ]

    async def _list(self, asked: Asked) -> Any:
        given = asked.given
        query = RunQuery(
            where=asked.where,
            q=given.get("q", ""),
            run=given.get("run"),
            status=given.get("status"),
            from_ms=given.get("from"),
            to_ms=given.get("to"),
            steps_from_ms=given.get("steps_from"),
            steps_to_ms=given.get("steps_to"),
            sort=given.get("sort", "started"),
            descending=given.get("order") != "asc",
            cursor=given.get("cursor"),
            limit=given.get("limit", LIMIT_DEFAULT),
        )
        return await self._reader.runs(query)

    async def _one(self, asked: Asked) -> Any:
        found = await self._reader.run(asked.given["run_id"])
        if found is None:
            return error_response(404, "no_such_run", "There is no such run.", "Look at /api/runs for those there.")
        return found
