"""``/api/heatmap``, ``/api/distribution`` and ``/api/facets``: figures over a span of time, from the roll-ups."""

from __future__ import annotations

import time
from typing import Any, Final

from ..rollups.board import RANGES, Rollups
from ..rollups.tiers import BUCKET_MS
from .endpoint import Asked, Endpoint
from .parameters import PERIOD, Parameter, ParameterError
from .schemas import ref
from .values import choice, whole

__all__ = ["Figures"]

_USUAL: Final = "15m"
_BUCKET_S: Final = BUCKET_MS // 1000
_RANGE: Final = {
    "range": Parameter(choice(*RANGES), f"The time up to now, instead of from and to; `{_USUAL}` unless given."),
    **PERIOD,
}


class Figures:
    """Figures from the roll-ups."""

    def __init__(self, rollups: Rollups) -> None:
        self._rollups = rollups

    def endpoints(self) -> list[Endpoint]:
        """Heat map, distribution and facets."""
        bucket = Parameter(
            whole(_BUCKET_S, 86_400), f"Seconds of a cell, a multiple of {_BUCKET_S}; longer where none are so short."
        )
        return [
            Endpoint(
                "/api/heatmap",
                "Figures by time and step number.",
                self._heatmap,
                ref("HeatMap"),
                {**_RANGE, "bucket": bucket},
                filtered=True,
            ),
            Endpoint(
                "/api/distribution",
                "How latency and confidence are distributed, by step number and of all steps.",
                self._distribution,
                ref("Distribution"),
                _RANGE,
                filtered=True,
            ),
            Endpoint(
                "/api/facets",
                "How many steps have each value of a field, under the filter without that field; most first.",
                self._facets,
                ref("Facets"),
                _RANGE,
                filtered=True,
            ),
        ]

    async def _heatmap(self, asked: Asked) -> Any:
        from_ms, to_ms, usual = _period(asked.given)
        seconds: int | None = asked.given.get("bucket")
        if seconds is not None and seconds % _BUCKET_S:
            raise ParameterError("bucket", f"bucket is {seconds}.", f"Give a multiple of {_BUCKET_S}.")
        return await self._rollups.heat(asked.where, from_ms, to_ms, seconds * 1000 if seconds else usual)

    async def _distribution(self, asked: Asked) -> Any:
        from_ms, to_ms, _ = _period(asked.given)
        return await self._rollups.distribution(asked.where, from_ms, to_ms)

    async def _facets(self, asked: Asked) -> Any:
        from_ms, to_ms, _ = _period(asked.given)
        return await self._rollups.facets(asked.where, from_ms, to_ms)


def _period(given: dict[str, Any]) -> tuple[int, int, int | None]:
    """From, to and, of a named range, the usual bucket, in ms."""
    named = "from" not in given and "to" not in given
    if "range" in given and not named:
        raise ParameterError("range", "range is given with from or to.", "Give range alone, or from and to.")
    length, bucket = RANGES[given.get("range", _USUAL)]
    to_ms: int = given.get("to", int(time.time() * 1000) + BUCKET_MS)
    from_ms: int = given.get("from", to_ms - length)
    if from_ms >= to_ms:
        raise ParameterError("from", "from is not before now.", "Give an earlier from, or a later to.")
    return from_ms, to_ms, bucket if named else None
