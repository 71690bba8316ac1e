"""The threads that do what the queue holds: one for the explanations and one for each place, so that a place that is
away keeps nobody waiting but its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import time
from typing import Final

from .analyst import Analyst
from .database import StoreError
from .options import Options
from .outbound import AwayError, RefusedError, shown
from .queue import EXPLAIN, Queue, Task
from .sinks.protocol import Sink
from .ticket import Links, Ticket

__all__ = ["Workers", "backoff"]

logger = logging.getLogger(__name__)

_FIRST: Final = 1.0
_LONGEST: Final = 300.0
_LONGEST_ASKED: Final = 3600.0
_IDLE: Final = 5.0
"""Seconds until the queue is looked at without having been told."""
_HOUR_MS: Final = 3_600_000
_PRUNE: Final = 600.0
_PROBLEM: Final = 300


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row: 1, 2, 4, ... 300."""
    return min(_LONGEST, _FIRST * 2.0 ** min(max(failures - 1, 0), 20))


class Workers:
    """Start them once; ``stop`` waits for what is under way."""

    def __init__(
        self,
        queue: Queue,
        analyst: Analyst,
        sinks: Sequence[Sink],
        links: Links,
        options: Options,
        now: Callable[[], float] = time,
    ) -> None:
        self._queue = queue
        self._now = now
        self._keep = options.keep
        self._stopping = threading.Event()
        explaining = _Explaining(queue, analyst, [sink.name for sink in sinks], options.explain_within)
        work: list[_Work] = [explaining, *(_Delivering(queue, sink, links, options.tickets_per_hour) for sink in sinks)]
        self.places = {one.place: _Place(one, queue, options.give_up, now, self._stopping) for one in work}
        self._threads = [
            threading.Thread(target=place.run, name=f"claudescope-{name}", daemon=True)
            for name, place in self.places.items()
        ]
        self._threads.append(threading.Thread(target=self._prune, name="claudescope-prune", daemon=True))

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """Begins nothing new, and waits up to ``seconds`` for what is under way; whether all of it has ended."""
        self._stopping.set()
        self._queue.wake()
        deadline = self._now() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - self._now()))
        return not any(thread.is_alive() for thread in self._threads)

    def problems(self) -> dict[str, str]:
        """Why a place does not work now; only those that do not."""
        return {name: place.problem for name, place in self.places.items() if place.problem}

    def _prune(self) -> None:
        while not self._stopping.wait(_PRUNE):
            try:
                now, keep = int(self._now() * 1000), int(self._keep * 1000)
                while self._queue.prune(now - keep, now - 2 * keep):
                    pass
            except StoreError as error:
                logger.error("old explanations stay: %s", error)


class _Work:
    """What is done at one place. ``do`` finishes the task in the queue, or raises AwayError or RefusedError."""

    place: str

    def take(self, now: int) -> Task | None:
        """The next task."""
        raise NotImplementedError

    def do(self, task: Task, now: int) -> None:
        """Does it."""
        raise NotImplementedError


class _Explaining(_Work):
    place = EXPLAIN

    def __init__(self, queue: Queue, analyst: Analyst, sinks: Sequence[str], within: float) -> None:
        self._queue = queue
        self._analyst = analyst
        self._sinks = sinks
        self._within = within * 1000

    def take(self, now: int) -> Task | None:
        return self._queue.take(self.place, now)

    def do(self, task: Task, now: int) -> None:
        report = self._analyst.report(task.kept, patient=now - task.since < self._within)
        self._queue.explained(task, report, self._sinks, now)
        verdict = (report["explanation"] or {}).get("verdict", report["problem"])
        logger.info("explained %s %s: %s", task.kept.alert.objective, task.kept.alert.key, verdict)


class _Delivering(_Work):
    def __init__(self, queue: Queue, sink: Sink, links: Links, hourly: int) -> None:
        self.place = sink.name
        self._queue = queue
        self._sink = sink
        self._links = links
        self._hourly = hourly

    def take(self, now: int) -> Task | None:
        full = self._sink.limited and len(self._queue.made(self.place, now - _HOUR_MS)) >= self._hourly
        return self._queue.take(self.place, now, only_ended=full)

    def do(self, task: Task, now: int) -> None:
        ticket, sink = Ticket(task.kept, self._links), self._sink
        if task.phase == "close":
            if task.ref:
                sink.close(ticket, task.ref)
            self._queue.done(task, now)
            return
        # A try that was begun and has no end, because of a kill or a lost answer, may have made it.
        ref = sink.find(ticket, task.since) if task.tries > 1 else None
        if ref is None and sink.limited and task.kept.alert.ends is not None:
            self._queue.done(task, now, note="the alert ended before a ticket was made")
            return
        ref = ref or sink.open(ticket)
        self._queue.done(task, now, ref)
        logger.info("ticket of %s at %s: %s", ticket.key, self.place, ref)


class _Place:
    """The loop of one thread."""

    def __init__(
        self, work: _Work, queue: Queue, give_up: float, now: Callable[[], float], stopping: threading.Event
    ) -> None:
        self._work = work
        self._queue = queue
        self._give_up = give_up
        self._now = now
        self._stopping = stopping
        self._failures = 0
        self.problem = ""
        """Why the last try failed; empty where it did not."""

    def run(self) -> None:
        """Until it is told to stop."""
        while not self._stopping.is_set():
            version = self._queue.version
            try:
                pause = self._step()
            except StoreError as error:
                self._fail(f"the queue fails: {error}")
                pause = backoff(self._failures)
            if pause and self._failures:
                self._stopping.wait(pause)
            elif pause:
                self._queue.wait(version, pause)

    def _step(self) -> float:
        """Does one task; how long to wait before the next, in seconds."""
        now = int(self._now() * 1000)
        task = self._work.take(now)
        if task is None:
            return _IDLE
        try:
            self._work.do(task, now)
        except AwayError as error:
            return self._again(task, now, str(error), error.wait)
        except RefusedError as error:
            self._queue.bury(task, shown(error)[:_PROBLEM])
            logger.error("%s of %s is a dead letter: %s", self._work.place, task.kept.alert.key, error)
        except StoreError:
            raise
        except Exception as error:  # one alert that is not understood must not end the thread
            logger.exception("%s of %s", self._work.place, task.kept.alert.key)
            return self._again(task, now, type(error).__name__, 0.0)
        self._failures, self.problem = 0, ""
        return 0.0

    def _again(self, task: Task, now: int, problem: str, asked: float) -> float:
        self._fail(problem)
        pause = max(backoff(self._failures), min(asked, _LONGEST_ASKED))
        self._queue.later(task, now + int(pause * 1000), problem[:_PROBLEM])
        dead = self._queue.bury_old(self._work.place, now - int(self._give_up * 1000), problem[:_PROBLEM])
        if dead:
            logger.error("%s: %d dead letters, since it did not work for too long: %s", self._work.place, dead, problem)
        return pause

    def _fail(self, problem: str) -> None:
        self._failures += 1
        if problem != self.problem:
            logger.warning("%s does not work and is tried again: %s", self._work.place, problem)
        self.problem = problem
