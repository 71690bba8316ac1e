"""Times as flags take them."""

from __future__ import annotations

import time

from ..errors import UsageError
from ..live.web.values import moment
from ..setting_values import duration

__all__ = ["FORMS", "read_moment", "shown"]

FORMS = "RFC 3339 (2026-01-31T12:00:00Z), milliseconds since the epoch, or so long ago (7d, 12h, 30m, 90s)"


def read_moment(flag: str, text: str | None) -> int | None:
    """Milliseconds since the epoch; None for a flag that is not given. Raises UsageError that names the flag."""
    if text is None:
        return None
    try:
        return int(moment.read(text))
    except ValueError:
        pass
    try:
        if text[-1:].isdigit():
            raise ValueError
        return max(0, int((time.time() - duration(text)) * 1000))
    except ValueError:
        raise UsageError(f"{flag} is {text!r}.", f"It takes a time as {FORMS}.") from None


def shown(at_ms: int) -> str:
    """A time as people read it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ms / 1000))
