"""The files that make the full stack: in the wheel beside this module, in a source tree at its top level."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["shipped_files"]

_NAMES: Final = (
    ".dockerignore",
    ".env.example",
    "Dockerfile",
    "docker-compose.yml",
    "secrets/alertmanager/README.md",
    "secrets/tls/README.md",
)
_FOLDERS: Final = ("collector", "dashboards")
_SUFFIXES: Final = frozenset({".json", ".md", ".yaml", ".yml"})


def shipped_files() -> dict[str, Path]:
    """Every file by its name in the stack's folder, such as ``collector/otelcol.yaml``; sorted."""
    here = Path(__file__).resolve().parent
    top = here / "files"
    if not top.is_dir():
        top = here.parents[2]  # an editable installation: the tree itself
    found = {name: top / name for name in _NAMES}
    for folder in _FOLDERS:
        found |= {
            path.relative_to(top).as_posix(): path
            for path in (top / folder).rglob("*")
            if path.suffix in _SUFFIXES and path.is_file()
        }
    return dict(sorted(found.items()))
