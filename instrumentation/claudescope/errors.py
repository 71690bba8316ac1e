"""The one exception that a person sees: what is wrong and what to change."""

from __future__ import annotations

__all__ = ["UsageError"]


class UsageError(Exception):
    """Wrong use or unreadable input. Commands print it to standard error and exit with 2.

    ``message`` says what is wrong, ``fix`` the thing to change; both are plain sentences.
    """

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} {self.fix}".rstrip()
