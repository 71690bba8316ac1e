"""How the store is asked: on a thread that reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

__all__ = ["Ask"]

T = TypeVar("T")


class Ask(Protocol):
    """Asks the store on a thread that reads."""

    async def __call__(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """What ``question`` returns."""
