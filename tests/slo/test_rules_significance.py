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
from claudescope.slo.burn import Counts, alpha_of, critical_means_of, evidence_windows, fires, needed
from claudescope.slo.rules.indicator import windows
from claudescope.slo.rules.significance import (
    MOST,
    TOLERANCE,
    binding_means,
    needed_count,
    needed_expression,
    quantile_terms,
)
from claudescope.slo.tiers import DEFAULT_TIERS, capped
from claudescope.slo.window import Window

HOUR = Window(3600)


@pytest.mark.parametrize(("factor", "comparisons"), [(14.4, 4), (6, 8), (3, 19)])
def test_how_many_comparisons_can_bind(factor, comparisons) -> None:
    means, goes_on = binding_means(1e-4, HOUR, factor)
    assert (len(means), goes_on) == (comparisons, False)
    # no window needs more than at the least alpha; from the end on the tier's own condition asks for more, a long way
    least = critical_means(alpha_of(1e-4, HOUR, math.inf), 300)
    end = next(mean for k, mean in enumerate(least, 2) if k + 1 <= factor * mean)
    assert means[-1] < end
    assert all(k + 1 <= factor * mean for k, mean in enumerate(least, 2) if mean >= end)
    assert critical_means_of(1e-4, HOUR, 300)[comparisons] >= end


def compiled_fires(objective, tier, counts) -> tuple[bool, bool]:
    """What the compiled alert does with whole counts, and whether a count of it is one beside the exact one."""
    bound = tier.factor * objective.budget
    ratios = all(
        counts[str(window)].total and counts[str(window)].bad / counts[str(window)].total > bound
        for window in (tier.short, tier.long)
    )
    enough, beside = [], False
    for window in evidence_windows(objective, tier):
        bad, total = counts[str(window)]
        factor = min(each.factor for each in objective.tiers if window in evidence_windows(objective, each))
        least = needed_count(total, objective, window, factor)
        enough.append(total > 0 and bad + TOLERANCE >= least)
        _, goes_on = binding_means(objective.alpha, window, factor)
        beside |= goes_on and abs(least - needed(total, objective, window)) == 1
    return ratios and any(enough), beside


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 1)), min_size=7, max_size=7),
    st.sampled_from([1e-3, 1e-4]),
    st.sampled_from([0.9, 0.99, 0.999]),
    st.sampled_from([0, 12]),
)
def test_the_compiled_alerts_fire_when_the_arithmetic_does(parts, alpha, target, min_events) -> None:
    tiers = tuple(capped(tier, target) for tier in DEFAULT_TIERS)
    objective = replace(VALIDITY, alpha=alpha, target=target, tiers=tiers, min_events=min_events)
    counts, bad, total = {}, 0, 0
    for window, (events, share) in zip(windows(objective), parts, strict=True):
        bad, total = bad + round(events * share**4), total + events
        counts[str(window)] = Counts(bad, total)
    for tier in objective.tiers:
        found, beside = compiled_fires(objective, tier, counts)
        assert found == fires(objective, tier, counts) or beside


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
    text = needed_expression("n", VALIDITY, HOUR, 14.4)
    at = [float(value) for value in re.findall(r">=bool ([\d.]+)", text)]
    assert text.startswith("n * 0 + 2\n")
    assert at == pytest.approx([mean / 0.01 for mean in critical_means_of(1e-4, HOUR, 6)], rel=1e-9)
    # P(X >= 2; m) = 1e-4 / 24 / m near m^3 / 2 = 1e-4 / 24, so near m = .0203: two events an hour at a budget of 1 %
    assert at[0] == pytest.approx(2.0366, abs=1e-4)


def test_a_low_factor_goes_on_with_the_quantile() -> None:
    text = needed_expression("n", VALIDITY, HOUR, 1)
    assert text.count(">=bool") == MOST - 1
    assert text.startswith("(ceil((0.01 * n) + 3.9878")


@pytest.mark.parametrize(
    ("alpha", "min_events", "begin"),
    [(0, 0, ""), (0, 7, "0 * n + 7"), (1e-4, 2, "n * 0 + 2"), (1e-4, 9, "clamp_min(\nn * 0 + 2")],
)
def test_a_fixed_minimum_adds_to_it(alpha, min_events, begin) -> None:
    objective = replace(VALIDITY, alpha=alpha, min_events=min_events)
    text = needed_expression("n", objective, HOUR, 14.4)
    assert text.startswith(begin)
    assert bool(text) == bool(begin)
    assert needed_count(1, objective, HOUR, 14.4) == needed(1, objective)


def test_five_minutes_are_counted_by_their_rate() -> None:
    per_second = needed_expression("r", VALIDITY, Window(300), 14.4, 300)
    events = needed_expression("r", VALIDITY, Window(300), 14.4)
    rates, counts = ([float(value) for value in re.findall(r">=bool ([\d.]+)", text)] for text in (per_second, events))
    assert [rate * 300 for rate in rates] == pytest.approx(counts, rel=1e-8)
    assert counts[0] == pytest.approx(critical_means_of(1e-4, Window(300), 3)[0] / 0.01, rel=1e-8)
