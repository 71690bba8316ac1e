"""A clock that a test moves by hand."""

from __future__ import annotations

import threading

__all__ = ["Clock"]


class Clock:
    """A callable like ``time.time_ns``: gives nanoseconds since the epoch, and moves only when told to.

    ``start`` is the first reading; every reading then moves the clock on by ``tick`` nanoseconds (default 0, a
    frozen clock). Safe to share between threads.
    """

    def __init__(self, start: int = 1_767_225_600_000_000_000, tick: int = 0) -> None:  # 2026-01-01T00:00:00Z
        self._now = start
        self._tick = tick
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """The current reading in nanoseconds."""
        with self._lock:
            now = self._now
            self._now += self._tick
            return now

    @property
    def now(self) -> int:
        """The current reading in nanoseconds, without a tick."""
        return self._now

    def seconds(self) -> float:
        """The current reading in seconds since the epoch, for code that takes a clock like ``time.time``."""
        return self() / 1e9

    def advance(self, seconds: float) -> None:
        """Moves the clock forward. Raises ValueError for a negative number: this clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        with self._lock:
            self._now += round(seconds * 1e9)
