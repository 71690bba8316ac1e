"""Endpoints that refuse this process for its credentials: the log says so once, and not once a signal."""

from __future__ import annotations

import logging
import threading
from typing import Final

__all__ = ["over", "say"]

_logger = logging.getLogger(__name__)

_refused: Final[dict[str, set[str]]] = {}
"""Kinds of items that an address refuses, by address."""
_lock: Final = threading.Lock()  # held for moments only, by sending threads only


def say(address: str, kind: str, reason: str) -> None:
    """``address`` refuses us: the log has it, unless it has it already."""
    with _lock:
        known = address in _refused
        _refused.setdefault(address, set()).add(kind)
    if not known:
        _logger.warning(
            "claudescope: %s refuses everything (%s): it wants other credentials. Set OTEL_EXPORTER_OTLP_HEADERS to"
            " those that it takes, such as authorization=Bearer%%20TOKEN.",
            address,
            reason,
        )


def over(address: str, kind: str) -> None:
    """``address`` has taken what it refused: once it does so with every kind, a later refusal is news."""
    if address in _refused:
        with _lock:
            kinds = _refused.get(address, set())
            kinds.discard(kind)
            if not kinds:
                _refused.pop(address, None)
