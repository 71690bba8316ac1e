"""The way in for ``opentelemetry-instrument``: an entry point of the group ``opentelemetry_instrumentor``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from .autoload import arm
from .control import instrument, uninstrument

__all__ = ["ClaudescopeInstrumentor"]


class ClaudescopeInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Steps of the ``anthropic`` package's calls."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """The packages, with versions, that this instruments."""
        return ("anthropic >= 0.75, < 3",)

    def _instrument(self, **kwargs: Any) -> None:
        providers = {
            name: kwargs[name]
            for name in ("tracer_provider", "meter_provider", "logger_provider")
            if kwargs.get(name) is not None
        }
        if providers or "anthropic" in sys.modules:
            instrument(**providers)
        else:
            arm()  # opentelemetry-instrument starts every Python process: wait until the SDK is really used

    def _uninstrument(self, **kwargs: Any) -> None:
        uninstrument()
