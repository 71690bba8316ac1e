"""The entry point: finds the command, parses its flags, and turns a UsageError into one sentence and exit code 2."""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import keyword
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module, metadata
from types import ModuleType
from typing import Final, NoReturn

from ..errors import UsageError

__all__ = ["COMMANDS", "command_module", "command_parser", "main"]

COMMANDS: Final[dict[str, str]] = {
    "run": "Run a command and watch the reasoning steps of its Claude calls.",
    "up": "Start the server: OTLP receiver, API and page.",
    "export": "Write what the store holds, as OTLP/JSON or as records of steps.",
    "import": "Read exports into the store: OTLP/JSON by the line, or one document.",
    "data": "Say what the store holds, or delete it.",
    "demo": "Watch example apps with planted faults, without a key and without an app.",
    "doctor": "Say what is installed, what is in force and what to change.",
    "stack init": "Write the files of the full stack into a folder, with secrets of its own.",
    "stack check": "Ask each part of the full stack whether it works, and say what to change.",
    "slo validate": "Read specifications of objectives, and say everything that is wrong with them.",
    "slo rules": "Make the rules for Prometheus of specifications of objectives.",
    "slo test": "Test the rules of objectives with promtool, before anything loads them.",
    "slo plan": "Say what the rules of objectives will wake you for, and how soon, at your traffic.",
    "slo explain": "Say which slice of the events a budget burns in.",
    "explainer": "Take alerts of objectives, explain them, and write annotations and tickets.",
    "dashboards build": "Write the Grafana dashboards and the price rules.",
    "dashboards check": "Look for what is wrong with the dashboards of a folder.",
    "dashboards push": "Put the dashboards into a running Grafana.",
}
"""Every command and its one sentence. The module has the command's name, with an underscore between its words and after
a keyword; it is imported only when it is asked for.
"""


class _Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}.", f"See `{self.prog} --help`.")


def command_module(name: str) -> ModuleType:
    """The module of a command. It has ``add_arguments``, ``execute`` and ``EXAMPLE``, a line to type."""
    return import_module(f"{__package__}.{name.replace(' ', '_')}{'_' * keyword.iskeyword(name)}")


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    module = command_module(name)
    paragraphs = f"{COMMANDS[name]} {(module.__doc__ or '').strip()}".split("\n\n")
    parser = _Parser(
        prog=f"claudescope {name}",
        description="\n\n".join(textwrap.fill(" ".join(part.split()), 80) for part in paragraphs),
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def _lines(names: Iterable[str]) -> str:
    width = max(map(len, COMMANDS))
    return "\n".join(f"  {name:<{width}}  {COMMANDS[name]}" for name in names)


def _overview() -> str:
    return (
        "usage: claudescope COMMAND [...]\n\nSee each reasoning step of an app that uses Claude.\n\n"
        f"{_lines(COMMANDS)}\n\n`claudescope COMMAND --help` says more.\nexample:\n  claudescope run -- python app.py"
    )


def _dispatch(argv: Sequence[str]) -> int:
    if not argv:
        print(_overview(), file=sys.stderr)
        return 2
    name, *rest = argv
    if name in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if name in ("-V", "--version"):
        print(f"claudescope {metadata.version('claudescope')}")
        return 0
    group = [command for command in COMMANDS if command.startswith(f"{name} ")]
    if group and rest and rest[0] in ("-h", "--help"):
        print(f"{_lines(group)}\n\n`claudescope {name} ... --help` says more.")
        return 0
    if group:
        name, rest = f"{name} {rest[0] if rest else ''}".rstrip(), rest[1:]
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, group or COMMANDS, n=1, cutoff=0)[0]
        raise UsageError(f"claudescope has no command {name!r}.", f"Did you mean `claudescope {nearest}`?")
    arguments = command_parser(name).parse_args(rest)
    code: int = command_module(name).execute(arguments)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code: 2 for wrong use, 130 when it was interrupted from the keyboard."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us; ``print(file=None)`` would use the other one
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the process's life
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names have characters that a terminal may not have
    try:
        code = _dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"claudescope: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Who read our output has had enough, as `head` has; what is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("claudescope: No space is left where the output goes. Make some, or write elsewhere.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
