"""A real server, the stand-in, and scripts that run under ``claudescope run`` as a user's app would."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_kit import Server, environment, free_port

from claudescope.testing.standin import StandIn


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts ``claudescope up`` on a port; ends it with the test."""
    with contextlib.ExitStack() as stack:

        def start(port: int = 0) -> Server:
            server = Server(tmp_path / "data", port or free_port())
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture
def run_script(tmp_path: Path, standin: StandIn) -> Callable[..., subprocess.Popen[str]]:
    """Starts a script under ``claudescope run``, against the stand-in; the test waits for it."""

    def start(source: str, port: int, **extra: str) -> subprocess.Popen[str]:
        script = tmp_path / "app.py"
        script.write_text(source, "utf-8")
        return subprocess.Popen(
            [sys.executable, "-m", "claudescope", "run", "--port", str(port), "--", sys.executable, str(script)],
            env=environment(ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="key", **extra),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start
