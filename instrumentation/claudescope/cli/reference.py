"""``docs/commands.md``, made from the commands' own flags by ``python -m claudescope.cli.reference``."""

from __future__ import annotations

import argparse
from typing import Final

from .main import COMMANDS, command_module, command_parser

__all__ = ["markdown"]

_HEAD: Final = """\
# Commands

Made by `python -m claudescope.cli.reference > docs/commands.md`; a test checks that it is current.

Exit codes: 0 done; 1 done and something was found, only with `--fail`; 2 wrong use. `claudescope run` exits with the
code of its command.

A flag that is a setting wins over the environment variable in brackets, and that over `claudescope.toml`.
"""


def markdown() -> str:
    """The page, the same in every Python version."""
    parts = [_HEAD]
    for name, sentence in COMMANDS.items():
        module = command_module(name)
        parts.append(f"## claudescope {name}\n\n{sentence} {(module.__doc__ or '').strip()}\n")
        parts.append(f"```\n{module.EXAMPLE}\n```\n")
        rows = [_row(action) for action in command_parser(name)._actions if action.help != argparse.SUPPRESS]
        parts.append("| argument | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(action: argparse.Action) -> str:
    flags = ", ".join(action.option_strings) or str(action.metavar)
    value = f" {action.metavar}" if action.option_strings and action.metavar and action.nargs != 0 else ""
    text = (action.help or "").replace("%%", "%").replace("|", "\\|")
    return f"| `{flags}{value}` | {text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ']')) else '.'} |"


if __name__ == "__main__":
    print(markdown(), end="")
