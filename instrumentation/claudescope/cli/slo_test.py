"""For each objective: traffic that burns its budget at twice the allowed rate, at 20 % and at 100 %, quiet, none, with
a gap, with a series that is born with a failure, with one failure at one event an hour, and the end of all data. The
rules must fire what the arithmetic says, and nothing else.

What promtool is given can be kept with `-o`.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ..errors import UsageError
from ..slo.objective import Objective
from ..slo.rules.compiler import compile as compiled
from ..slo.rules.dialect import DIALECTS
from ..slo.rules.promtool import Judgement, check_rules, find_promtool, test_rules
from ..slo.rules.rendering import text_of
from ..slo.rules.unit_tests import RuleTest, rule_test
from .progress import Progress
from .slo_rules import read_objectives

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope slo test slos/*.yml --fail"
_SAID: Final = 20
"""Lines of promtool's that are shown of each objective."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="Specifications of objectives.")
    parser.add_argument("--promtool", metavar="PATH", help="The program. Default: promtool, in PATH.")
    parser.add_argument("--prometheus", choices=list(DIALECTS), default="3", help="Version of the rules. Default: 3.")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="Keep rules and tests there.")
    parser.add_argument("--fail", action="store_true", help="Exit with 1 when a test fails.")


def execute(arguments: argparse.Namespace) -> int:
    """Makes the tests, runs them, and says what failed."""
    promtool = find_promtool(arguments.promtool)
    objectives = read_objectives(arguments.files)
    whole = text_of(compiled(objectives, DIALECTS[arguments.prometheus]), prometheus=arguments.prometheus)
    if arguments.output is None:
        with tempfile.TemporaryDirectory(prefix="claudescope-slo-") as folder:
            failed = _judge(promtool, objectives, whole, Path(folder))
    else:
        failed = _judge(promtool, objectives, whole, arguments.output)
    print(f"{len(objectives)} objectives, {failed} failed." if failed else f"{len(objectives)} objectives, all passed.")
    return int(bool(failed and arguments.fail))


def _judge(promtool: str, objectives: list[Objective], whole: str, folder: Path) -> int:
    progress = Progress()
    rules = _write(folder / "slo-rules.yml", whole)
    checked = check_rules(promtool, rules)
    failed = int(not checked.passed)
    if failed:
        print("promtool refuses the rules:", *_shown(checked), sep="\n  ")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        judged_by_now = pool.map(lambda objective: _tested(promtool, objective, folder), objectives)
        for at, (test, judged) in enumerate(judged_by_now):
            progress.clear()
            note = "" if test.played else "  (its own queries only parsed; all else with stand-in counters)"
            print(f"{'passed' if judged.passed else 'FAILED'}  {test.id}{note}", flush=True)
            if not judged.passed:
                print(*_shown(judged), sep="\n", flush=True)
                failed += 1
            progress.tell(f"{at + 1} of {len(objectives)} objectives tested")
    progress.clear()
    return failed


def _tested(promtool: str, objective: Objective, folder: Path) -> tuple[RuleTest, Judgement]:
    test = rule_test(objective, f"{objective.id}.rules.yml")
    _write(folder / f"{objective.id}.rules.yml", test.rules)
    return test, test_rules(promtool, _write(folder / f"{objective.id}.test.yml", test.tests))


def _shown(judged: Judgement) -> Iterable[str]:
    lines = [line.rstrip() for line in judged.output.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"\s*(Processing test file|Unit Testing|Checking|SUCCESS)", line)]
    more = [f"    ... and {len(lines) - _SAID} lines more; -o FOLDER keeps the files"] if len(lines) > _SAID else []
    return [f"    {line}" for line in lines[:_SAID]] + more


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}.", "Name another folder.") from None
    return path
