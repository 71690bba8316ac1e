"""How long a question to the store may take, from when it is asked."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["ANSWER_S", "SlowAnswerError", "answer_until"]

T = TypeVar("T")

ANSWER_S: Final = 10.0
"""Seconds, the wait for a thread among them."""
_OPERATIONS: Final = 20_000
"""Of SQLite between two looks at the clock: about a millisecond."""


class SlowAnswerError(Exception):
    """The question took too long and was given up."""


def answer_until(deadline: float, db: sqlite3.Connection, question: Callable[[sqlite3.Connection], T]) -> T:
    """What ``question`` says, if it does so before ``deadline`` (of ``time.monotonic``). Raises SlowAnswerError."""
    if time.monotonic() >= deadline:
        raise SlowAnswerError
    db.set_progress_handler(lambda: time.monotonic() >= deadline, _OPERATIONS)
    try:
        return question(db)
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            raise SlowAnswerError from None
        raise
    finally:
        db.set_progress_handler(None, 0)
