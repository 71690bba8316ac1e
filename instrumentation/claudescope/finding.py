"""One thing that a command looked at, with the thing to change: what ``doctor`` and ``stack check`` say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["Finding"]

_MARKS: Final = {"ok": "ok  ", "note": "note", "fix": "FIX "}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: ``ok``, ``note`` (nothing to do) or ``fix``, with the thing to change."""

    topic: str
    level: Literal["ok", "note", "fix"]
    text: str
    fix: str = ""

    def __str__(self) -> str:
        fix = f"\n{' ' * 18}-> {self.fix}" if self.fix else ""
        return f"{_MARKS[self.level]}  {self.topic:<10}  {self.text}{fix}"
