"""The files of objectives: read at the start, and again when they change or somebody asks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...errors import UsageError
from ...slo.objective import Objective
from .judge import Judge, UncountableError

__all__ = ["Specs"]

logger = logging.getLogger("claudescope.slo")

_LOOK_S: Final = 2.0

Stamp = tuple[tuple[str, int, int, int], ...]


class Specs:
    """The objectives in force. Raises UsageError when the files are bad at the start; later ones keep the old ones."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self.error: str | None = None
        """Why the files as they are now are not in force."""
        self.loaded_ms = 0
        self._stamp = self._look()
        self._asked = asyncio.Event()
        self._take(self._load())

    def _load(self) -> list[Objective]:
        from ...slo.spec.load import load  # pydantic and YAML: only where there are objectives

        return load(self.paths)

    def _take(self, objectives: Sequence[Objective]) -> None:
        self.counted: list[tuple[Objective, Judge]] = []
        """Those that the server counts itself."""
        self.uncounted: list[tuple[Objective, str]] = []
        """Those that need a Prometheus, and why."""
        for objective in objectives:
            try:
                self.counted.append((objective, Judge(objective)))
            except UncountableError as error:
                self.uncounted.append((objective, str(error)))
        self.error = None
        self.loaded_ms = int(time.time() * 1000)

    def ask(self) -> None:
        """Reads the files again soon, from any task of the event loop."""
        self._asked.set()

    async def changed(self) -> bool:
        """Waits until the files changed, or somebody asked; whether other objectives are in force now."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _LOOK_S)
            stamp = self._look()
            if stamp == self._stamp and not self._asked.is_set():
                continue
            self._asked.clear()
            self._stamp = stamp
            return await self.reload()

    async def reload(self) -> bool:
        """Reads the files; whether other objectives are in force now. What is bad is kept in ``error``."""
        try:
            objectives = await asyncio.to_thread(self._load)
        except UsageError as error:
            self.error = str(error)
            return False
        except Exception as error:  # whatever it is, the objectives of before go on
            logger.exception("the files of objectives cannot be read")
            self.error = f"The files cannot be read: {type(error).__name__}."
            return False
        before = [objective for objective, _ in (*self.counted, *self.uncounted)]
        self._take(objectives)
        return before != [objective for objective, _ in (*self.counted, *self.uncounted)]

    def _look(self) -> Stamp:
        found = []
        for path in self.paths:
            with contextlib.suppress(OSError):
                for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                    with contextlib.suppress(OSError):  # an editor's lock is a link to nothing
                        stat = file.stat()
                        found.append((str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(found)
