"""It looks at the Python that it runs in, the environment and the server, and changes nothing.

It sends one span, named `claudescope doctor`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from ..finding import Finding
from ..settings import SETTINGS, Settings
from .findings import FAST, SLOW

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope doctor --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("--fast", action="store_true", help="Leave out what imports the SDK or sends a span.")
    parser.add_argument("--json", action="store_true", help="Print the findings and all settings as JSON.")
    parser.add_argument("--fail", action="store_true", help="Exit with 1 when there is something to change.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints the findings."""
    settings = Settings.load()
    findings: list[Finding] = []
    looks = FAST
    if not arguments.fast:
        from .roundtrip import round_trip

        looks = (*FAST, *SLOW, round_trip)
    for look in looks:
        for finding in look(settings):
            findings.append(finding)
            if not arguments.json:
                print(finding, flush=True)
    wrong = sum(finding.level == "fix" for finding in findings)
    if arguments.json:
        values = {key: _plain(key, getattr(settings, key)) for key in SETTINGS}
        print(json.dumps({"findings": [asdict(finding) for finding in findings], "settings": values}, indent=2))
    else:
        print(f"{wrong} to change." if wrong else "Nothing to change.")
    return int(bool(wrong and arguments.fail))


def _plain(key: str, value: object) -> object:
    if key == "token":
        return "(not shown)" if value else ""
    return list(value) if isinstance(value, tuple) else value if isinstance(value, (int, float)) else str(value or "")
