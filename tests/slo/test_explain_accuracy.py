"""The labelled incidents of ../shared/data/riskloc-rs, by the definitions of ``bench/explain.py``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from explain_kit import labelled_incidents

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import explain as bench
from attribution import adtributor, plain_scan


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_bars_hold_on_the_labelled_incidents() -> None:
    incidents = bench.cases(labelled_incidents(bool(os.environ.get("CI"))))
    assert len(incidents) == 68
    answers = [bench.told(bench.ours(case.cells), case.truth) for case in incidents]
    assert bench.hits(answers, 1) / 68 >= 0.75
    assert bench.hits(answers, 3) / 68 >= 0.90
    assert bench.f1(answers) >= 0.62


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_quiet_windows_have_no_slice_that_stands_out() -> None:
    incidents = bench.cases(labelled_incidents(bool(os.environ.get("CI"))))[::4]
    quiet, _ = bench.windows_without(incidents)
    assert float(quiet[2].split()[0]) >= 0.95


def test_the_rivals_find_a_loud_slice_of_one_label() -> None:
    from explain_kit import app

    cells = app({"tool": "search"}, rate=0.5)
    assert adtributor(cells)[0] == [{"tool": "search"}]
    assert plain_scan(cells)[0] == {"tool": "search"}


def test_the_definitions_of_the_benchmark() -> None:
    one, two = frozenset({("a", "1")}), frozenset({("b", "2")})
    answers = [bench.Told([two, one], [one]), bench.Told([], [one]), bench.Told([one], [one, two])]
    assert [bench.hits(answers, k) for k in (1, 3)] == [1, 2]
    assert bench.f1(answers) == 2 * 2 / (3 + 4)
    # Wilson's interval of 1 of 2: (p + z2/2n +- z sqrt(p q / n + z2/4n2)) / (1 + z2/n) with z = 1.96
    assert bench.wilson(1, 2) == "0.500 [0.09, 0.91]"
