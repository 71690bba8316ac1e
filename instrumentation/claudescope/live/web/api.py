"""All endpoints of the API in one place, with the document that describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...prices import Prices
from ...settings import Settings
from ..receiver.counters import Counters
from ..receiver.ingest import Ingest
from ..rollups.board import Rollups
from ..store.inventory import store_files
from ..store.reader import Reader
from ..store.writer import Writer
from ..stream import Hub
from .endpoint import Asked, Endpoint
from .events import Events
from .figures import Figures
from .metrics import Metrics
from .openapi import document
from .runs import Runs
from .slometrics import slo_families
from .slos import Objectives, Slos
from .spanmetrics import StepTotals
from .status import Status
from .steps import Steps
from .traces import Traces

__all__ = ["Api"]


class Api:
    """The endpoints over everything that has answers."""

    def __init__(
        self,
        *,
        settings: Settings,
        version: str,
        prices: Prices,
        folder: Path,
        reader: Reader,
        writer: Writer,
        rollups: Rollups,
        totals: StepTotals,
        hub: Hub,
        ingest: Ingest,
        counters: Counters,
        slos: Objectives | None = None,
    ) -> None:
        rooms = (
            Steps(reader),
            Runs(reader),
            Traces(reader),
            Figures(rollups),
            Slos(slos),
            Status(
                settings=settings,
                version=version,
                prices=prices,
                folder=folder,
                reader=reader,
                writer=writer,
                rollups=rollups,
                hub=hub,
                ingest=ingest,
                counters=counters,
            ),
            Events(hub),
            Metrics(
                ingest=ingest,
                counters=counters,
                rollups=rollups,
                totals=totals,
                writer=writer,
                hub=hub,
                store_bytes=lambda: _size(folder),
                slos=lambda: slo_families(slos.evaluator.readings()) if slos is not None else [],
            ),
        )
        self.endpoints = [endpoint for room in rooms for endpoint in room.endpoints()]
        self.endpoints.append(
            Endpoint("/api/openapi.json", "This document.", self._openapi, {"type": "object"}),
        )
        self._document = document(self.endpoints, version)

    async def _openapi(self, asked: Asked) -> Any:
        return self._document


def _size(folder: Path) -> int:
    files, _ = store_files(folder)
    return sum(file.stat().st_size for file in files)
