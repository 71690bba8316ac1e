"""The stack, native and real, for the tests that need it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stack_native import BINARIES, Stack

from claudescope.testing.standin import StandIn


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the built programs."""
    if not (BINARIES / "otelcol").exists():
        pytest.fail("the programs of the stack are not built: type scripts/build-stack", pytrace=False)
    return BINARIES


@pytest.fixture(scope="module")
def new_stack(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Stack]]:
    """Starts a stack; it ends with the module, whatever happens."""
    with contextlib.ExitStack() as ending:

        def start(**options: object) -> Stack:
            stack = Stack(tmp_path_factory.mktemp("stack"), **options)  # type: ignore[arg-type]
            ending.callback(stack.stop)
            return stack.start()

        yield start


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    """One stack with nothing changed but addresses and folders, shared by a module's tests."""
    return new_stack()


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running
