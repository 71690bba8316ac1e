"""Locks in a data folder: whose turn it is to look for a server there, and who uses the one that is there.

The kernel gives a lock back when its process ends, however it ends. Where a folder cannot be locked, nobody waits for
anybody.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import UsageError
from ..live.store.folder import default_folder, fcntl
from ..settings import Settings

__all__ = ["Users", "one_at_a_time"]

_PATIENCE: Final = 15.0


@contextlib.contextmanager
def one_at_a_time(settings: Settings) -> Iterator[None]:
    """Keeps other processes with the same data folder out of here, so that of many started at once one starts a server
    and the others find it. They wait at most 15 s, and not at all where the folder cannot be locked.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, UsageError):
            opened = os.open(_folder(settings), os.O_RDONLY)
            stack.callback(os.close, opened)
            _lock(opened, shared=False, patience=_PATIENCE)
        yield


class Users:
    """The processes that use the server of a data folder, that of the settings at first: each holds a shared lock, and
    the server that was started for them ends when it gets the lock alone.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._elsewhere: Path | None = None
        self._file: int | None = None

    def join(self) -> None:
        """From now on we are one of them. A server that is ending is waited for, at most 15 s: it cannot be used."""
        self._lock(shared=True, patience=_PATIENCE)

    def move(self, folder: Path | None) -> None:
        """Joins those of another folder's server instead, as ``join`` does; None: those of the settings' folder."""
        before, self._file = self._file, None
        self._elsewhere = folder
        self.join()
        if before is not None:
            os.close(before)

    def leave(self) -> bool:
        """We are no longer one of them; whether others are left."""
        if self._file is None:
            return False
        others = not self._lock(shared=False)
        os.close(self._file)
        self._file = None
        return others

    def shut_out(self, wait: bool) -> bool:
        """Lets nobody join until this process ends; False when there are some and we are not to ``wait`` for their end.
        True where the folder cannot be locked.
        """
        return self._lock(shared=False, patience=None if wait else 0.0)

    def _lock(self, shared: bool, patience: float | None = 0.0) -> bool:
        with contextlib.suppress(OSError, UsageError):
            if self._file is None:
                folder = self._elsewhere or _folder(self._settings)
                self._file = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
            return _lock(self._file, shared, patience)
        return True


def _folder(settings: Settings) -> Path:
    folder = settings.data or default_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _lock(opened: int, shared: bool, patience: float | None) -> bool:
    """Tries for ``patience`` seconds, None for ever; False when somebody else has it still. Raises OSError."""
    if fcntl is None:
        return True
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if patience is None:
        fcntl.flock(opened, how)
        return True
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(opened, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
