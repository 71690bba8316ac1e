"""What Jaeger knows: which service calls which, and traces with a bad event of a slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from .. import semconv
from ..semconv.prometheus import SERVICE_LABEL, prometheus_label
from ..slo.objective import Indicator, Objective
from .outbound import Caller

__all__ = ["Call", "Jaeger"]

_BY_LABEL: Final = {
    prometheus_label(name): name
    for name in (semconv.REQUEST_MODEL, semconv.STEP_KIND, semconv.STEP_INDEX, semconv.TOOL_NAME)
}
_BUSINESS: Final = prometheus_label(semconv.LABEL_PREFIX)
_LAST_INDEX: Final = "16+"


class Call(NamedTuple):
    """How often one thing calls another."""

    caller: str
    called: str
    kind: str
    """``service``, ``model`` or ``tool``: what is called."""
    times: float

    def json(self) -> dict[str, Any]:
        """As a ticket has it."""
        return {"from": self.caller, "to": self.called, "kind": self.kind, "count": round(self.times, 1)}


class Jaeger:
    """Its HTTP API. Raises AwayError and RefusedError."""

    def __init__(self, url: str, call: Caller) -> None:
        self._url = url
        self._call = call

    def calls(self, until: int, milliseconds: int) -> list[Call]:
        """Which service calls which, in the time until ``until`` (Unix ms)."""
        asked = urlencode({"endTs": until, "lookback": milliseconds})
        found = self._call("GET", f"{self._url}/api/dependencies?{asked}")
        rows = found.get("data") if isinstance(found, dict) else None
        return [
            Call(row["parent"], row["child"], "service", float(row["callCount"]))
            for row in rows or []
            if isinstance(row, dict)
            and isinstance(row.get("parent"), str)
            and isinstance(row.get("child"), str)
            and isinstance(row.get("callCount"), (int, float))
        ]

    def traces(
        self, objective: Objective, labels: Mapping[str, str], at: float, window: int, most: int = 3
    ) -> list[str]:
        """Ids of traces with a bad event of a slice; none where no one service is known to ask for."""
        tags = _tags(objective)
        services = objective.source.where.service if isinstance(objective.source, Indicator) else ()
        service = labels.get(SERVICE_LABEL) or (services[0] if len(services) == 1 else "")
        if not service or not tags:
            return []
        for name, value in labels.items():
            if value and value != _LAST_INDEX and name in _BY_LABEL:
                tags[_BY_LABEL[name]] = value
            elif value and name.startswith(_BUSINESS):
                tags[semconv.LABEL_PREFIX + name[len(_BUSINESS) :]] = value
        asked = {
            "service": service,
            "tags": orjson.dumps(tags).decode(),
            "start": int((at - window) * 1e6),
            "end": int(at * 1e6),
            "limit": most,
        }
        found = self._call("GET", f"{self._url}/api/traces?{urlencode(asked)}")
        rows = found.get("data") if isinstance(found, dict) else None
        ids = [row.get("traceID") for row in rows or [] if isinstance(row, dict)]
        return [one for one in ids if isinstance(one, str)][:most]


def _tags(objective: Objective) -> dict[str, str]:
    """Tags of a span of a bad event; none where no tag says it."""
    measure = objective.source.measure if isinstance(objective.source, Indicator) else ""
    if measure in ("step_validity", "tool_success"):
        return {semconv.STEP_VALID: "false"}
    return {"error": "true"} if measure == "errors" else {}
