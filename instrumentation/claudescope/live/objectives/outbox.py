"""Brings alerts to the channels: once each, their end too, and again where a channel did not take them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from .alerts import notice
from .book import FIRING, RESOLVED, Book, Entry, Key, Submit, Told
from .channels import Channel, DeliveryError

__all__ = ["Outbox"]

logger = logging.getLogger("claudescope.slo")

_LOOK_S: Final = 1.0
_FIRST_S: Final = 1.0
_MOST_S: Final = 300.0
"""Between two tries of what was not taken: doubling from the one to the other."""


class Outbox:
    """One task a channel, so that a slow one holds up no other. Used by the event loop only."""

    def __init__(
        self,
        book: Book,
        channels: Sequence[Channel],
        submit: Submit,
        url: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._book = book
        self._channels = channels
        self._submit = submit
        self._url = url
        self._clock = clock
        self.errors: dict[str, str] = {}
        """By channel, why the latest notice was not taken."""

    @property
    def channels(self) -> list[str]:
        """Their names."""
        return [channel.name for channel in self._channels]

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        for entry in self._book.entries.values():  # a channel that is no more hears nothing
            entry.told = {name: told for name, told in entry.told.items() if name in self.channels}
        await asyncio.gather(*(self._serve(channel) for channel in self._channels))

    async def _serve(self, channel: Channel) -> None:
        waits: dict[str, tuple[float, float]] = {}
        while True:
            for slo in {key.objective for key in self._book.entries}:
                pause, until = waits.get(slo, (0.0, 0.0))
                if time.monotonic() < until:
                    continue
                if await self.deliver(channel, slo):
                    waits.pop(slo, None)
                else:
                    pause = min(_MOST_S, max(_FIRST_S, 2 * pause))
                    waits[slo] = pause, time.monotonic() + pause
            await asyncio.sleep(_LOOK_S)

    async def deliver(self, channel: Channel, slo: str) -> bool:
        """Tells one channel what it does not know yet of one objective. False where it has to be tried again."""
        now_ms = int(self._clock() * 1000)
        due = [(key, entry) for key, entry in self._book.of(slo) if _is_due(entry, channel, now_ms)]
        if not due:
            return True
        fresh = {key for key, _ in due}
        firing = [
            (key, entry)
            for key, entry in self._book.of(slo)
            if entry.alarm.state == FIRING and entry.alert is not None and key not in fresh
        ]
        told = [*due, *firing] if channel.repeat_ms is not None else due
        status = {key: _status(entry) for key, entry in told}
        body = notice(slo, [entry.alert for _, entry in told if entry.alert is not None], channel.name, self._url)
        try:
            await channel.send(body)
            self.errors.pop(channel.name, None)
        except DeliveryError as error:
            if self.errors.get(channel.name) != str(error):
                logger.warning("claudescope: an alert of %s was not delivered: %s", slo, error)
            self.errors[channel.name] = str(error)
            if error.again:
                return False
        self._note(told, status, channel, now_ms)
        with contextlib.suppress(Exception):  # a full disk: at worst it is told twice
            await self._book.save(self._submit)
        return True

    def _note(self, told: Iterable[tuple[Key, Entry]], status: dict[Key, str], channel: Channel, now_ms: int) -> None:
        for key, entry in told:
            entry.told[channel.name] = Told(status[key], now_ms)
            self._book.touch(key)


def _status(entry: Entry) -> str:
    return FIRING if entry.alarm.state == FIRING else RESOLVED


def _is_due(entry: Entry, channel: Channel, now_ms: int) -> bool:
    if entry.alert is None:
        return False
    told = entry.told.get(channel.name)
    if entry.alarm.state == FIRING:
        if told is None or told.status != FIRING:
            return True
        return channel.repeat_ms is not None and now_ms - told.at_ms >= channel.repeat_ms
    # who never heard that it fires need not hear that it is over
    return told is not None and told.status == FIRING and entry.alarm.resolved_ms is not None
