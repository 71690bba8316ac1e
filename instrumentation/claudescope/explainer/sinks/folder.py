"""Tickets as files: one JSON document for each time that an alert fired."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import orjson

from ...errors import UsageError
from ..outbound import AwayError
from ..ticket import Ticket

__all__ = ["FolderSink"]


class FolderSink:
    """A folder; a file is there as a whole or not at all, and has the ticket's key as its name."""

    name = "file"
    limited = False

    def __init__(self, folder: Path) -> None:
        """Makes the folder. Raises UsageError when it cannot be written."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise UsageError(
                f"The folder {folder} cannot be written: {error.strerror}.", "Name another with --tickets."
            ) from None

    def find(self, ticket: Ticket, since: int) -> str | None:
        """Not looked for: the same ticket has the same name."""
        return None

    def open(self, ticket: Ticket) -> str:
        """Writes it."""
        name = f"{ticket.key}.json"
        content = orjson.dumps(ticket.json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        try:
            handle, temporary = tempfile.mkstemp(prefix=".ticket-", dir=self._folder)
            try:
                with open(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporary, 0o640)
                os.replace(temporary, self._folder / name)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise AwayError(f"{self._folder} cannot be written: {error.strerror}") from None
        return name

    def close(self, ticket: Ticket, ref: str) -> None:
        """Writes it again, with its end."""
        self.open(ticket)
