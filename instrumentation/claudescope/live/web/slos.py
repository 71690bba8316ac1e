"""``/api/slos``: the objectives as they are, and why one burns."""

from __future__ import annotations

from typing import Any, Final, Protocol

from starlette.responses import Response

from ...slo.objective import Objective
from ..objectives.evaluator import INTERVAL_MS, Evaluator
from ..objectives.evidence import Evidence
from ..objectives.outbox import Outbox
from .endpoint import Asked, Endpoint
from .parameters import PERIOD, Parameter
from .schemas import ref
from .security import error_response
from .values import pair, text

__all__ = ["Objectives", "Slos"]

_ID: Final = {"slo_id": Parameter(text, "Service and name, joined by a hyphen.")}
_NO_SLO: Final = {404: "There is no such objective."}


class Objectives(Protocol):
    """What a server with objectives has."""

    evaluator: Evaluator
    outbox: Outbox
    evidence: Evidence


class Slos:
    """Objectives; without any, the list is empty."""

    def __init__(self, objectives: Objectives | None) -> None:
        self._objectives = objectives

    def endpoints(self) -> list[Endpoint]:
        """List, one, and its explanation."""
        return [
            Endpoint("/api/slos", "The objectives: budget, burn rates, tiers.", self._list, ref("Slos")),
            Endpoint("/api/slos/{slo_id}", "One objective.", self._one, ref("Slo"), within=_ID, errors=_NO_SLO),
            Endpoint(
                "/api/slos/{slo_id}/explain",
                "Which slices of the events the bad ones are in, more than before.",
                self._explain,
                ref("SloExplanation"),
                {
                    **PERIOD,
                    "group": Parameter(pair, "Only events with this label, as NAME:VALUE.", many=True),
                },
                within=_ID,
                errors=_NO_SLO,
            ),
        ]

    async def _list(self, asked: Asked) -> Any:
        if self._objectives is None:
            nothing: dict[str, Any] = {"items": [], "next": None, "evaluated_ms": None, "interval_s": None}
            return {**nothing, "alerts": [], "files": [], "loaded_ms": None, "error": None, "channels": []}
        evaluator, outbox = self._objectives.evaluator, self._objectives.outbox
        return {
            "items": evaluator.records(),
            "next": None,
            "evaluated_ms": evaluator.evaluated_ms,
            "interval_s": INTERVAL_MS // 1000,
            "alerts": evaluator.firing,
            "files": [str(path) for path in evaluator.specs.paths],
            "loaded_ms": evaluator.specs.loaded_ms,
            "error": evaluator.specs.error,
            "channels": [{"name": name, "error": outbox.errors.get(name)} for name in outbox.channels],
        }

    async def _one(self, asked: Asked) -> Any:
        records = self._objectives.evaluator.records() if self._objectives is not None else []
        return next((record for record in records if record["id"] == asked.given["slo_id"]), _no_slo())

    async def _explain(self, asked: Asked) -> Any:
        objective = self._find(asked.given["slo_id"])
        if self._objectives is None or objective is None:
            return _no_slo()
        given = asked.given
        group = dict(given.get("group", ()))
        return await self._objectives.evidence.explain(objective, given.get("from"), given.get("to"), group)

    def _find(self, name: str) -> Objective | None:
        return self._objectives.evaluator.objective(name) if self._objectives is not None else None


def _no_slo() -> Response:
    return error_response(
        404, "no_such_slo", "There is no such objective, or it is not counted here.", "See /api/slos."
    )
