"""A bounded buffer of encoded batches and the thread that sends each of them until it is delivered or lost for good.

Nothing leaves the buffer uncounted: a batch is delivered, or it is dropped as ``buffer_full`` (it found no room: the
newest is dropped, so what waits stays an unbroken beginning), ``retry_exhausted`` (the endpoint still fails when the
batch is older than the limit, or the process ends) or ``rejected`` (the endpoint will not have it).
"""

from __future__ import annotations

import logging
import math
import os
import random
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from opentelemetry.instrumentation.utils import suppress_http_instrumentation, suppress_instrumentation

from . import refusals
from .transport import Outcome, Transport

__all__ = ["FIRST_BACKOFF", "JOIN", "DropReason", "Kind", "OnDrop", "Sender"]

_logger = logging.getLogger(__name__)

Kind = Literal["span", "log", "metric"]
DropReason = Literal["queue_full", "buffer_full", "retry_exhausted", "rejected"]
OnDrop = Callable[[str, str, int], None]
"""Called with reason, kind and number of items, on any thread, with no lock held."""

JOIN: Final = 1 << 20
"""Bytes up to which waiting batches go out as one request: after an outage the backlog needs few round trips."""
FIRST_BACKOFF: Final = 0.1
_SAY_AGAIN: Final = 60.0


@dataclass(slots=True, eq=False)
class _Batch:
    payload: bytes
    count: int
    born: float


