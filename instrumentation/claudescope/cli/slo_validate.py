"""Each line on standard error names file, line, what is wrong and what to write instead; all files are read to the end.
What is not wrong, but may not be expected, is said after its objective: a factor that could never fire, say.

Files are sloth's `prometheus/v1`, with the keys of docs/slo-fields.md besides, or OpenSLO v1. `-` is standard input; of
a folder its *.yml and *.yaml are read.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError

if TYPE_CHECKING:
    from ..slo.objective import Objective
    from ..slo.spec.load import Reading
    from ..slo.spec.problem import Problem

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope slo validate slo.yml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("files", metavar="FILE", type=Path, nargs="*", help="Specifications.")
    parser.add_argument("--json", action="store_true", help="Print objectives, errors and warnings as JSON.")
    parser.add_argument("--schema", action="store_true", help="Print the JSON Schema of a specification, for editors.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints what the files hold; 2 where anything is wrong with them."""
    if arguments.schema:
        from ..slo.spec.schema import schema

        print(json.dumps(schema(), indent=2))
        return 0
    if not arguments.files:
        raise UsageError("No file is named.", "Name the specifications: `claudescope slo validate slo.yml`.")
    from ..slo.spec.load import read

    reading = read(arguments.files)
    if arguments.json:
        print(json.dumps(_json(reading), indent=2))
        return 2 if reading.problems else 0
    for problem in reading.problems:
        print(problem, file=sys.stderr)
    if reading.problems:
        count = len(reading.problems)
        print(f"claudescope: {count} error{'' if count == 1 else 's'}.", file=sys.stderr)
        return 2
    for objective in reading.objectives:
        print(_line(objective))
        for warning in reading.warnings.get(objective.id, ()):
            print(f"  line {warning.line}: {warning.what} {warning.fix}".rstrip())
    return 0


def _line(objective: Objective) -> str:
    by = f" by {', '.join(objective.group_by)}" if objective.group_by else ""
    tiers = ", ".join(
        f"{tier.name} {tier.factor:.4g}x"
        for tier in objective.tiers
        if not (objective.page if tier.severity == "page" else objective.ticket).disabled
    )
    return f"ok  {objective.id}  {100 * objective.target:.10g} % over {objective.period}{by}  ({tiers or 'no alerts'})"


def _json(reading: Reading) -> dict[str, Any]:
    return {
        "objectives": [
            {
                "id": objective.id,
                "service": objective.service,
                "name": objective.name,
                "target": objective.target,
                "period": str(objective.period),
                "group_by": objective.group_by,
                "path": objective.origin.path,
                "line": objective.origin.line,
                "tiers": [
                    {
                        "name": tier.name,
                        "severity": tier.severity,
                        "short": str(tier.short),
                        "long": str(tier.long),
                        "factor": tier.factor,
                        "asked": tier.asked,
                        "for": str(tier.wait),
                    }
                    for tier in objective.tiers
                ],
                "warnings": _problems(reading.warnings.get(objective.id, [])),
            }
            for objective in reading.objectives
        ],
        "errors": _problems(reading.problems),
    }


def _problems(problems: list[Problem]) -> list[dict[str, Any]]:
    return [{key: value for key, value in asdict(problem).items() if key != "level"} for problem in problems]
