"""Processes of the command line for the tests of this folder."""

from __future__ import annotations

import os
import sys


def plain_environment(**extra: str) -> dict[str, str]:
    """This process's environment without settings of a user, and with ours."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OTEL_", "CLAUDESCOPE_", "ANTHROPIC_", "PYTHONPATH", "COV_"))
    }
    return {**kept, **extra}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "claudescope", *arguments]
