"""How often an explanation names the true slice of a labelled incident, beside other methods and controls.

    python bench/explain.py [--data FOLDER] [--markdown] [--write docs/slo-explain.md]

Data: the set RS of RiskLoc (CSV files and ``anomaly.yaml``), by default ``../shared/data/riskloc-rs``; and incidents
made here in counts like those of an app with Claude.

A case counts at k if one of the first k slices that are told is one of the true ones, with exactly its labels. F1 is
micro: slices told in all cases against true slices of all cases. Brackets: 95 % intervals, Wilson's for shares, by
1000 bootstrap samples of the cases for F1.
"""

import argparse
import csv
import functools
import itertools
import random
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml
from attribution import adtributor, drawn, first, largest, plain_scan, rest_scan
from incidents import incident

from claudescope.signals import intervals
from claudescope.slo.explain.cells import Cells
from claudescope.slo.explain.explain import explain
from claudescope.slo.explain.table import Columns, Table, read_table
from claudescope.slo.explain.tuning import DEFAULT, Tuning

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "riskloc-rs"
GRID = tuple(
    replace(DEFAULT, prior=prior, label_cost=cost, near=near, simulations=20)
    for prior, cost, near in [
        *itertools.product((1.0, 2.0, 5.0, 10.0), (0.5, 1.0, 2.0), (0.8,)),
        (2.0, 1.0, 0.7),
        (2.0, 1.0, 0.9),
    ]
)
FOLDS = 5
BARS = (0.70, 0.90, 0.62)
"""Of top-1, top-3 and F1."""
HEAD = (
    "{} labelled incidents of RS. CPU seconds: the slowest case with reading its file; of the scans the mean without:\n"
)


class Case(NamedTuple):
    """One labelled incident."""

    table: Table
    at: str
    truth: list[frozenset]

    @property
    def cells(self) -> Cells:
        return self.table.cells(self.at)


class Told(NamedTuple):
    """What a method said of a case: all slices in order, and how many of them it stands for."""

    slices: list[frozenset]
    truth: list[frozenset]


def cases(folder: Path) -> list[Case]:
    found = []
    for entry in yaml.safe_load((folder / "anomaly.yaml").read_text(encoding="utf-8")):
        path = folder / f"{entry['data']}.csv"
        with path.open(encoding="utf-8-sig", newline="") as file:
            columns = Columns(next(csv.reader(file))[0], "value", "cnt")
        causes = entry["cause"] if isinstance(entry["cause"], list) else [entry["cause"]]
        truth = [frozenset((name, str(value)) for name, value in cause.items()) for cause in causes]
        found.append(Case(read_table(path, columns), str(entry["timestamp"]), truth))
    return found


def ours(cells: Cells, tuning: Tuning = DEFAULT) -> list[dict]:
    return [dict(one.labels) for one in explain(cells, tuning=tuning).slices]


def only_set(cells: Cells) -> list[dict]:
    return [dict(one.labels) for one in explain(cells).slices if not one.alternative]


def told(slices: list[dict], truth: list[frozenset]) -> Told:
    return Told([frozenset(one.items()) for one in slices], truth)


def hits(answers: list[Told], k: int) -> int:
    return sum(any(one in answer.truth for one in answer.slices[:k]) for answer in answers)


def f1(answers: list[Told]) -> float:
    right = sum(len(set(answer.slices) & set(answer.truth)) for answer in answers)
    all_told = sum(len(answer.slices) for answer in answers)
    return 2 * right / max(1, all_told + sum(len(answer.truth) for answer in answers))


def wilson(right: int, of: int) -> str:
    low, high = intervals.wilson(right, of)
    return f"{right / of:.3f} [{low:.2f}, {high:.2f}]"


def bootstrap(answers: list[Told]) -> str:
    chance = random.Random(0)
    drawn_ones = sorted(f1(chance.choices(answers, k=len(answers))) for _ in range(1000))
    return f"{f1(answers):.3f} [{drawn_ones[25]:.2f}, {drawn_ones[974]:.2f}]"


def row(name: str, answers: list[Told], best: list[Told] | None = None, seconds: float | None = None) -> list[str]:
    """``best``: what F1 is taken of, where a method's list for top-k is longer than what it would print."""
    took = f"{seconds:.2f}" if seconds is not None else ""
    one, three = (wilson(hits(answers, k), len(answers)) for k in (1, 3))
    return [name, one, three, bootstrap(best or answers), took]


def folds(incidents: list[Case]) -> list[Told]:
    """Each case by the settings of the grid whose smallest margin over the bars was the largest on the other folds."""
    every = {tuning: [told(ours(case.cells, tuning), case.truth) for case in incidents] for tuning in GRID}
    found: list[Told] = []
    for fold in range(FOLDS):
        others = [at for at in range(len(incidents)) if at % FOLDS != fold]

        def worth(tuning: Tuning, others: list[int] = others) -> float:
            answers = [every[tuning][at] for at in others]
            figures = hits(answers, 1) / len(answers), hits(answers, 3) / len(answers), f1(answers)
            return min(figure - bar for figure, bar in zip(figures, BARS, strict=True))

        chosen = max(GRID, key=worth)
        found += [every[chosen][at] for at in range(fold, len(incidents), FOLDS)]
    return found


