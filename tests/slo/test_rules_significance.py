"""The compiled clause asks for exactly as many bad events as the arithmetic, with few comparisons."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_objectives import VALIDITY

from claudescope.signals.poisson import critical_count, critical_means
from claudescope.slo.burn import needed
from claudescope.slo.rules.significance import MOST, binding_means, needed_count, needed_expression, quantile_terms


@pytest.mark.parametrize(("factor", "comparisons"), [(14.4, 3), (6, 7), (3, 17)])
def test_how_many_comparisons_can_bind(factor, comparisons) -> None:
    means, goes_on = binding_means(1e-4, factor)
    assert (len(means), goes_on) == (comparisons, False)
    # from here on the tier's own condition is the stronger one: a long way on, by the arithmetic itself
    for k, mean in enumerate(critical_means(1e-4, 300)[comparisons:], comparisons + 2):
        assert k + 1 <= factor * mean
    last = comparisons + 1  # the count of the last comparison: without it too few would do
    assert last + 1 > factor * means[-1]


@given(st.floats(0.001, 1e6), st.sampled_from([1e-2, 1e-3, 1e-4, 1e-6]), st.sampled_from([1.0, 1.3, 3.0, 6.0, 14.4]))
def test_what_it_asks_is_the_critical_count_wherever_the_share_does_not_ask_more(events, alpha, factor) -> None:
    objective = replace(VALIDITY, alpha=alpha)
    exact = needed(events, objective)
    compiled = needed_count(events, objective, factor)
    mean = events * objective.budget
    if exact <= factor * mean:  # more than these are bad whenever the tier's condition holds
        assert compiled <= factor * mean + 1
    elif mean < critical_means(alpha, MOST + 1)[-1]:
        assert compiled == exact
    else:
        assert abs(compiled - exact) <= 1


@pytest.mark.parametrize("alpha", [1e-2, 1e-3, 1e-4, 1e-6])
def test_the_quantile_beyond_the_comparisons(alpha) -> None:
    z, c, d = quantile_terms(alpha)
    beside = 0
    means = [critical_means(alpha, MOST + 1)[-1] * 1.03**step for step in range(400)]
    for mean in means:
        count = math.ceil(mean + z * math.sqrt(mean) + c + d / math.sqrt(mean))
        exact = critical_count(mean, alpha)
        assert abs(count - exact) <= 1
        beside += count != exact
    assert beside / len(means) < (0.25 if alpha < 1e-5 else 0.05)


def test_the_expression_says_what_the_count_says() -> None:
    text = needed_expression("n", VALIDITY, 14.4)
    at = [float(value) for value in re.findall(r">=bool ([\d.]+)", text)]
    assert text.startswith("n * 0 + 2\n")
    assert at == pytest.approx([mean / 0.01 for mean in critical_means(1e-4, 5)], rel=1e-9)
    # P(X >= 2; m) = 1e-4 at m^2 / 2 = 1e-4 less a third of m, so near m = .0142: 1.42 events at a budget of 1 %
    assert at[0] == pytest.approx(1.4209, abs=1e-4)


def test_a_low_factor_goes_on_with_the_quantile() -> None:
    text = needed_expression("n", VALIDITY, 1)
    assert text.count(">=bool") == MOST - 1
    assert text.startswith("(ceil((0.01 * n) + 3.719016485 * sqrt(0.01 * n) + 2.638513937")


@pytest.mark.parametrize(
    ("alpha", "min_events", "begin"),
    [(0, 0, ""), (0, 7, "0 * n + 7"), (1e-4, 2, "n * 0 + 2"), (1e-4, 9, "clamp_min(\nn * 0 + 2")],
)
def test_a_fixed_minimum_adds_to_it(alpha, min_events, begin) -> None:
    objective = replace(VALIDITY, alpha=alpha, min_events=min_events)
    text = needed_expression("n", objective, 14.4)
    assert text.startswith(begin)
    assert bool(text) == bool(begin)
    assert needed_count(1, objective, 14.4) == needed(1, objective)
