"""Makes the virtual environment of the compatibility tests: claudescope beside other instrumentations and frameworks.

``python tests/integration/compat_venv.py`` makes ``.cache/compat`` (or the folder given) unless it is there and up to
date, and prints its Python. It is separate from the development environment because instructor asks for jiter below
0.15 and claudescope is developed with the newest one. ``requirements.txt`` beside this file pins every package in it;
it is made anew, after a change of ``requirements.in``, with ``--upgrade``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PINNED = HERE / "requirements.txt"
WANTED = HERE / "requirements.in"


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def default_folder() -> Path:
    """Where it is: ``$COMPAT_VENV``, else ``.cache/compat`` in the repository."""
    return Path(os.environ.get("COMPAT_VENV") or ROOT / ".cache" / "compat")


def _digest() -> str:
    sources = (PINNED.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode())
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def make(folder: Path, upgrade: bool = False) -> Path:
    """Makes or completes the environment and gives its interpreter. Raises CalledProcessError when pip fails."""
    python, stamp = python_of(folder), folder / "made-of"
    if not upgrade and python.exists() and stamp.exists() and stamp.read_text() == _digest():
        return python
    venv.EnvBuilder(with_pip=True, clear=not python.exists()).create(folder)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = ["-r", str(WANTED)] if upgrade else ["-c", str(PINNED), "-r", str(WANTED)]
    subprocess.run([*pip, *pins, "-e", str(ROOT)], check=True)
    if upgrade:
        freeze = [str(python), "-m", "pip", "freeze", "--exclude-editable"]
        PINNED.write_text(subprocess.run(freeze, check=True, capture_output=True, text=True).stdout)
    stamp.write_text(_digest())
    return python


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    parser.add_argument("--upgrade", action="store_true", help="take the newest packages and pin those")
    arguments = parser.parse_args()
    print(make(arguments.folder, arguments.upgrade))
