from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest
from capture_kit import Scope, instrumented

from claudescope import control
from claudescope.testing.standin import StandIn


@pytest.fixture(autouse=True)
def nothing_is_logged(request: pytest.FixtureRequest) -> Iterator[list[logging.LogRecord]]:
    """No warning of OpenTelemetry's or of ours, unless the test takes this fixture and empties the list."""
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keep(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("opentelemetry", "claudescope")]
    for logger in loggers:
        logger.addHandler(handler)
    yield records
    for logger in loggers:
        logger.removeHandler(handler)
    assert [(record.name, record.getMessage()) for record in records] == []


@pytest.fixture(autouse=True)
def collections_are_quick() -> None:
    """What is there when a test begins, a hundred thousand objects of the SDK's, is not looked at again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def subscribers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_waiting", [])


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with StandIn() as made:
        yield made


@pytest.fixture
def scope() -> Iterator[Scope]:
    with instrumented() as made:
        yield made
