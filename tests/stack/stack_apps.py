"""Apps that know nothing of claudescope, under ``claudescope run``, sending to the stack as a user's would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from stack_native import Stack

from claudescope.testing.standin import StandIn


def app_environment(stack: Stack, standin: StandIn, **extra: str) -> dict[str, str]:
    """This process's environment without settings of a user, with the stack's two lines and ``extra``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "CLAUDESCOPE_", "ANTHROPIC_", "PYTHONPATH", "CS_"))
    }
    api = {"ANTHROPIC_BASE_URL": standin.url, "ANTHROPIC_API_KEY": "key"}
    return {**kept, **api, **stack.app_environment(), **extra}


def start_app(script: Path, *arguments: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """The app, under ``claudescope run``; its standard input ends when ``finish`` or ``communicate`` is called."""
    return subprocess.Popen(
        [sys.executable, "-m", "claudescope", "run", "--", sys.executable, str(script), *arguments],
        env=dict(env),
        cwd=script.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(app: subprocess.Popen[str], seconds: float = 60.0) -> tuple[str, str]:
    """Its output and its errors, once it has ended well."""
    try:
        output, errors = app.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        app.kill()
        raise
    assert app.returncode == 0, errors
    return output, errors
