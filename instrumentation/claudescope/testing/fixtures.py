"""pytest fixtures, found by pytest's plug-in entry point in every project that has claudescope installed.

Importing this module imports neither the OpenTelemetry SDK nor ``anthropic``: a fixture does when it is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .exporters import Telemetry
    from .standin import StandIn

__all__ = ["claudescope_instrumented", "claudescope_standin", "claudescope_telemetry"]


@pytest.fixture
def claudescope_standin() -> Iterator[StandIn]:
    """A running stand-in of the Messages API; say what it answers with ``.use(...)``, point a client at ``.url``."""
    from .standin import StandIn

    with StandIn() as standin:
        yield standin


@pytest.fixture
def claudescope_telemetry() -> Iterator[Telemetry]:
    """In-memory providers, not yet connected to anything."""
    from .exporters import Telemetry

    with Telemetry() as telemetry:
        yield telemetry


@pytest.fixture
def claudescope_instrumented(claudescope_telemetry: Telemetry) -> Iterator[Telemetry]:
    """Instruments every client of this process; what claudescope emits is in the telemetry given.

    Call ``claudescope.flush(timeout)`` before looking at it: steps are assessed on a thread of their own.
    """
    claudescope = importlib.import_module("claudescope")  # by name: this room depends on semconv alone
    claudescope.instrument(
        tracer_provider=claudescope_telemetry.tracer_provider,
        meter_provider=claudescope_telemetry.meter_provider,
        logger_provider=claudescope_telemetry.logger_provider,
    )
    try:
        yield claudescope_telemetry
    finally:
        claudescope.uninstrument()
