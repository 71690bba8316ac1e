"""Merges freezes of a newer and of the oldest Python into one constraints file: ``constraints.py NEWER OLDEST OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

NEWER, OLDEST = 'python_version >= "3.11"', 'python_version < "3.11"'


def pins(path: str) -> dict[str, str]:
    """Package name -> pinned line."""
    lines = Path(path).read_text("utf-8").splitlines()
    return {line.split("==")[0].lower(): line for line in lines if "==" in line}


def main(newer: str, oldest: str, out: str) -> None:
    """Writes what both agree on plainly and the rest with the Python that it is for."""
    new, old = pins(newer), pins(oldest)
    lines = []
    for name in sorted({*new, *old}):
        if name not in old or new.get(name) == old[name]:
            lines.append(new[name])
        elif name not in new:
            lines.append(old[name])
        else:
            lines += [f"{new[name]}; {NEWER}", f"{old[name]}; {OLDEST}"]
    Path(out).write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
