"""It says which slice of the events holds the bad ones beyond what was expected, against points of time before.

Each row of the CSV file is the events of one point of time with one set of labels; each column but the three named
ones is a dimension. Slices have up to three labels. "none" means that no slice stands out, "insufficient_data" that
there is too little to tell. How sure an answer is, and how often it was right on labelled incidents:
docs/slo-explain.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..errors import UsageError
from ..slo.explain.calibration import Calibration, read_cases
from ..slo.explain.explain import explain
from ..slo.explain.table import Columns, read_table
from .progress import Progress

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope slo explain --csv steps.csv --time minute --bad invalid --total steps --at 1566657420 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("--csv", metavar="FILE", type=Path, required=True, help="The events, in UTF-8 with a header.")
    parser.add_argument("--time", metavar="COLUMN", required=True, help="Column of the point of time.")
    parser.add_argument("--bad", metavar="COLUMN", required=True, help="Column of the number of bad events.")
    parser.add_argument("--total", metavar="COLUMN", required=True, help="Column of the number of all events.")
    parser.add_argument("--at", metavar="T", required=True, help="The point of time to explain: a value of its column.")
    parser.add_argument(
        "--baseline", metavar="N", help="Compare with so many points of time before it. Default: with all."
    )
    parser.add_argument(
        "--noun", metavar="WORD", default="events", help="What is counted, for the text. Default: events."
    )
    parser.add_argument(
        "--cases",
        metavar="FILE",
        type=Path,
        help="Past incidents whose cause is known: one JSON object a line. Without it no probability is told.",
    )
    parser.add_argument("--svg", metavar="FILE", type=Path, help="Write a picture, too.")
    parser.add_argument("--json", action="store_true", help="Print the explanation as JSON.")
    parser.add_argument("--fail", action="store_true", help="Exit with 1 when a slice stands out.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints the explanation."""
    baseline = _whole(arguments.baseline)
    calibration = Calibration.fit(read_cases(arguments.cases)) if arguments.cases else None
    progress = Progress()
    columns = Columns(arguments.time, arguments.bad, arguments.total)
    table = read_table(arguments.csv, columns, progress.tell)
    progress.tell(f"{arguments.csv}: comparing {len(table.points)} points of time")
    explanation = explain(table.cells(arguments.at, baseline), calibration=calibration, noun=arguments.noun)
    progress.clear()
    if arguments.svg:
        try:
            arguments.svg.write_text(explanation.svg(), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{arguments.svg}: {error.strerror or error}.", "Name a file that can be written with --svg."
            ) from None
    if arguments.json:
        print(json.dumps(explanation.json(), ensure_ascii=False, indent=2))
    else:
        print(explanation.text())
    return int(explanation.verdict == "slices" and arguments.fail)


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"--baseline is {text!r}.", "It takes a number of points of time, from 1.")
    return int(text)
