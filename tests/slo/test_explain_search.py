"""The search for slices: sums, evidence, chance, choice."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from explain_kit import app
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.slo.burn import Counts
from claudescope.slo.explain.calibration import Calibration, Labelled
from claudescope.slo.explain.candidates import Candidates
from claudescope.slo.explain.cells import Cell, Cells, Sample
from claudescope.slo.explain.chance import Chance
from claudescope.slo.explain.evidence import FACTORS, Evidence
from claudescope.slo.explain.explain import explain
from claudescope.slo.explain.explanation import Trace
from claudescope.slo.explain.scan import Scan
from claudescope.slo.explain.tuning import DEFAULT
from claudescope.slo.explain.usual import Usual, log_probability, usual


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(-1, 2)] * 4, st.integers(-9, 9)), max_size=30))
def test_every_slice_is_the_sum_of_its_rows(rows: list[tuple[int, ...]]) -> None:
    codes = [row[:4] for row in rows]
    found = {
        tuple(zip(sums.dimensions, key, strict=True)): value
        for sums in Scan(codes).sums([row[4] for row in rows])
        for key, value in zip(sums.codes, sums.values, strict=True)
    }
    wanted: dict[tuple[tuple[int, int], ...], int] = {}
    for *labels, value in rows:
        for size in (1, 2, 3):
            for which in combinations(enumerate(labels), size):
                if min(code for _, code in which) >= 0:
                    wanted[which] = wanted.get(which, 0) + value
    assert found == wanted
    assert len(Scan(codes)) == len(wanted)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0, 1e5)), min_size=1, max_size=20), st.sampled_from([1, 4, 16])
)
def test_evidence_adds_up_to_the_log_likelihood_ratio_at_the_best_factor(
    cells: list[tuple[float, float]], shape: float
) -> None:
    evidence = Evidence([mean for mean, _ in cells], shape, sum(bad for _, bad in cells))
    found = evidence.best(sum(evidence.of(bad for _, bad in cells)))
    wanted = max(
        sum(log_probability(bad, factor * mean, shape) - log_probability(bad, mean, shape) for mean, bad in cells)
        for factor in FACTORS
    )
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-3)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 1e3), st.integers(0, 1000)), min_size=1, max_size=20))
def test_the_lines_say_the_same_of_whole_counts(cells: list[tuple[float, int]]) -> None:
    evidence = Evidence([mean for mean, _ in cells], 4, sum(bad for _, bad in cells))
    by_line = sum(slope * bad + constant for (slope, constant), (_, bad) in zip(evidence.lines(), cells, strict=True))
    assert evidence.best(by_line) == pytest.approx(evidence.best(sum(evidence.of(b for _, b in cells))), abs=0.1)


def test_a_large_shape_is_poisson() -> None:
    # b log f - (f - 1) m with b = 30, m = 10, f = 3
    evidence = Evidence([10.0], 1e9, 30)
    assert evidence.best(sum(evidence.of([30.0]))) == pytest.approx(30 * math.log(3) - 20, abs=1e-4)


def test_a_count_of_any_size_fits_its_bits() -> None:
    evidence = Evidence([1e12, 1.0], 16, 1e14)
    assert evidence.best(sum(evidence.of([1e14, 1.0]))) > 0


def test_the_chance_of_no_change_is_that_of_simulations() -> None:
    # the same cells with new counts each: the share under .1 of the fitted distribution is about .1
    cells = app()
    expected = usual(cells, DEFAULT)
    found = Candidates(cells, expected, DEFAULT)
    chance = Chance(found, expected.shape, seed=1)
    # another seed gives the same within what 100 simulations can say
    other = Chance(found, expected.shape, seed=2)
    for score in (0.0, 2.0, 4.0):
        assert chance.of(score) == pytest.approx(other.of(score), rel=0.8)
    assert chance.of(-50) == 1.0
    assert chance.of(1e6) == 1e-6
    assert [chance.of(score) for score in (0, 2, 4, 8)] == sorted((chance.of(s) for s in (0, 2, 4, 8)), reverse=True)


def test_the_planted_slice_is_found_with_its_counts() -> None:
    cells = app({"step": "7", "tool": "search"})
    explanation = explain(cells)
    assert explanation.verdict == "slices"
    first = explanation.slices[0]
    assert first.labels == {"step": "7", "tool": "search"}
    rows = [row for row in cells.rows if row.labels[:2] == ("7", "search")]
    assert (first.bad, first.total) == (sum(row.now.bad for row in rows), 200)
    assert first.excess == first.bad - first.expected
    assert first.expected == pytest.approx(4, abs=2)  # 200 at 2 %
    assert first.llr == pytest.approx(first.bad * math.log(first.bad / first.expected) - first.excess)
    assert first.p == 1e-6
    assert 0.8 < first.share <= 1


def test_two_slices_that_overlap_nowhere_are_both_told() -> None:
    quiet, loud = app(windows=6), app({"tool": "search"}, rate=0.4)
    also = app({"tool": "read", "model": "b"}, rate=0.4)
    rows = [
        row._replace(now=other.now) if row.labels[1:] == ("read", "b") else row
        for row, other in zip(loud.rows, also.rows, strict=True)
    ]
    explanation = explain(Cells(quiet.dimensions, tuple(rows), 6))
    told = [dict(one.labels) for one in explanation.slices if not one.alternative]
    assert told == [{"tool": "search"}, {"tool": "read", "model": "b"}]
    assert sum(one.share for one in explanation.slices if not one.alternative) <= 1.0001


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 30))
def test_slices_besides_other_descriptions_overlap_nowhere(seed: int) -> None:
    bad = ({"tool": "search"}, {"step": "7"}, {"step": "7", "model": "a"}, None)[seed % 4]
    slices = [one for one in explain(app(bad, seed=seed)).slices if not one.alternative]
    for one, other in combinations(slices, 2):
        assert any(other.labels.get(name, value) != value for name, value in one.labels.items())


def test_no_change_is_no_slice() -> None:
    told = [explain(app(seed=seed)).verdict for seed in range(40)]
    assert told.count("none") >= 39  # alpha is .001


def test_a_rise_everywhere_is_no_slice_and_is_said_to_be() -> None:
    explanation = explain(app(everywhere=6, each=400))
    assert explanation.verdict == "none"
    assert explanation.text().startswith("No slice stands out: there were ")
    assert explanation.text().endswith(" times as many bad events as expected, in every part.")


def test_the_only_tool_that_fails_is_told_though_nothing_was_expected_anywhere() -> None:
    labels = [{"tool": tool, "model": model} for tool in ("search", "read", "write") for model in ("a", "b")]
    before = [[Sample(one, 0, 10) for one in labels] for _ in range(6)]
    now = [Sample(one, 3 if one["tool"] == "search" else 0, 3) for one in labels]
    (first, *_) = explain(Cells.collect(("tool", "model"), now, before)).slices
    assert (first.labels, first.bad, first.total) == ({"tool": "search"}, 6, 6)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (Cells(("tool",), (), 0), "There were no steps now."),
        (Cells.collect(["tool"], [Sample({"tool": "a"}, 9, 9)]), "There were no steps in the baseline."),
        (
            Cells.collect(["tool"], [Sample({"tool": "a"}, 9, 9)], [[Sample({"tool": "a"}, 0, 0)]]),
            "There were no steps in the baseline.",
        ),
        (
            Cells.collect(["tool"], [Sample({"tool": "a"}, 2, 2)], [[Sample({"tool": "a"}, 0, 99)]]),
            "2 bad steps are too few to tell where they come from.",
        ),
    ],
)
def test_too_little_to_tell(cells: Cells, reason: str) -> None:
    explanation = explain(cells, noun="steps")
    assert explanation.json() == {"verdict": "insufficient_data", "slices": []}
    assert explanation.text() == reason


def test_nothing_bad_is_no_slice() -> None:
    cells = Cells.collect(["tool"], [Sample({"tool": "a"}, 0, 50)], [[Sample({"tool": "a"}, 1, 99)]])
    assert explain(cells).json() == {"verdict": "none", "slices": []}


def test_no_dimension_is_no_slice() -> None:
    assert explain(Cells((), (Cell((), Counts(50, 60), (Counts(1, 60),)),), 1)).verdict == "none"


def test_the_same_question_has_the_same_answer() -> None:
    cells = app({"tool": "search"})
    assert explain(cells) == explain(cells)
    shuffled = Cells(cells.dimensions, cells.rows, cells.windows)
    assert explain(shuffled, seed=0).json() == explain(cells, seed=0).json()


def test_examples_are_asked_for_and_three_at_most() -> None:
    asked = []

    def traces(labels: dict[str, str]) -> list[Trace]:
        asked.append(dict(labels))
        return [Trace(f"{at:032x}", f"http://x/{at}") for at in range(5)]

    explanation = explain(app({"tool": "search"}), traces=traces)
    assert asked == [{"tool": "search"}]
    assert explanation.json()["slices"][0]["traces"] == [
        {"id": f"{at:032x}", "url": f"http://x/{at}"} for at in range(3)
    ]
    assert "For example: http://x/0, http://x/1, http://x/2" in explanation.text()


def test_a_probability_is_told_only_where_cases_say_so() -> None:
    cells = app({"tool": "search"})
    assert "probability" not in explain(cells).json()["slices"][0]
    cases = [Labelled(float(at), at >= 10) for at in range(20)]
    explanation = explain(cells, calibration=Calibration.fit(cases))
    # ten of ten right from 10 on: (10 + 1) / (10 + 2)
    assert explanation.json()["slices"][0]["probability"] == 0.917
    assert "Of labelled incidents as clear as this one, 92% had their cause there." in explanation.text()
    assert all("probability" not in one for one in explanation.json()["slices"][1:])


def test_the_slices_are_those_of_cells_with_events_now() -> None:
    rows = (Cell(("a",), Counts(0, 0), (Counts(1, 50),)), Cell(("b",), Counts(30, 60), (Counts(1, 60),)))
    found = Candidates(Cells(("t",), rows, 1), Usual((0.0, 1.0), 4.0), DEFAULT)
    assert [found.names(one) for one in found.best()] == [{"t": "b"}]


def test_without_history_slices_are_compared_with_one_another():
    cells = Cells.collect(["tool"], [Sample({"tool": "a"}, 30, 40), *(Sample({"tool": t}, 1, 50) for t in "bcde")])
    found = explain(cells, noun="steps", history=False)
    assert found.verdict == "slices"
    assert [one.labels for one in found.slices] == [{"tool": "a"}]
    assert found.slices[0].expected == pytest.approx(40 * 34 / 240, rel=0.3)  # drawn to the whole's by two events
    assert found.text().startswith("No history yet: compared with everything else in the same time.\n")


def test_without_history_an_even_share_is_no_slice():
    cells = Cells.collect(["tool"], [Sample({"tool": t}, 10, 50) for t in "abcde"])
    found = explain(cells, noun="steps", history=False)
    assert (found.verdict, found.text().splitlines()[1:]) == ("none", ["No slice stands out."])


def test_history_that_there_is_is_used_in_any_case():
    now, before = [Sample({"tool": "a"}, 30, 40)], [[Sample({"tool": "a"}, 30, 40)]] * 6
    cells = Cells.collect(["tool"], now, before)
    assert explain(cells, history=False) == explain(cells)
