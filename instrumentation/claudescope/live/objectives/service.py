"""All that is about objectives in one server: files, counts, alarms, and whom they are told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping

from ...settings import Settings
from ...slo.objective import Objective
from .ask import Ask
from .book import Book, Submit
from .channels import Channel, Command, Log, Webhook
from .evaluator import Evaluator
from .evidence import Evidence
from .ledger import Ledger
from .outbox import Outbox
from .specs import Specs

__all__ = ["Service"]

logger = logging.getLogger("claudescope.slo")


class Service:
    """Made before the server runs, ``connect`` when it has a store; ``run`` goes on until it is cancelled.

    Raises UsageError when a file of objectives is bad.
    """

    evaluator: Evaluator
    outbox: Outbox
    evidence: Evidence

    def __init__(self, settings: Settings) -> None:
        self.specs = Specs(settings.slo)
        self.ledger = Ledger()
        self._book = Book()
        self._channels = _channels(settings)

    def load(self, db: sqlite3.Connection) -> None:
        """Reads the alarms of before."""
        self._book.load(db)

    def connect(
        self,
        submit: Submit,
        ask: Ask,
        url: str,
        heard: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Gives it the writer, the reader, the page's address, and when metrics of each service last came."""
        self.evaluator = Evaluator(self.specs, self.ledger, self._book, submit, ask, url, heard, clock)
        self.outbox = Outbox(self._book, self._channels, submit, url, clock)
        self.evidence = Evidence(ask, url, self._window, clock)

    async def run(self) -> None:
        """Evaluates and tells."""
        for objective, why in self.specs.uncounted:
            logger.warning("claudescope: SLO %s is shown and not evaluated, since %s.", objective.id, why)
        await asyncio.gather(self.evaluator.run(), self.outbox.run())

    async def close(self) -> None:
        """Saves what changed last."""
        with contextlib.suppress(Exception):  # a full disk: the next start finds the alarms of before
            await self.evaluator.save()

    def _window(self, objective: Objective) -> int:
        """What burns: the long window of a tier that fires, else of the one nearest to it, in seconds."""
        found = next((one for one in self.evaluator.records() if one["id"] == objective.id), None)
        tiers = dict(zip((tier.name for tier in objective.tiers), objective.tiers, strict=True))
        if found is None or not found["tiers"]:
            return 3600
        order = {"firing": 2, "pending": 1, "inactive": 0}

        def urgency(tier: dict[str, object]) -> tuple[int, float]:
            burn, factor = tier["burn_long"], tier["factor"]
            return order[str(tier["state"])], (burn or 0.0) / factor  # type: ignore[operator]

        return tiers[max(found["tiers"], key=urgency)["name"]].long.seconds


def _channels(settings: Settings) -> list[Channel]:
    found: list[Channel] = []
    if settings.slo_webhook:
        found.append(Webhook(settings.slo_webhook, settings.slo_webhook_token))
    if settings.slo_command:
        found.append(Command(settings.slo_command))
    return found or [Log()]
