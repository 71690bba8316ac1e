"""Evaluates the objectives on the server's own counts, again and again, and keeps their alarms."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ...slo.burn import fires
from ...slo.objective import Indicator, Objective, Tier
from ...slo.rules.canary import CANARY_WAIT
from ..rollups.tiers import BUCKET_MS
from .alerts import ABSENT, CANARY, Alert, absent_alert, canary_alert, tier_alert
from .ask import Ask
from .book import Book, Entry, Key, Submit
from .canary import verdict
from .judge import Judge
from .ledger import Ledger, expire
from .reading import GroupReading, Reading, read
from .report import record, uncounted_record
from .specs import Specs

__all__ = ["INTERVAL_MS", "Evaluator"]

logger = logging.getLogger("claudescope.slo")

Judges = list[tuple[Objective, Judge]]

INTERVAL_MS: Final = BUCKET_MS
"""From one evaluation to the next, at whole buckets."""
_SETTLE_S: Final = 0.3
"""After the end of a bucket, so that what was on its way is in it."""
_RETRY_S: Final = 1.0
_BETWEEN_S: Final = 0.01
_EXPIRE_S: Final = 600.0


class _Latest(NamedTuple):
    reading: Reading
    record: dict[str, Any]


class Evaluator:
    """The objectives as they are. Used by the event loop only; ``ledger`` is the writer's."""

    def __init__(
        self,
        specs: Specs,
        ledger: Ledger,
        book: Book,
        submit: Submit,
        ask: Ask,
        url: str,
        heard: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``heard`` says when metrics of a service last came, in ms: an app that is idle sends them all the same."""
        self.specs = specs
        self._ledger = ledger
        self._book = book
        self._submit = submit
        self._ask = ask
        self._url = url
        self._heard = heard
        self._clock = clock
        self._installed = asyncio.Event()
        self._more = False
        self._latest: dict[str, _Latest] = {}
        self.evaluated_ms: int | None = None

    def _now(self) -> int:
        return int(self._clock() * 1000)

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        await self.install()
        self._end_alarms_of_others()
        await asyncio.gather(self._count_stored(), self._evaluate_for_ever(), self._follow_specs())

    async def install(self) -> None:
        """Has the writer count the objectives in force; tried again until it does."""
        while True:
            judges = list(self.specs.counted)

            def work(db: sqlite3.Connection, judges: Judges = judges) -> None:
                self._ledger.install(db, judges)

            try:
                await self._submit(work)
                self._installed.set()
                return
            except Exception as error:  # noqa: BLE001 - a full disk: what is stored meanwhile is counted afterwards
                logger.debug("the objectives are not counted yet: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _follow_specs(self) -> None:
        while True:
            if await self.specs.changed():
                await self.install()
                self._end_alarms_of_others()
            elif self.specs.error is not None:
                logger.warning("claudescope: the objectives stay as they were: %s", self.specs.error)

    def _end_alarms_of_others(self) -> None:
        """Alarms of objectives, tiers and labels that are no more are over."""
        now_ms = self._now()
        rules = {objective.id: objective for objective, _ in self.specs.counted}
        for key, entry in list(self._book.entries.items()):
            objective = rules.get(key.objective)
            names = {tier.name for tier in objective.tiers} if objective is not None else set()
            if objective is None or key.rule not in (*names, ABSENT, CANARY):
                entry.alarm.end(now_ms)
                _close(entry)
                self._book.touch(key)
        self._latest = {name: latest for name, latest in self._latest.items() if name in rules}

    async def _count_stored(self) -> None:
        """Has rows counted that were stored before; a piece at a time, so that others write in between.

        Nothing is asked of the writer while there is nothing to do: that it can commit nothing says nothing of a disk.
        """
        while True:
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(self._installed.wait(), _EXPIRE_S)
            self._installed.clear()
            self._more = True
            while self._more:
                try:
                    await self._submit(self._count_piece)
                    await asyncio.sleep(_BETWEEN_S)
                except Exception as error:  # noqa: BLE001 - nothing was lost: the same again, later
                    logger.debug("stored steps are not counted for the objectives yet: %s", error)
                    await asyncio.sleep(_RETRY_S)
            with contextlib.suppress(Exception):  # a full disk: the next time
                await self._submit(lambda db: expire(db, self._now()))

    def _count_piece(self, db: sqlite3.Connection) -> None:
        """Runs on the writer's thread, while the loop waits for it."""
        self._more = self._ledger.work(db, self._now())

    async def _evaluate_for_ever(self) -> None:
        while True:
            now_ms = self._now()
            now_ms -= now_ms % INTERVAL_MS
            try:
                await self.evaluate(now_ms)
            except Exception:
                logger.exception("the objectives were not evaluated once")
            await asyncio.sleep(max(0.05, (now_ms + INTERVAL_MS) / 1000 + _SETTLE_S - self._clock()))

    async def evaluate(self, now_ms: int) -> None:
        """One evaluation of all objectives, at a time that is a multiple of ``INTERVAL_MS``."""
        counted = [objective for objective, _ in self.specs.counted]
        for objective in counted:
            reading = await self._ask(partial(_read, objective, now_ms))
            if reading.known is not None and not reading.known.waiting:
                self._judge(objective, reading)
            self._latest[objective.id] = _Latest(reading, record(objective, reading, self._book))
        self.evaluated_ms = now_ms
        try:
            await self.save()
        except Exception as error:  # noqa: BLE001 - a full disk: they are kept in memory
            logger.debug("the alarms are not saved: %s", error)

    async def save(self) -> None:
        """Writes what changed of the alarms."""
        await self._book.save(self._submit)

    def _judge(self, objective: Objective, reading: Reading) -> None:
        seen = set()
        for group in reading.groups:
            for tier in objective.tiers:
                notice = objective.page if tier.severity == "page" else objective.ticket
                holds = not notice.disabled and fires(objective, tier, group.windows)

                def say(group: GroupReading = group, tier: Tier = tier) -> Alert:
                    short, long = group.windows[str(tier.short)], group.windows[str(tier.long)]
                    return tier_alert(objective, tier, group.labels, short, long, self._url)

                waits = tier.wait.seconds * 1000, objective.keep_firing.seconds * 1000
                seen.add(self._step(objective, tier.name, group.labels, holds, reading.now_ms, waits, say))
        seen.add(self._judge_absence(objective, reading))
        seen |= self._judge_canary(objective, reading)
        for key, entry in self._book.of(objective.id):  # a label set that has left the period
            if key not in seen and entry.alarm.state != "inactive":
                entry.alarm.end(reading.now_ms)
                _close(entry)
                self._book.touch(key)

    def _judge_absence(self, objective: Objective, reading: Reading) -> Key:
        """Idle is not absent, so only a service that sent metrics to this server can be missed."""
        source, after = objective.source, objective.absent_after
        wanted = source.where.service if isinstance(source, Indicator) else ()
        beats = [at for service, at in self._heard().items() if not wanted or service in wanted]
        last = max([*beats, reading.total.last_ms or 0], default=0)
        holds = bool(beats) and after is not None and reading.now_ms - last >= after.seconds * 1000
        return self._step(
            objective, ABSENT, {}, holds, reading.now_ms, (0, 0),
            lambda: absent_alert(objective, {}, last, self._url),
        )  # fmt: skip

    def _judge_canary(self, objective: Objective, reading: Reading) -> set[Key]:
        seen: set[Key] = set()
        rule = objective.canary
        for labels, (canary, baseline) in reading.canary.items() if rule is not None else ():
            assert rule is not None
            why = verdict(rule, objective.alpha, canary, baseline)
            waits = CANARY_WAIT * 1000, objective.keep_firing.seconds * 1000
            group = dict(labels)

            def say(group: dict[str, str] = group, why: str | None = why) -> Alert:
                return canary_alert(objective, group, why or "", self._url)

            seen.add(self._step(objective, CANARY, group, why is not None, reading.now_ms, waits, say))
        return seen

    def _step(
        self,
        objective: Objective,
        rule: str,
        labels: Any,
        holds: bool,
        now_ms: int,
        waits: tuple[int, int],
        say: Callable[[], Alert],
    ) -> Key:
        key, entry = self._book.entry(objective.id, rule, labels)
        before = entry.alarm.active_ms, entry.alarm.quiet_ms
        changed = entry.alarm.step(holds, now_ms, *waits)
        if entry.alarm.state == "firing" and (changed or holds):
            fresh = say()
            fresh.starts_ms = entry.alarm.fired_ms or now_ms
            entry.alert = fresh
        elif changed:
            _close(entry)
        if changed or before != (entry.alarm.active_ms, entry.alarm.quiet_ms):
            self._book.touch(key)
        return key

    # ---------------------------------------------------------------------------------------------- questions

    def objective(self, name: str) -> Objective | None:
        """An objective that the server counts, by its id."""
        return next((objective for objective, _ in self.specs.counted if objective.id == name), None)

    def records(self) -> list[dict[str, Any]]:
        """The records of all objectives, in the order of their files."""
        found = []
        for objective, _ in self.specs.counted:
            latest = self._latest.get(objective.id)
            if latest is not None:
                found.append(latest.record)
            else:
                nothing = Reading(None, self._now(), 0, (), GroupReading({}, {}, None), {}, [])
                found.append(record(objective, nothing, self._book))
        return [*found, *(uncounted_record(objective, why) for objective, why in self.specs.uncounted)]

    def readings(self) -> list[tuple[Objective, Reading]]:
        """What the latest evaluation read of each objective."""
        known = ((objective, self._latest.get(objective.id)) for objective, _ in self.specs.counted)
        return [(objective, latest.reading) for objective, latest in known if latest is not None]

    @property
    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire, those of longest standing first."""
        entries = [entry for entry in self._book.entries.values() if entry.alarm.state == "firing" and entry.alert]
        alerts = sorted((entry.alert for entry in entries if entry.alert), key=lambda alert: alert.starts_ms)
        return [
            {"labels": alert.labels, "annotations": alert.annotations, "starts_ms": alert.starts_ms} for alert in alerts
        ]


def _read(objective: Objective, now_ms: int, db: sqlite3.Connection) -> Reading:
    return read(db, objective, now_ms)


def _close(entry: Entry) -> None:
    """The alert of an alarm that is over says when."""
    if entry.alert is not None and entry.alarm.resolved_ms is not None:
        entry.alert.ends_ms = entry.alarm.resolved_ms
