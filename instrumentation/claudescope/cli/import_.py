"""It takes what `claudescope export` wrote, and OTLP/JSON from elsewhere: spans and log records.

The server that has the data folder gets them; without one they go straight into the store. A span that is there already
counts as known and changes nothing. What cannot be read is left out and named, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import BinaryIO

from ..errors import UsageError
from .flags import add_setting, load_settings

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope import yesterday.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="The files to read; - is standard input.")
    for key, value in (("data", "FOLDER"), ("token", "TOKEN"), ("prices", "FILE")):
        add_setting(parser, key, value)


def execute(arguments: argparse.Namespace) -> int:
    """Reads the files; 0, or 2 when something was left out. Raises UsageError for a file that is not taken at all."""
    from .importer import Importer

    with contextlib.ExitStack() as stack:
        files = [(name, stack.enter_context(_opened(name))) for name in arguments.files]
        importer = stack.enter_context(closing(Importer(load_settings(arguments))))
        for name, file in files:
            importer.read(name, file)
    print(importer.summary())
    for note in importer.notes():
        print(f"claudescope: {note}", file=sys.stderr)
    return 2 if importer.left_out else 0


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.", "Name a file, or - for standard input.") from None
    with file:
        yield file
