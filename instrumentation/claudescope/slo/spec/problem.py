"""What is wrong with a specification, where, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import UsageError

__all__ = ["Problem", "SpecErrors"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (``error``) or that its author should know (``warning``)."""

    path: str
    line: int
    """From 1."""
    what: str
    """A sentence, with its full stop."""
    fix: str
    """Another one; what to change."""
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what} {self.fix}".rstrip()


class SpecErrors(UsageError):  # noqa: N818 - it holds several
    """Everything that is wrong with the files, a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first, *rest = map(str, self.problems)
        super().__init__("\n".join([first, *rest]))
