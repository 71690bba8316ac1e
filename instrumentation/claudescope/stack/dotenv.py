"""A ``.env`` file, read as Docker Compose reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import UsageError

__all__ = ["parse_dotenv", "read_dotenv"]

_LINE: Final = re.compile(
    r"""(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*
    (?: '(?P<raw>[^']*)' | "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<plain>[^'"].*?)? )
    (?:(?:^|\s+)\#.*|\s*)$""",
    re.VERBOSE,
)
_REFERENCE: Final = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<bare>[A-Za-z_]\w*))")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def read_dotenv(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file sets; none where it is not there. ``environ`` is for what its values refer to.

    Raises UsageError, naming the line, for one that is no assignment, and for a file that cannot be read.
    """
    try:
        return parse_dotenv(path.read_text("utf-8"), environ)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        raise UsageError(f"{path}: {error}.", "Correct the file.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Change its permissions.") from None


def parse_dotenv(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that ``text`` sets, one a line, the last one of a name. Raises ValueError that names the line."""
    values: dict[str, str] = {}

    def refer(match: re.Match[str]) -> str:
        name = match["braced"] or match["bare"]
        return environ.get(name) or values.get(name) or match["default"] or ""

    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not NAME=value")
        if match["raw"] is not None:
            value = match["raw"]
        elif match["quoted"] is not None:
            expanded = _REFERENCE.sub(refer, match["quoted"])
            value = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), expanded)
        else:
            value = _REFERENCE.sub(refer, match["plain"] or "")
        values[match["name"]] = value
    return values
