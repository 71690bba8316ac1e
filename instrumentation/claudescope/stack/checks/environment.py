"""The folder's ``.env``: there, and for its owner alone."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator

from ...finding import Finding
from ..parts import Stack

__all__ = ["env_file"]


def env_file(stack: Stack) -> Iterator[Finding]:
    """Whether the secrets come from a file that others cannot read."""
    path = stack.folder / ".env"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        if not stack.token:
            yield Finding(
                "settings",
                "fix",
                f"There is no {path}: addresses are the defaults, and there is no token.",
                "Name the stack's folder: claudescope stack check DIR. To make one: claudescope stack init DIR.",
            )
        return
    if os.name == "posix" and mode & 0o077:
        yield Finding(
            "settings",
            "fix",
            f"{path} holds secrets and others can read it.",
            f"Type: chmod 600 {shlex.quote(str(path))}",
        )