class Sender:
    """Buffer and sending thread of one signal. The thread starts with the first batch, and anew in a forked child.

    Times are seconds. ``retry`` counts from the moment that a batch entered the buffer. ``join`` allows several waiting
    batches to go out as one request (encoded OTLP requests may be concatenated).
    """

    def __init__(
        self,
        transport: Transport,
        kind: Kind,
        address: str,
        *,
        buffer: int,
        retry: float,
        timeout: float = 10.0,
        longest_backoff: float = 5.0,
        join: bool = True,
        on_drop: OnDrop | None = None,
    ) -> None:
        self.kind: Final = kind
        self.address: Final = address
        self._transport = transport
        self._limit = buffer
        self._retry = retry
        self._timeout = timeout
        self._longest_backoff = longest_backoff
        self._join = JOIN if join else 0
        self._on_drop = on_drop
        self._said: dict[str, float] = {}
        self._reset()
        if hasattr(os, "register_at_fork"):
            weak = weakref.WeakMethod(self._after_fork)
            os.register_at_fork(after_in_child=lambda: (method := weak()) and method())

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._batches: deque[_Batch] = deque()
        self._bytes = 0
        self._accepted = 0
        """Batches that have ever entered the buffer; with ``_finished`` it tells a flush what it waits for."""
        self._finished = 0
        self._group: list[_Batch] = []
        self._body = b""
        self._alone = 0
        """Batches at the head that go out one by one, because their joint request was rejected."""
        self._failures = 0
        self._next_try = 0.0
        self._not_before = 0.0
        self._thread: threading.Thread | None = None
        self._threadless = False
        self._stopped = False
        self._losses: Counter[str] = Counter()
        self._told = 0
        self._error = ""

    def _after_fork(self) -> None:
        self._transport.abandon()  # the parent sends what waits there
        self._reset()

    # ------------------------------------------------------------------------------------------ state

    @property
    def losses(self) -> dict[str, int]:
        """Items lost so far in this process, by reason."""
        with self._changed:
            return dict(self._losses)

    @property
    def waiting(self) -> int:
        """Items in the buffer."""
        with self._changed:
            return sum(batch.count for batch in self._batches)

    @property
    def last_error(self) -> str:
        """Why the latest failed attempt failed; empty when none did."""
        return self._error

    def lost(self, reason: DropReason, count: int, why: str = "", *, said: bool = False) -> None:
        """Counts items that are lost, also those that were lost before they came here; ``said``: the log knows."""
        if count <= 0:
            return
        with self._changed:
            self._losses[reason] += count
            now = time.monotonic()
            say = not said and now - self._said.get(reason, -_SAY_AGAIN) >= _SAY_AGAIN
            if say:
                self._said[reason] = now
        if say:
            _logger.warning(
                "claudescope: dropped on the way to %s: %d %s (%s%s)",
                self.address,
                count,
                self.kind if count == 1 else f"{self.kind}s",
                reason,
                f", {why}" if why else "",
            )
        if self._on_drop is not None:
            try:
                self._on_drop(reason, self.kind, count)
            except Exception:
                _logger.exception("claudescope: counting dropped items failed")

    # ------------------------------------------------------------------------------------------ in

    def submit(self, payload: bytes, count: int) -> bool:
        """Takes one encoded batch of ``count`` items and returns at once. False: no room, the batch is lost."""
        with self._changed:
            if room := not self._stopped and self._bytes + len(payload) <= self._limit:
                self._batches.append(_Batch(payload, count, time.monotonic()))
                self._bytes += len(payload)
                self._accepted += 1
                self._start()
                self._changed.notify_all()
        if not room:
            self.lost("buffer_full", count, self._error)
        return room

    def _start(self) -> None:
        if self._thread is None and not self._threadless:
            thread = threading.Thread(target=self._run, name=f"claudescope-send-{self.kind}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # Python >= 3.12 starts no thread once the interpreter is ending: flush sends then
                self._threadless = True
            else:
                self._thread = thread

    # ------------------------------------------------------------------------------------------ out

    def _run(self) -> None:
        with suppress_instrumentation(), suppress_http_instrumentation():
            while True:
                with self._changed:
                    while not self._stopped and (delay := self._delay()) > 0:
                        self._changed.wait(None if delay == math.inf else delay)
                    if self._stopped:
                        break
                self._attempt(self._timeout)
            self._transport.close()

    def _delay(self) -> float:
        """Seconds until there is something to do; infinite with an empty buffer."""
        if not self._batches:
            return math.inf
        expiry = self._batches[0].born + self._retry
        return min(max(self._next_try, self._not_before), max(expiry, self._next_try)) - time.monotonic()

    def _attempt(self, timeout: float) -> None:
        """One attempt with the head of the buffer, and its consequences."""
        with self._changed:
            if self._not_before > time.monotonic():  # the server asks for more time than the oldest batch has
                number, items = self._expire()
                group: list[_Batch] = []
                fresh = False
            else:
                number = items = 0
                if fresh := not self._group and bool(self._batches):
                    self._group = self._take()
                group = self._group
        if not group:
            self._finish(number, "retry_exhausted", items, self._error)
            return
        try:
            if fresh:
                self._body = self._transport.prepare(b"".join(batch.payload for batch in group))
            outcome = self._transport.send(self._body, timeout)
        except Exception as error:  # noqa: BLE001 - the thread must outlive whatever a transport meets
            self._group = []  # its body may not have been made
            outcome = Outcome("retry", f"{type(error).__name__}: {error}")
        reason: DropReason = "rejected"
        with self._changed:
            if self._stopped:
                return  # shutdown has counted what was left
            self._error = outcome.reason or self._error
            if outcome.status == "retry":
                reason = "retry_exhausted"
                self._failures += 1
                backoff = min(self._longest_backoff, FIRST_BACKOFF * 2 ** min(self._failures - 1, 20))
                now = time.monotonic()
                self._next_try = now + backoff * random.uniform(0.5, 1.0)
                self._not_before = now + (outcome.retry_after or 0.0)
                number, items = self._expire()
            else:
                self._failures = 0
                self._next_try = self._not_before = 0.0
                if outcome.status == "rejected" and len(group) > 1:
                    self._alone, self._group = len(group), []
                else:
                    number, items = len(group), self._remove(len(group))
                    self._alone = max(0, self._alone - 1)
                    if outcome.status == "delivered":
                        items = min(outcome.rejected, items)
        if outcome.unauthorized:
            refusals.say(self.address, self.kind, outcome.reason)
        elif outcome.status == "delivered":
            refusals.over(self.address, self.kind)
        self._finish(number, reason, items, outcome.reason, said=outcome.unauthorized)

    def _finish(self, number: int, reason: DropReason, items: int, why: str, *, said: bool = False) -> None:
        """Counts the loss first and the batches as finished then, so that no flush sees the one without the other."""
        self.lost(reason, items, why, said=said)
        with self._changed:
            self._finished += number
            self._changed.notify_all()

    def _take(self) -> list[_Batch]:
        """The batches at the head that go out together: at least one."""
        group: list[_Batch] = []
        size = 0
        for batch in self._batches:
            size += len(batch.payload)
            if group and (self._alone or size > self._join):
                break
            group.append(batch)
        return group

    def _remove(self, number: int) -> int:
        """Takes batches off the head; gives their number of items."""
        items = 0
        for _ in range(number):
            batch = self._batches.popleft()
            self._bytes -= len(batch.payload)
            items += batch.count
        self._group = []
        return items

    def _expire(self) -> tuple[int, int]:
        """Takes off what is older than the limit; gives its number of batches and of items."""
        oldest = time.monotonic() - self._retry
        number = 0
        for batch in self._batches:
            if batch.born > oldest:
                break
            number += 1
        return number, self._remove(number) if number else 0

    # ------------------------------------------------------------------------------------------ flush and end

    def flush(self, timeout: float) -> bool:
        """Waits until all that was submitted before is gone. False: it is not, or something was lost since last time.

        A waiting back-off is cut short; a delay that the server asked for is not.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            goal = self._accepted
            self._next_try, self._failures = 0.0, 0
            self._changed.notify_all()
            while self._finished < goal and (left := deadline - time.monotonic()) > 0:
                if not self._threadless:
                    self._changed.wait(left)
                elif (delay := self._delay()) > 0:
                    self._changed.wait(min(delay, left))
                else:
                    self._changed.release()
                    try:
                        with suppress_instrumentation(), suppress_http_instrumentation():
                            self._attempt(min(self._timeout, left))
                    finally:
                        self._changed.acquire()
            lost = sum(self._losses.values())
            complete = self._finished >= goal and lost == self._told
            self._told = lost
            return complete

    def shutdown(self, timeout: float) -> bool:
        """Flushes for at most ``timeout`` seconds, then ends the thread; what is left counts as ``retry_exhausted``."""
        deadline = time.monotonic() + timeout
        complete = self.flush(timeout)
        with self._changed:
            if self._stopped:
                return complete
            self._stopped = True
            number = len(self._batches)
            left = self._remove(number)
        self._finish(number, "retry_exhausted", left, self._error)
        if self._thread is not None:
            self._thread.join(max(0.05, deadline - time.monotonic()) if not left else 0.0)
        elif self._threadless:
            self._transport.close()
        return complete
