"""The files are those of the source tree: docker-compose.yml and what it mounts. A file that you changed is kept.
Jaeger's links to Grafana get the address that .env has for it.

Standard output has two lines for the app's shell, where to send and the token: `eval "$(claudescope stack init DIR)"`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ..stack.dotenv import read_dotenv
from ..stack.explainer import PROFILE, profiles
from ..stack.folder import (
    State,
    WrittenFile,
    write_environment,
    write_explainer_token,
    write_files,
    write_ignore,
)
from ..stack.parts import Stack

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope stack init ./observability"
_STATES: Final[dict[State, str]] = {"new": "new", "same": "as they were", "updated": "updated", "kept": "kept"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="Where to; made if it is not there.")
    parser.add_argument(
        "--force", action="store_true", help="Overwrite files that were changed. The secrets in .env are kept."
    )
    parser.add_argument(
        "--explainer",
        action="store_true",
        help="With the explainer of alerts: its profile in .env, and Alertmanager's way to it. It stays on.",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Writes the files and prints the two lines."""
    folder: Path = arguments.folder
    explainer = arguments.explainer or PROFILE in profiles(read_dotenv(folder / ".env", os.environ))
    outcomes = write_files(folder, Stack.load(folder).grafana_page, arguments.force, explainer=explainer)
    ignored = write_ignore(folder)  # first, so that nobody commits the secrets in between
    made = write_environment(folder, explainer=explainer)
    if explainer:
        write_explainer_token(folder)
    stack = Stack.load(folder)
    _report(folder, outcomes, made, ignored)
    print(f"export OTEL_EXPORTER_OTLP_ENDPOINT={shlex.quote(stack.otlp_http)}")
    header = f"authorization=Bearer%20{quote(stack.token, safe='')}"
    print(f"export OTEL_EXPORTER_OTLP_HEADERS={shlex.quote(header)}", flush=True)
    return 0


def _report(folder: Path, outcomes: list[WrittenFile], made: bool, ignored: bool) -> None:
    counts = Counter(outcome.state for outcome in outcomes)
    said = ", ".join(f"{counts[state]} {words}" for state, words in _STATES.items() if counts[state])
    environment = "with new secrets, for you alone to read" if made else "kept"
    lines = [f"{len(outcomes)} files in {folder}: {said}. .env: {environment}."]
    lines += [
        f"{folder / outcome.name} is changed and was kept; ours is beside it, as {Path(outcome.name).name}.new."
        for outcome in outcomes
        if outcome.state == "kept"
    ]
    if not ignored:
        lines.append(f"{folder / '.gitignore'} does not name .env: add it, so that the secrets are not committed.")
    change = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    lines.append(f"Start it: {change}docker compose up -d && claudescope stack check")
    lines.append("The apps need these two:")
    print(*lines, sep="\n", file=sys.stderr, flush=True)
