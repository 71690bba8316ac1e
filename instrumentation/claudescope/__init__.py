"""claudescope: every reasoning step of an app that uses Claude, with latency, confidence and validity."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .capture.manual import ManualStep as step
    from .capture.manual import Run as run
    from .control import flush, instrument, on_error, on_validated, uninstrument
    from .redact import set_redactor

__all__ = [
    "__version__",
    "flush",
    "instrument",
    "on_error",
    "on_validated",
    "run",
    "set_redactor",
    "step",
    "uninstrument",
]

# Loaded at first use: the commands and the server import this package and need none of it.
_ROOMS = {
    "flush": ("control", "flush"),
    "instrument": ("control", "instrument"),
    "on_error": ("control", "on_error"),
    "on_validated": ("control", "on_validated"),
    "run": ("capture.manual", "Run"),
    "set_redactor": ("redact", "set_redactor"),
    "step": ("capture.manual", "ManualStep"),
    "uninstrument": ("control", "uninstrument"),
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _ROOMS[name]
    value = getattr(import_module(f".{module}", __name__), attribute)
    globals()[name] = value
    return value
