"""Instruments the process as soon as it imports ``anthropic``, and not before: the import costs seconds of CPU."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["arm"]

_armed = False


def arm() -> None:
    """Instruments now if ``anthropic`` is imported, else when it is. Never raises; bad settings are logged once."""
    global _armed
    if _armed:
        return
    _armed = True
    try:
        from wrapt import register_post_import_hook

        register_post_import_hook(_imported, "anthropic")
    except Exception:
        logging.getLogger("claudescope").warning("claudescope could not be loaded", exc_info=True)


def _imported(module: Any) -> None:
    from .errors import UsageError

    try:
        from . import instrument

        instrument()
    except UsageError as error:
        logging.getLogger("claudescope").warning("claudescope is off: %s", error)
    except Exception:
        logging.getLogger("claudescope").warning("claudescope is off: it could not be started", exc_info=True)
