"""The data folder: where it is, that only its owner reads it, and that one server has it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import ModuleType

from ...errors import UsageError

__all__ = ["DataFolder", "default_folder"]

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows: no lock, SQLite's own locks still keep the file whole
    fcntl = None


def default_folder() -> Path:
    """``${XDG_DATA_HOME:-~/.local/share}/claudescope``."""
    base = os.environ.get("XDG_DATA_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "claudescope"
    except RuntimeError:  # a user without an entry and without HOME, as in some containers
        raise UsageError("There is no home folder for the data.", "Name a folder with --data, or set HOME.") from None


class DataFolder:
    """A folder, locked while it is open. Raises UsageError when it cannot be had.

    One that we make has mode 0700. One that was there keeps its mode, since it may be for others too, such as /tmp; the
    files in it are private all the same.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"The data folder {path} cannot be used: {error.strerror}.", "Choose another with --data."
            ) from None
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.pread(self._lock, 500, 0).decode("utf-8", "replace").strip()
                os.close(self._lock)
                raise UsageError(
                    f"The data folder {path} is in use by {owner or 'another claudescope server'}.",
                    "Use that server, end it, or choose another folder with --data.",
                ) from None

    def sign(self, url: str) -> None:
        """Says in the lock file who has the folder. Raises UsageError where it cannot be written (a full disk)."""
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"process {os.getpid()} at {url}\n".encode(), 0)
        except OSError as error:
            raise UsageError(
                f"The data folder {self.path} cannot be written: {error.strerror}.",
                "Make room, or choose another with --data.",
            ) from None

    def close(self) -> None:
        """Gives the folder back."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)
        os.close(self._lock)
