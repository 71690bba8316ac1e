"""All that is about objectives in one server: files, counts, alarms, and whom they are told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Final

from ...settings import Settings
from ...slo.objective import Objective, Tier
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

_USUAL_S: Final = 3600


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
        """What is explained unless somebody asks for another time, in seconds: the shortest long window of the tiers
        that fire, else of those that are about to, else of the one that is nearest to it.
        """
        found = next((one for one in self.evaluator.records() if one["id"] == objective.id), None)
        states = {tier["name"]: tier for tier in found["tiers"]} if found is not None else {}
        for state in ("firing", "pending"):
            lengths = [tier.long.seconds for tier in objective.tiers if states.get(tier.name, {}).get("state") == state]
            if lengths:
                return min(lengths)

        def nearness(tier: Tier) -> tuple[float, int]:
            return (states.get(tier.name, {}).get("burn_long") or 0.0) / tier.factor, -tier.long.seconds

        return max(objective.tiers, key=nearness).long.seconds if objective.tiers else _USUAL_S


def _channels(settings: Settings) -> list[Channel]:
    found: list[Channel] = []
    if settings.slo_webhook:
        found.append(Webhook(settings.slo_webhook, settings.slo_webhook_token))
    if settings.slo_command:
        found.append(Command(settings.slo_command))
    return found or [Log()]
