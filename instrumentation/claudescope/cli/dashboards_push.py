"""It writes them into one folder of the Grafana at `--url`, and overwrites only what has our tag and differs.

The token of a service account comes from `GRAFANA_TOKEN`. It needs the extra `claudescope[grafana]` and Python 3.11.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from ..errors import UsageError
from ..prices import Prices
from .boards import made

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope dashboards push --url https://grafana.example --dry-run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("--url", metavar="URL", help="Default: GRAFANA_URL, else http://localhost:3000.")
    parser.add_argument("--folder", default="claudescope", metavar="TITLE", help="Default: claudescope.")
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="A price table of the form of claudescope/prices.json, not our own."
    )
    parser.add_argument("--dry-run", action="store_true", help="Print what would change, and change nothing.")


def execute(arguments: argparse.Namespace) -> int:
    """Writes them and says what became of each."""
    dashboards = {uid: json.loads(text) for uid, text in made(Prices.load(arguments.prices)).items()}
    from ..grafana.publisher import Publisher

    url = arguments.url or os.environ.get("GRAFANA_URL") or "http://localhost:3000"
    publisher = Publisher(url, os.environ.get("GRAFANA_TOKEN", ""), arguments.folder)
    refused = 0
    for change in publisher.push(dashboards, arguments.dry_run):
        would = "would be " if arguments.dry_run and change.what in ("new", "changed") else ""
        reason = f": {change.reason}" if change.reason else ""
        print(f"{would}{change.what}  {change.uid}  {change.title}{reason}", flush=True)
        refused += change.what == "refused"
        for line in change.diff if arguments.dry_run else ():
            print(f"    {line}")
    if refused:
        raise UsageError(f"Not written: {refused} of {len(dashboards)}.", "The lines above say why.")
    return 0
