"""The one place where a fault of claudescope's own ends: logged once for each kind, never seen by the app."""

from __future__ import annotations

import logging

__all__ = ["Guard", "guard"]

logger = logging.getLogger("claudescope")


class Guard:
    """Contains faults. Tests set ``reraise`` so that none goes unseen."""

    def __init__(self) -> None:
        self.reraise = False
        self.seen: dict[tuple[str, type], int] = {}

    def contain(self, where: str, error: Exception) -> None:
        """Called inside ``except Exception``: logs the first fault of its kind and counts the others."""
        if self.reraise:
            raise error
        self.note(where, error)

    def note(self, where: str, error: BaseException) -> None:
        """Logs a fault that is not ours, such as one of the app's own callback; never raises it again."""
        key = (where, type(error))
        count = self.seen.get(key, 0)
        self.seen[key] = count + 1
        if not count:
            logger.warning(
                "claudescope could not %s (%s: %s). The app is not affected; this is logged once.",
                where,
                type(error).__name__,
                error,
                exc_info=logger.isEnabledFor(logging.DEBUG),
            )


guard = Guard()
