"""How claudescope gets into the Python processes of a command: its environment, and the check that this will work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import UsageError

__all__ = ["BOOTSTRAP", "armed_environment", "check_python", "interpreter_of", "isolation_of"]

BOOTSTRAP: Final = str(Path(__file__).resolve().parent.parent / "bootstrap")
"""The folder whose ``sitecustomize`` arms claudescope in a Python process."""

_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*t?(\.exe)?$")
_PROBE: Final = """
import sys
print("%d.%d" % sys.version_info[:2])
print(sys.executable)
sys.path[:] = [entry for entry in sys.path if entry]
try:
    import claudescope.autoload
except Exception:
    print("lacking")
"""
_STARTERS: Final = frozenset(
    {"hatch", "honcho", "invoke", "nox", "pdm", "pipenv", "pipx", "poetry", "supervisord", "tox"}
)
"""Python programs that start the app in another Python than their own: that one matters, and tells if it must."""


def armed_environment(
    environment: Mapping[str, str], endpoint: str | None, token: str = "", extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a command under ``claudescope run``: what is set already stays, but for ``extra``.

    ``endpoint`` is the OTLP/HTTP address of our server, None where the environment names one itself. No ``OTEL_*``
    variable is set: the app's own exporters read them too, and its spans must go where they went.
    """
    armed = {**environment, **(extra or {})}
    rest = environment.get("PYTHONPATH", "")
    armed["PYTHONPATH"] = BOOTSTRAP + (os.pathsep + rest if rest else "")
    armed["CLAUDESCOPE_RUN"] = endpoint or "1"
    if endpoint is not None and token:
        armed["CLAUDESCOPE_TOKEN"] = token
    return armed


def interpreter_of(file: str, environment: Mapping[str, str]) -> str | None:
    """The Python that will run ``file``: itself, or the one that its first line names. None for anything else."""
    if _PYTHON.match(os.path.basename(file)):
        return file
    if os.path.basename(file) in _STARTERS:
        return None
    try:
        with open(file, "rb") as opened:
            first, second = (opened.readline(1024).decode("utf-8", "replace").strip() for _ in range(2))
    except OSError:
        return None
    if not first.startswith("#!"):
        return None
    if first == "#!/bin/sh" and second.startswith("'''exec' "):
        words = _split(second[len("'''exec' ") :])  # how pip writes a first line with a blank or of over 127 characters
    else:
        words = _split(first[2:])
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words or not _PYTHON.match(os.path.basename(words[0])):
        return None
    return shutil.which(words[0], path=environment.get("PATH", os.defpath))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def isolation_of(argv: Sequence[str]) -> str | None:
    """The flag of a ``python`` command line that keeps PYTHONPATH or ``sitecustomize`` out: I, E or S."""
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-" or word.startswith("--"):
            return None
        letters = word[1:]
        for place, letter in enumerate(letters):
            if letter in "IES":
                return letter
            if letter in "cm":
                return None
            if letter in "WX":
                if place == len(letters) - 1:
                    next(words, None)
                break
    return None


def check_python(python: str, environment: Mapping[str, str]) -> None:
    """Asks an interpreter, in the environment prepared for it, whether claudescope is there.

    Raises UsageError that says what to type where it is not. An interpreter that does not answer is left to the
    command itself.
    """
    if os.path.abspath(python) == sys.executable:
        return
    try:
        answer = subprocess.run(
            [python, "-c", _PROBE], env=dict(environment), capture_output=True, text=True, timeout=30, check=False
        )
        version, executable, *lacking = answer.stdout.splitlines()
        too_old = tuple(map(int, version.split("."))) < (3, 10)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return
    if not lacking:
        return
    if too_old:
        raise UsageError(f"{executable} is Python {version}, and claudescope needs 3.10 or newer.", "Use a newer one.")
    raise UsageError(
        f"{executable} cannot import claudescope.", f"Type: {shlex.join([executable])} -m pip install claudescope"
    )
