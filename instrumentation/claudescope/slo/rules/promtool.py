"""Runs promtool, which is Prometheus' own judge of rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from ...errors import UsageError

__all__ = ["Judgement", "check_rules", "find_promtool", "test_rules"]

_TIMEOUT: Final = 600


class Judgement(NamedTuple):
    """Whether promtool is content, and what it said."""

    passed: bool
    output: str


def find_promtool(path: str | None) -> str:
    """The program that ``path`` or PATH names. Raises UsageError with how to get it."""
    found = shutil.which(path or "promtool")
    if found is None:
        raise UsageError(
            f"{path} is no program." if path else "promtool is not here: no program of that name is in PATH.",
            "It comes with Prometheus: take it from the archive of prometheus.io/download, type apt install prometheus,"
            " or docker run --entrypoint promtool prom/prometheus; then name it with --promtool.",
        )
    return found


def check_rules(promtool: str, *files: Path) -> Judgement:
    """Whether files of rules are right, by all of promtool's lints."""
    return _run(promtool, "check", "rules", "--lint=all", "--lint-fatal", *map(str, files))


def test_rules(promtool: str, *files: Path) -> Judgement:
    """Whether files of unit tests pass."""
    return _run(promtool, "test", "rules", *map(str, files))


test_rules.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for one of its own


def _run(*command: str) -> Judgement:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        return Judgement(False, f"{' '.join(command)} did not end within {_TIMEOUT} s")
    except OSError as error:
        raise UsageError(
            f"{command[0]} cannot be run: {error}.", "Name a promtool that can, with --promtool."
        ) from None
    return Judgement(done.returncode == 0, done.stdout + done.stderr)
