"""Tails, intervals and scores against definitions that are written another way: exact fractions and decimals."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudescope.signals import binomial, intervals, poisson, proportions, robust

getcontext().prec = 60


def exact_poisson(count: int, mean: float) -> Decimal:
    """P(X >= count), from the terms below it."""
    mean_, term, below = Decimal(mean), (-Decimal(mean)).exp(), Decimal(0)
    for at in range(count):
        below += term
        term = term * mean_ / (at + 1)
    return 1 - below


def exact_binomial(count: int, trials: int, share: Fraction) -> Fraction:
    return sum(
        (math.comb(trials, at) * share**at * (1 - share) ** (trials - at) for at in range(max(0, count), trials + 1)),
        Fraction(0),
    )


@given(st.integers(0, 60), st.floats(1e-4, 50))
def test_poisson_tail(count, mean) -> None:
    assert poisson.tail(count, mean) == pytest.approx(float(exact_poisson(count, mean)), rel=1e-10, abs=1e-15)


@given(st.integers(-1, 45), st.integers(0, 40), st.fractions(0, 1, max_denominator=50))
def test_binomial_tail(count, trials, share) -> None:
    exact = float(exact_binomial(count, trials, share)) if count > 0 else 1.0
    assert binomial.tail(count, trials, float(share)) == pytest.approx(exact, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("trials", "share"), [(-1, 0.5), (3, 1.5), (3, -0.1)])
def test_binomial_refuses_what_is_none(trials, share) -> None:
    with pytest.raises(ValueError, match="binomial"):
        binomial.tail(1, trials, share)


@given(st.integers(0, 60))
def test_poisson_interval_is_where_the_tails_are_a_fortieth(count) -> None:
    low, high = intervals.poisson_interval(count)
    if count:
        assert float(exact_poisson(count, low)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0
    assert 1 - float(exact_poisson(count + 1, high)) == pytest.approx(0.025, rel=1e-6)


def test_poisson_interval_of_none_and_of_ten() -> None:
    # Garwood's table: 0 events: 0 to -ln(.025) = 3.6889; 10 events: 4.7954 to 18.3904
    assert intervals.poisson_interval(0) == pytest.approx((0, 3.688879), abs=1e-6)
    assert intervals.poisson_interval(10) == pytest.approx((4.795389, 18.390356), abs=1e-5)


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_bounds_are_the_roots_of_its_equation(count, trials) -> None:
    count = min(count, trials)
    low, high = intervals.wilson(count, trials)
    z = NormalDist().inv_cdf(0.975)
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(count / trials - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / trials), rel=1e-6)
    assert 0 <= low <= count / trials <= high <= 1


@pytest.mark.parametrize(("count", "trials"), [(0, 0), (3, 2), (-1, 5)])
def test_intervals_refuse_what_is_no_share(count, trials) -> None:
    with pytest.raises(ValueError, match="needs trials"):
        intervals.wilson(count, trials)


def test_intervals_refuse_negative_counts_and_nothing() -> None:
    with pytest.raises(ValueError, match="not negative"):
        intervals.poisson_interval(-1)
    with pytest.raises(ValueError, match="of nothing"):
        intervals.median_interval([])
    with pytest.raises(ValueError, match="of nothing"):
        robust.mad([])


@given(st.integers(1, 200))
def test_median_interval_leaves_out_as_many_as_chance_allows(size) -> None:
    values = [float(at) for at in range(size)]
    low, high = intervals.median_interval(values)
    left_out = int(low)
    assert high == size - 1 - left_out
    if left_out:  # the median is below them all with at most 2.5 %
        assert float(1 - exact_binomial(left_out, size, Fraction(1, 2))) <= 0.025
    if left_out + 1 <= (size - 1) // 2:
        assert float(1 - exact_binomial(left_out + 1, size, Fraction(1, 2))) > 0.025


@given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_two_proportions(total, other_total, bad, other_bad) -> None:
    bad, other_bad = min(bad, total), min(other_bad, other_total)
    found = proportions.z_score(bad, total, other_bad, other_total)
    pooled = Fraction(bad + other_bad, total + other_total)
    square = pooled * (1 - pooled) * (Fraction(1, total) + Fraction(1, other_total))
    difference = Fraction(bad, total) - Fraction(other_bad, other_total)
    expected = float(difference) / math.sqrt(square) if square else 0.0
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert proportions.z_score(other_bad, other_total, bad, total) == pytest.approx(-found, abs=1e-12)


def test_two_proportions_by_hand() -> None:
    # 30 of 200 against 10 of 200: .10 / sqrt(.1 * .9 * .01) = 3.3333
    assert proportions.z_score(30, 200, 10, 200) == pytest.approx(10 / 3)
    assert proportions.z_score(1, 0, 1, 5) == 0


def test_robust_z_by_hand() -> None:
    # the median of 1..5 is 3, the deviations 2 1 0 1 2 have the median 1: 1.4826
    assert robust.mad([1, 2, 3, 4, 5]) == pytest.approx(1.482602218505602)
    assert robust.z_score(9, [1, 2, 3, 4, 500]) == pytest.approx(6 / 1.482602218505602)
    assert robust.z_score(5, [3, 3, 3]) == math.inf
    assert robust.z_score(1, [3, 3, 3]) == -math.inf
    assert robust.z_score(3, [3, 3, 3]) == 0
    assert robust.z_score(5, [3, 3, 3], least=0.5) == 4
