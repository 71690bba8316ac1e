from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping

import pytest
from cli_harness import command, plain_environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def claudescope(tmp_path) -> Run:
    """Runs ``python -m claudescope ...`` to its end, in an empty folder."""

    def run(
        *arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 60, **more
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            env=plain_environment(**(environment or {})),
            cwd=more.pop("cwd", tmp_path),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )

    return run
