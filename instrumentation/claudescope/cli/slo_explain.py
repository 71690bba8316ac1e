"""It says which slice of the events holds the bad ones beyond what was expected, against the time before.

With --csv, each row of the file is the events of one point of time with one set of labels; each column but the three
named ones is a dimension. With --slo, an objective's events are taken from Prometheus, or else from the store of the
embedded server. With --steps, a file that `claudescope export --format jsonl` wrote is explained by windows of time,
and the nodes of its runs and the runs that failed alike are told, too.

Slices have up to three labels. "none" means that no slice stands out, "insufficient_data" that there is too little to
tell. How sure an answer is, and how often it was right on labelled incidents: docs/slo-explain.md.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..setting_values import duration
from ..slo.explain.calibration import Calibration, read_cases
from ..slo.explain.causes import Causes, find_causes
from ..slo.explain.explain import calibrated, explain
from ..slo.explain.explanation import Explanation
from ..slo.explain.steps import RUN, History, read_steps
from ..slo.explain.table import Columns, read_table
from . import slo_evidence
from .flags import add_setting, load_settings
from .moments import FORMS, read_moment
from .progress import Progress

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope slo explain --csv steps.csv --time minute --bad invalid --total steps --at 1566657420 --json"

_LONGEST_WINDOW = 366 * 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--csv", metavar="FILE", type=Path, help="Counts, in UTF-8 with a header.")
    source.add_argument("--steps", metavar="FILE", type=Path, help="Records of steps, a JSON object a line.")
    source.add_argument("--slo", metavar="FILE", type=Path, help="The specification of an objective.")
    parser.add_argument("--objective", metavar="NAME", help="With --slo: which one, where the file has several.")
    parser.add_argument("--prometheus", metavar="URL", help="With --slo: take the events from this Prometheus.")
    add_setting(parser, "data", "FOLDER")
    parser.add_argument("--time", metavar="COLUMN", help="Column of the point of time.")
    parser.add_argument("--bad", metavar="COLUMN", help="Column of the number of bad events.")
    parser.add_argument("--total", metavar="COLUMN", help="Column of the number of all events.")
    parser.add_argument(
        "--at",
        metavar="T",
        help="With --csv the point of time to explain, a value of its column. Else the end of the time to explain:"
        f" {FORMS}. Default: now, with --steps the last step.",
    )
    parser.add_argument(
        "--baseline", metavar="N", help="Compare with so many points or windows of time before it. Default: with all."
    )
    parser.add_argument("--window", metavar="TIME", help="Not with --csv: how long a time is explained. Default: 1h.")
    parser.add_argument(
        "--over", metavar="TIME", help="With --steps: a step is bad if it takes longer, and not if it is invalid."
    )
    parser.add_argument("--node", metavar="NODE", help=f"With --steps: look for nodes below this one. Default: {RUN}.")
    parser.add_argument(
        "--noun", metavar="WORD", help="What is counted, for the text. Default: events, with --steps steps."
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
    if not (arguments.csv or arguments.steps or arguments.slo):
        raise UsageError("slo explain needs something to look at.", "Give one of --csv, --steps and --slo.")
    calibration = Calibration.fit(read_cases(arguments.cases)) if arguments.cases else None
    if arguments.csv:
        explanation, causes = _of_csv(arguments, calibration), None
    elif arguments.steps:
        explanation, causes = _of_steps(arguments, calibration)
    else:
        explanation, causes = calibrated(_of_objective(arguments), calibration), None
    if arguments.svg:
        _write(arguments.svg, explanation.svg())
    if arguments.json:
        printed: dict[str, Any] = explanation.json() | (causes.json() if causes else {})
        print(json.dumps(printed, indent=2))
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):  # labels have characters that a terminal may not have
            sys.stdout.reconfigure(errors="backslashreplace")
        print("\n".join([explanation.text(), *(causes.sentences() if causes else [])]))
    return int(explanation.verdict == "slices" and arguments.fail)


def _of_csv(arguments: argparse.Namespace, calibration: Calibration | None) -> Explanation:
    for flag in ("time", "bad", "total", "at"):
        if getattr(arguments, flag) is None:
            raise UsageError(f"--csv needs --{flag}.", "See `claudescope slo explain --help`.")
    _only(arguments, "--steps or --slo", "window")
    _only(arguments, "--steps", "over", "node")
    _only(arguments, "--slo", "objective", "prometheus", "data")
    baseline = _whole(arguments.baseline)
    progress = Progress()
    table = read_table(arguments.csv, Columns(arguments.time, arguments.bad, arguments.total), progress.tell)
    progress.tell(f"{arguments.csv}: comparing {len(table.points)} points of time")
    cells = table.cells(arguments.at, baseline)
    explanation = explain(cells, calibration=calibration, noun=arguments.noun or "events")
    progress.clear()
    return explanation


def _of_objective(arguments: argparse.Namespace) -> Explanation:
    _only(arguments, "--csv", "time", "bad", "total")
    _only(arguments, "--steps", "over", "node", "noun")
    windows = _whole(arguments.baseline)
    if windows is not None and not arguments.prometheus:
        raise UsageError("--baseline goes with --csv, --steps or --prometheus.", "Leave it out.")
    window = round(_seconds("--window", arguments.window or "1h"))
    if window > _LONGEST_WINDOW:
        raise UsageError(f"--window is {arguments.window[:50]!r}.", "It takes 366d at most.")
    end = read_moment("--at", arguments.at)
    span = slo_evidence.Span(slo_evidence.now_ms() if end is None else end, max(1, window))
    objective = slo_evidence.objective_of(arguments.slo, arguments.objective)
    if arguments.prometheus:
        return slo_evidence.of_prometheus(objective, span, arguments.prometheus, windows)
    from ..live.store.folder import default_folder

    return slo_evidence.of_store(objective, span, load_settings(arguments).data or default_folder())


def _of_steps(arguments: argparse.Namespace, calibration: Calibration | None) -> tuple[Explanation, Causes]:
    _only(arguments, "--csv", "time", "bad", "total")
    _only(arguments, "--slo", "objective", "prometheus", "data")
    baseline = _whole(arguments.baseline)
    window = _seconds("--window", arguments.window or "1h")
    over = _seconds("--over", arguments.over) if arguments.over else None
    end = read_moment("--at", arguments.at)
    progress = Progress()
    records = read_steps(arguments.steps, over, progress.tell)
    first, last = min(one.ended_ms for one in records), max(one.ended_ms for one in records)
    if end is None:
        end = last + 1
    history = History.of(records, end, round(window * 1000), baseline)
    if not history.now:
        raise UsageError(
            f"{arguments.steps}: no step ended in the {window:g} s before {end}.",
            f"Its steps ended from {first} to {last} (milliseconds); name a time with --at.",
        )
    progress.tell(f"{arguments.steps}: comparing {len(history.before) + 1} windows")
    explanation = explain(history.cells(), calibration=calibration, noun=arguments.noun or "steps")
    causes = find_causes(*history.runs(), arguments.node or RUN, "validity" if over is None else "latency")
    progress.clear()
    return explanation, causes


def _only(arguments: argparse.Namespace, source: str, *flags: str) -> None:
    for flag in flags:
        if getattr(arguments, flag) is not None:
            raise UsageError(f"--{flag} goes with {source}.", "Leave it out.")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.", "Name a file that can be written with --svg.") from None


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise UsageError(f"--baseline is {text[:50]!r}.", "It takes a number of points of time, from 1.")
    return int(text)


def _seconds(flag: str, text: str) -> float:
    milliseconds = text.endswith("ms")
    try:
        return duration(text[:-2]) / 1000 if milliseconds else duration(text)
    except ValueError as error:
        raise UsageError(f"{flag} is {text!r}.", f"It takes {error}, or 800ms.") from None
