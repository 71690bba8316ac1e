"""It writes `json/` below FOLDER, and the price table as Prometheus rules below the folder of `--rules`.

It needs the extra `claudescope[dashboards]` and Python 3.11.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import UsageError
from ..prices import Prices
from .boards import made

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope dashboards build --prices our-prices.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("dashboards"), metavar="FOLDER", help="Default: dashboards."
    )
    parser.add_argument(
        "--rules",
        type=Path,
        default=Path("collector/rules"),
        metavar="FOLDER",
        help="Where prices.yml goes. Default: collector/rules.",
    )
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="A price table of the form of claudescope/prices.json, not our own."
    )


def execute(arguments: argparse.Namespace) -> int:
    """Writes what is not current."""
    prices = Prices.load(arguments.prices)
    texts = {arguments.folder / "json" / f"{uid}.json": text for uid, text in made(prices).items()}
    from ..grafana.cost import price_rules

    texts[arguments.rules / "prices.yml"] = price_rules(prices)
    for path, text in texts.items():
        try:
            current = path.exists() and path.read_text("utf-8") == text
            if not current:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be written: {error}.", "Name another folder.") from None
        print(f"{'current' if current else 'written'}  {path}")
    return 0
