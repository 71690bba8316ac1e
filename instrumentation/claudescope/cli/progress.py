"""A line on standard error about work that takes over a second."""

from __future__ import annotations

import sys
import time
from typing import Final

__all__ = ["Progress"]

_FIRST: Final = 1.0
_TERMINAL: Final = 0.2
_ELSEWHERE: Final = 10.0


class Progress:
    """Says how far it is: rewritten in place on a terminal, else a line now and then. Nothing in the first second."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + _FIRST
        self._shown = 0

    def tell(self, text: str) -> None:
        """Says it, if it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (_TERMINAL if self._terminal else _ELSEWHERE)
        line = f"claudescope: {text}"
        if self._terminal:
            print(f"\r{line:<{self._shown}}", end="", file=sys.stderr, flush=True)
            self._shown = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Takes away what was rewritten in place."""
        if self._shown:
            print(f"\r{'':<{self._shown}}\r", end="", file=sys.stderr, flush=True)
            self._shown = 0
