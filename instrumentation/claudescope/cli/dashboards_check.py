"""It reads each file back through the typed SDK and reports lost keys, parses every query, and names metrics and labels
that nothing documents. With `--prometheus` it runs every query and lists those without data.

It needs the extra `claudescope[dashboards]` and Python 3.11.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from ..errors import UsageError
from .boards import missing, read

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope dashboards check --prometheus http://localhost:9090"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("dashboards"), metavar="FOLDER", help="Default: dashboards."
    )
    parser.add_argument("--prometheus", metavar="URL", help="Run the queries there.")
    parser.add_argument("--range", default="1h", metavar="TIME", help="The time range of the queries. Default: 1h.")
    parser.add_argument("--fail", action="store_true", help="Exit with 1 when something is found.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints what is found."""
    try:
        from ..grafana.linter import lost_keys, query_faults
    except ImportError as error:
        raise missing(error) from None
    from ..grafana.expressions import expressions
    from ..grafana.prometheus import Prometheus

    seconds = _duration(arguments.range)
    found = 0
    for path, dashboard in read(arguments.folder).items():
        try:
            faults = [f"lost key: {key}" for key in lost_keys(dashboard)] + list(query_faults(dashboard))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"The SDK cannot read {path}: {error!r}.", "Correct the file.") from None
        queries = list(expressions(dashboard))
        print(f"{path}: {len(queries)} queries, {len(faults)} faults", flush=True)
        for fault in faults:
            print(f"  {fault}")
        found += len(faults)
        if arguments.prometheus:
            empty = list(Prometheus(arguments.prometheus, seconds).without_data(queries))
            print(f"  without data: {len(empty)}", flush=True)
            for query, text in empty:
                print(f"    {query.place}\n      {text}")
            found += len(empty)
    return int(bool(found and arguments.fail))


def _duration(text: str) -> int:
    parts = re.fullmatch(r"(\d+)([smhd])", text)
    if parts is None or not int(parts.group(1)):
        raise UsageError(f"--range is {text!r}.", "It takes a time such as 30m, 1h or 7d.")
    return int(parts.group(1)) * _SECONDS[parts.group(2)]