def quiet_points(case: Case) -> set[str]:
    """Points before the incident that are no incident by a rule that knows the answer: the whole's rate is at most
    1.25 times its median, and no true slice has over 1.5 times its median rate and 5 bad events more than that."""
    before = list(case.table.points)
    before = before[: before.index(case.at)]

    def rates(labels: frozenset) -> list[tuple[float, float]]:
        counts = []
        for point in before:
            samples = [one for one in case.table.points[point] if labels <= set(one.labels.items())]
            counts.append((sum(one.bad for one in samples), sum(one.total for one in samples)))
        return counts

    def rate(counts: tuple[float, float]) -> float:
        return counts[0] / counts[1] if counts[1] else 0.0

    whole = rates(frozenset())
    usual = statistics.median_low([rate(one) for one in whole])
    found = {point for point, one in zip(before, whole, strict=True) if rate(one) <= 1.25 * usual}
    for labels in case.truth:
        counts = rates(labels)
        own = statistics.median_low([rate(one) for one in counts])
        found -= {
            point
            for point, one in zip(before, counts, strict=True)
            if rate(one) > 1.5 * own and one[0] - own * one[1] > 5
        }
    return found


def windows_without(incidents: list[Case]) -> list[list[str]]:
    every = quiet = 0
    every_none = quiet_none = 0
    for case in incidents:
        calm = quiet_points(case)
        before = list(case.table.points)
        for point in before[1 : before.index(case.at)]:
            none = explain(case.table.cells(point)).verdict != "slices"
            every, every_none = every + 1, every_none + none
            if point in calm:
                quiet, quiet_none = quiet + 1, quiet_none + none
    return [
        ["quiet windows before the incidents", str(quiet), wilson(quiet_none, quiet)],
        ["all windows before the incidents", str(every), wilson(every_none, every)],
    ]


def made(count: int) -> tuple[list[list[str]], list[list[str]]]:
    """Incidents in counts like those of an app, and the same without an incident."""
    rows, calm = [], []
    for name, options in {
        "5000 steps, 2 % to 30 %": {},
        "800 steps, 2 % to 30 %": {"events": 800},
        "5000 steps, 2 % to 10 %": {"rate": 0.1},
        "5000 steps, two slices": {"slices": 2},
        "300 steps, 1 % to 30 %": {"events": 300, "base": 0.01},
        "5000 steps, one window before": {"windows": 1},
    }.items():
        chance = random.Random(1)
        answers, scans, none = [], [], 0
        for _ in range(count):
            cells, truth = incident(chance, **options)
            answers.append(told(ours(cells), truth))
            scans.append(told(plain_scan(cells), truth))
            cells, _ = incident(chance, **options, planted=False)
            none += explain(cells).verdict != "slices"
        rows.append(
            [
                name,
                wilson(hits(answers, 1), count),
                wilson(hits(answers, 3), count),
                f"{f1(answers):.2f}",
                f"{hits(scans, 1) / count:.2f}",
            ]
        )
        calm.append([f"planted nothing: {name}", str(count), wilson(none, count)])
    return rows, calm


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def report(incidents: list[Case], planted: int) -> str:
    answers, slowest = [], 0.0
    for case in incidents:
        began = time.process_time()
        # the file is read again: it is part of what a person waits for
        cells = read_table(case.table.path, _columns(case.table)).cells(case.at)
        answers.append(told(ours(cells), case.truth))
        slowest = max(slowest, time.process_time() - began)
    of = [(case.cells, case.truth) for case in incidents]
    named = [(adtributor(cells), truth) for cells, truth in of]
    rows = [
        row("**claudescope**", answers, seconds=slowest),
        row("the same, without other descriptions", [told(only_set(cells), truth) for cells, truth in of]),
        row("the same, settings of 5-fold cross-validation", folds(incidents)),
    ]
    for name, method in (("plain scan", plain_scan), ("scan against the rest now", rest_scan)):
        began = time.process_time()
        listed = [told(method(cells), truth) for cells, truth in of]
        took = (time.process_time() - began) / len(of)
        rows.append(row(name, listed, [one._replace(slices=one.slices[:1]) for one in listed], took))
    flat = [told([one for dimension in found for one in dimension], truth) for found, truth in named]
    best = [told(found[0] if found else [], truth) for found, truth in named]
    rows.append(row("Adtributor", flat, best))
    for name, method in (
        ("control: any slice", functools.partial(drawn, seed=0)),
        ("control: the largest slices", largest),
        ("control: the first values of the file", first),
    ):
        listed = [told(method(cells), truth) for cells, truth in of]
        rows.append(row(name, listed, [one._replace(slices=one.slices[:1]) for one in listed]))
    halves = [
        [name, str(len(part)), wilson(hits(part, 1), len(part)), wilson(hits(part, 3), len(part)), f"{f1(part):.3f}"]
        for name, part in (("even cases", answers[::2]), ("odd cases", answers[1::2]))
    ]
    invented, calm = made(planted)
    return "\n".join(
        [
            HEAD.format(len(incidents)),
            table(["method", "top-1", "top-3", "F1", "CPU s"], rows),
            table(["claudescope on", "cases", "top-1", "top-3", "F1"], halves),
            f"{planted} incidents of each kind, planted in counts like those of an app:\n",
            table(["incident", "top-1", "top-3", "F1", "plain scan top-1"], invented),
            'Windows without an incident, answered with "no slice stands out":\n',
            table(["windows", "number", "share"], windows_without(incidents) + calm),
        ]
    )


def _columns(read: Table) -> Columns:
    with read.path.open(encoding="utf-8-sig", newline="") as file:
        return Columns(next(csv.reader(file))[0], "value", "cnt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--planted", type=int, default=100, help="incidents of each kind")
    parser.add_argument("--write", type=Path, help="put the tables into a document, between its markers")
    arguments = parser.parse_args()
    text = report(cases(arguments.data), arguments.planted)
    print(text)
    if arguments.write:
        document = arguments.write.read_text(encoding="utf-8")
        begin, end = "<!-- accuracy -->\n", "<!-- end -->"
        before, rest = document.split(begin)
        arguments.write.write_text(f"{before}{begin}{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
