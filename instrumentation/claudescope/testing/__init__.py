"""A deterministic test kit: a stand-in of the Messages API, telemetry in memory, a clock, and pytest fixtures.

Names are imported on first use, so that pytest's start does not pay for a plug-in that a test run never uses.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .clock import Clock
    from .exporters import Telemetry
    from .script import Pace, Reply, Usage, error, say
    from .standin import StandIn

__all__ = ["Clock", "Pace", "Reply", "StandIn", "Telemetry", "Usage", "error", "say"]

_HOMES = {"Clock": "clock", "StandIn": "standin", "Telemetry": "exporters"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES.get(name, 'script')}", __name__), name)
