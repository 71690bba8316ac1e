"""It reads the files, also while a server has them, and needs none.

`otlp`: a request as OTLP/JSON a line, first of spans, then of log records; `claudescope import` and the OpenTelemetry
collector's `otlpjsonfile` receiver take it. `jsonl`: the record of a step a line, as the API gives it. A range is by
when a span ended; `--run` takes everything in the run's traces.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import UsageError
from .flags import add_setting, load_settings
from .moments import FORMS, read_moment
from .progress import Progress

if TYPE_CHECKING:
    from ..live.store.exporting import Export

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope export --from 24h -o yesterday.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("--run", metavar="ID", help="Only the traces of this run.")
    parser.add_argument("--from", dest="since", metavar="TIME", help=f"What ended at or after TIME: {FORMS}.")
    parser.add_argument("--to", dest="until", metavar="TIME", help="What ended before TIME.")
    parser.add_argument(
        "--format",
        choices=("otlp", "jsonl"),
        default="otlp",
        metavar="FORMAT",
        help="`otlp` or `jsonl`. Default: `otlp`.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="The file to write. Default: standard output.")
    add_setting(parser, "data", "FOLDER")


def execute(arguments: argparse.Namespace) -> int:
    """Writes the lines; 0. Raises UsageError for what cannot be read or written."""
    from ..live.store.exporting import Export, Selection
    from ..live.store.folder import default_folder

    since, until = read_moment("--from", arguments.since), read_moment("--to", arguments.until)
    if since is not None and until is not None and since >= until:
        raise UsageError("--from is not before --to.", "Change one of them.")
    folder = load_settings(arguments).data or default_folder()
    progress = Progress()
    try:
        with closing(Export(folder, Selection(arguments.run, since, until))) as export:
            with _output(arguments.output) as out:
                for line in export.otlp() if arguments.format == "otlp" else export.jsonl():
                    out.write(line)
                    progress.tell(f"{_counts(export, arguments.format)}, {export.share:.0%}")
            progress.clear()
            where = f" to {arguments.output}" if arguments.output else ""
            print(f"claudescope: exported {_counts(export, arguments.format)}{where}.", file=sys.stderr)
    except sqlite3.Error as error:
        raise UsageError(
            f"The store in {folder} cannot be read: {error}.", "Name another folder with --data."
        ) from None
    return 0


def _counts(export: Export, format: str) -> str:
    if format == "jsonl":
        return f"{export.steps:,} steps"
    return f"{export.spans:,} spans and {export.events:,} log records"


@contextlib.contextmanager
def _output(name: str | None) -> Iterator[BinaryIO]:
    """Where to write. A file is there only when it is complete; it may hold prompts, so it is its owner's only."""
    if name is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    whole = not path.exists() or path.is_file()
    part = path.with_name(f"{path.name}.part") if whole else path
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            yield out
        if whole:
            part.replace(path)
    except BaseException as error:
        if whole:
            with contextlib.suppress(OSError):
                part.unlink()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise UsageError(f"{name} cannot be written: {error.strerror}.", "Choose another file with -o.") from None
        raise
