"""Cells, and what is done to them before the search."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.errors import UsageError
from claudescope.slo.burn import Counts
from claudescope.slo.explain.cells import Cell, Cells, Sample
from claudescope.slo.explain.narrow import REST, WIDE, narrowed
from claudescope.slo.explain.tuning import DEFAULT
from claudescope.slo.explain.usual import log_probability, quiet, usual


def test_samples_of_the_same_labels_add_up_in_their_window() -> None:
    now = [Sample({"tool": "a", "other": "x"}, 1, 2), Sample({"tool": "a", "other": "y"}, 2, 3)]
    before = [[Sample({"tool": "a"}, 0.5, 4)], [Sample({"tool": "b"}, 0, 7)]]
    cells = Cells.collect(["tool"], now, before)
    assert cells.rows == (
        Cell(("a",), Counts(3, 5), (Counts(0.5, 4), Counts(0, 0))),
        Cell(("b",), Counts(0, 0), (Counts(0, 0), Counts(0, 7))),
    )
    assert (cells.windows, cells.now, cells.before) == (2, Counts(3, 5), Counts(0.5, 11))


def test_an_absent_label_is_the_empty_text() -> None:
    cells = Cells.collect(
        ["tool", "tier"], [Sample({"tier": "gold"}, 1, 1), Sample({"tool": "", "tier": "gold"}, 0, 1)]
    )
    assert cells.rows == (Cell(("", "gold"), Counts(1, 2), ()),)


@pytest.mark.parametrize(("bad", "total"), [(-1, 1), (math.nan, 1), (1, math.inf), (0, -0.5)])
def test_what_is_no_count_is_refused(bad: float, total: float) -> None:
    with pytest.raises(UsageError, match="A count is a number from 0 up"):
        Cells.collect(["tool"], [Sample({"tool": "a"}, bad, total)])


def test_a_dimension_is_named_once() -> None:
    with pytest.raises(UsageError, match="named twice"):
        Cells.collect(["tool", "tool"], [])


def test_windows_that_burned_themselves_are_not_usual() -> None:
    # rates .01 .01 .02 .01, the median (lower) .01: over 1.5 times of it is .02; an empty window says nothing
    before = [[Sample({"t": "a"}, bad, total)] for bad, total in ((1, 100), (1, 100), (2, 100), (1, 100), (0, 0))]
    cells = quiet(Cells.collect(["t"], [Sample({"t": "a"}, 5, 100)], before), DEFAULT)
    assert cells.windows == 3
    assert cells.before == Counts(3, 300)


def test_of_two_windows_nobody_knows_which_one_burned() -> None:
    before = [[Sample({"t": "a"}, 1, 100)], [Sample({"t": "a"}, 50, 100)]]
    assert quiet(Cells.collect(["t"], [Sample({"t": "a"}, 5, 100)], before), DEFAULT).windows == 2


def test_a_cell_is_expected_to_be_as_it_was_and_a_new_one_as_the_whole() -> None:
    now = [Sample({"t": "old"}, 0, 1000), Sample({"t": "new"}, 0, 100)]
    before = [[Sample({"t": "old"}, 20, 1000)]]
    expected = usual(Cells.collect(["t"], now, before), DEFAULT)
    # new: 2 bad events of 2 / .02 = 100 are its whole history; old: (20 + 2) / (1000 + 100)
    assert expected.expected == pytest.approx((2.0, 20.0))
    assert expected.shape == DEFAULT.one_window


def test_the_shape_is_that_of_the_windows() -> None:
    steady = [[Sample({"t": str(at)}, 20, 1000) for at in range(30)] for _ in range(5)]
    wild = [[Sample({"t": str(at)}, (20, 2, 60, 5, 13)[(at + one) % 5], 1000) for at in range(30)] for one in range(5)]
    now = [Sample({"t": "0"}, 1, 10)]
    assert usual(Cells.collect(["t"], now, steady), DEFAULT).shape == max(DEFAULT.shapes)
    assert usual(Cells.collect(["t"], now, wild), DEFAULT).shape <= 2


@settings(deadline=None)
@given(st.integers(0, 40), st.floats(0.1, 30), st.floats(0.5, 50))
def test_the_probabilities_are_those_of_the_negative_binomial(count: int, mean: float, shape: float) -> None:
    # P(k + 1) / P(k) = (k + r) / (k + 1) * m / (r + m); the term that is left out here is 1 / k!
    ratio = log_probability(count + 1, mean, shape) - log_probability(count, mean, shape)
    assert ratio == pytest.approx(math.log((count + shape) * mean / (shape + mean)), abs=1e-6)


def test_an_id_that_no_slice_can_have_is_left_out() -> None:
    now = [Sample({"tool": "a", "id": str(at)}, at < 6, 1) for at in range(20)]
    cells = narrowed(Cells.collect(["id", "tool"], now, [now]), 5)
    assert cells == Cells(("tool",), (Cell(("a",), Counts(6, 20), (Counts(6, 20),)),), 1)


def test_rare_values_are_put_together_where_there_are_many_rows() -> None:
    now = [Sample({"user": "loud", "tool": "a"}, 7, 9)]
    now += [Sample({"user": str(at), "tool": "a"}, 1, 1) for at in range(30)]
    cells = Cells.collect(["user", "tool"], now, [])
    assert narrowed(cells, 5) == cells
    assert narrowed(cells, 5, many=10).rows == (
        Cell((REST, "a"), Counts(30, 30), ()),
        Cell(("loud", "a"), Counts(7, 9), ()),
    )


def test_of_very_many_labels_those_that_rose_are_searched() -> None:
    def window(bad: int) -> list[Sample]:
        others = {f"c{at:03}": str(at % 2) for at in range(100)}
        return [Sample({**others, "tool": tool}, bad if tool == "a" else 5, 100) for tool in ("a", "b")]

    cells = Cells.collect([f"c{at:03}" for at in range(100)] + ["tool"], window(60), [window(5)])
    found = narrowed(cells, 5)
    assert len(found.dimensions) == WIDE
    assert "tool" in found.dimensions
    assert found.now == cells.now
