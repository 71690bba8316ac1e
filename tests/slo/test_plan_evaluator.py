"""The evaluator against definitions written out: rates, alerts, and the shared arithmetic at each evaluation."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.signals.poisson import critical_count, tail
from claudescope.slo.burn import Counts, alpha_of, critical_means_of, evidence_windows, fires, needed
from claudescope.slo.objective import BadAndTotal, Objective, Origin
from claudescope.slo.plan.alerts import Alert, alerts, episodes
from claudescope.slo.plan.counter import rates
from claudescope.slo.plan.evaluator import Evaluation
from claudescope.slo.tiers import DEFAULT_TIERS
from claudescope.slo.window import Window

OBJECTIVE = Objective("a", "b", 0.99, BadAndTotal("bad", "total"), DEFAULT_TIERS, Origin("a.yml", 1, "0" * 64))


def rate(samples, at, seconds, step) -> float:
    """As Prometheus describes it: the samples after ``at - seconds``, extrapolated."""
    now = at * step
    inside = [(i * step, v) for i, v in enumerate(samples[: at + 1]) if v is not None and i * step > now - seconds]
    if len(inside) < 2:
        return 0.0
    increase = 0.0
    for (_, before), (_, after) in pairwise(inside):
        increase += after - before if after >= before else after
    span = inside[-1][0] - inside[0][0]
    apart = span / (len(inside) - 1)
    start, end = inside[0][0] - (now - seconds), now - inside[-1][0]
    start = start if start < 1.1 * apart else apart / 2
    end = end if end < 1.1 * apart else apart / 2
    if increase > 0:
        start = min(start, span * inside[0][1] / increase)
    return increase * (span + start + end) / span / seconds


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=60),
    st.sampled_from([60, 90, 300, 900]),
    st.booleans(),
)
def test_rates_are_those_of_the_definition(steps, seconds, whole) -> None:
    samples, value = [], 0.0
    for gain in steps:
        if gain == 5:
            value = 0.0 if not whole else value + 5  # a reset
        elif gain is not None:
            value += gain
        samples.append(None if gain is None and not whole else value)
    found = rates(samples, seconds, 30)
    assert found == pytest.approx([rate(samples, at, seconds, 30) for at in range(len(samples))], rel=1e-12, abs=1e-15)


def test_a_steady_counter_is_exact_and_a_new_one_begins_at_nothing() -> None:
    # 3 events in each 30 s: .1 a second, once the window is full and its first sample is not 0
    found = rates([3.0 * at for at in range(40)], 300, 30)
    assert found[0] == 0
    assert found[9] == pytest.approx(0.1 * 270 / 300)  # from 0 at its first sample: nothing before
    assert found[10:] == pytest.approx([0.1] * 30)


def test_counters_without_samples_and_windows_without_room() -> None:
    assert rates([None, None], 300, 30) == [0.0, 0.0]
    assert rates([], 300, 30) == []
    with pytest.raises(ValueError, match="fewer than two"):
        rates([1.0], 30, 30)


def machine(true, evaluations, wait, keep) -> list[Alert]:
    """Prometheus's own steps, one evaluation after the other."""
    found, state, since, fired, false_since = [], "inactive", 0, None, None
    for at in range(evaluations):
        if at in true:
            if state == "inactive":
                state, since, fired = "pending", at, None
            false_since = None
        elif state == "pending":
            found.append(Alert(since, None, at))
            state = "inactive"
        elif state == "firing":
            false_since = at if false_since is None else false_since
            if at - false_since >= keep:
                found.append(Alert(since, fired, at))
                state, false_since = "inactive", None
        if state == "pending" and at - since >= wait:
            state, fired = "firing", at
    if state != "inactive":
        found.append(Alert(since, fired, None))
    return found


@given(st.sets(st.integers(0, 59)), st.integers(0, 5), st.integers(0, 5))
def test_alerts_are_those_of_the_machine(true, wait, keep) -> None:
    assert alerts(sorted(true), 60, wait, keep) == machine(true, 60, wait, keep)


def test_episodes_join_what_overlaps() -> None:
    one = [Alert(0, 1, 5), Alert(8, None, 9), Alert(20, 20, None)]
    other = [Alert(4, 5, 7), Alert(12, 12, 14)]
    assert episodes([one, other], 30) == [(1, 7), (12, 14), (20, 30)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.5, 6.0]), st.sampled_from([1e-4, 0.0]), st.integers(0, 4))
def test_the_tiers_are_judged_by_the_shared_arithmetic(seed, mean, alpha, least) -> None:
    chance = random.Random(seed)
    objective = replace(OBJECTIVE, alpha=alpha, min_events=least)
    bad, good = [0.0], [0.0]
    for at in range(900):
        share = 0.4 if 300 <= at < 500 else 0.01
        events = sum(chance.random() < mean / 8 for _ in range(8))
        failed = sum(chance.random() < share for _ in range(events))
        bad.append(bad[-1] + failed)
        good.append(good[-1] + events - failed)
    evaluation = Evaluation([bad], [good])
    five = [(rate(bad, at, 300, 30), rate(bad, at, 300, 30) + rate(good, at, 300, 30)) for at in range(901)]
    for tier in objective.tiers:
        found = set(evaluation.true(objective, tier))
        windows = {*evidence_windows(objective, tier), tier.short, tier.long}
        for at in range(0, 901, 7):
            counts = {}
            for window in windows:
                if window.seconds <= 3600:
                    bads, goods = (rate(one, at, window.seconds, 30) * window.seconds for one in (bad, good))
                    counts[str(window)] = Counts(bads, bads + goods)
                else:
                    inside = five[max(0, at + 1 - window.seconds // 30) : at + 1]
                    counts[str(window)] = Counts(30 * sum(b for b, _ in inside), 30 * sum(t for _, t in inside))
            bound = tier.factor * objective.budget
            near = any(abs(counts[str(w)].bad - bound * counts[str(w)].total) < 1e-6 for w in (tier.short, tier.long))
            assert near or (at in found) == fires(objective, tier, counts)


def test_several_counters_are_added_up() -> None:
    one, other = [float(at) for at in range(50)], [2.0 * at for at in range(50)]
    bad, total = Evaluation([one, other], [one]).counts(300)
    assert bad[20] == pytest.approx(30)  # 3 in each of ten steps
    assert total[20] == pytest.approx(40)


def test_evidence_windows_lie_between_short_and_long() -> None:
    found = {tier.name: [str(window) for window in evidence_windows(OBJECTIVE, tier)] for tier in OBJECTIVE.tiers}
    assert found == {
        "page-fast": ["5m", "30m", "1h"],
        "page-slow": ["30m", "1h", "2h", "6h"],
        "ticket-fast": ["2h", "6h", "1d"],
        "ticket-slow": ["6h", "1d", "3d"],
    }


def test_alpha_is_shared_by_the_bad_events_of_a_day() -> None:
    hour = Window(3600)
    assert alpha_of(1e-4, hour, 1 / 24) == pytest.approx(1e-4)  # one a day
    assert alpha_of(1e-4, hour, 2 / 24) == pytest.approx(5e-5)
    assert alpha_of(1e-4, hour, 100) == pytest.approx(1e-4 / 3)
    assert alpha_of(1e-4, hour, 1e-9) == alpha_of(1e-4, hour, 0) == 1e-3


@given(st.floats(0.01, 1e5), st.sampled_from([300, 3600, 21_600, 259_200]))
def test_needed_is_the_first_count_that_is_no_chance(events, seconds) -> None:
    window = Window(seconds)
    count, mean = needed(events, OBJECTIVE, window), events * OBJECTIVE.budget
    alpha = alpha_of(OBJECTIVE.alpha, window, mean)
    assert count == critical_count(mean, alpha)
    assert tail(count, mean) < alpha
    assert count == 2 or tail(count - 1, mean) >= alpha


@given(st.sampled_from([300, 3600, 21_600, 259_200]), st.floats(0, 5))
def test_needed_is_two_and_one_more_for_each_critical_mean(seconds, mean) -> None:
    window = Window(seconds)
    means = critical_means_of(OBJECTIVE.alpha, window, 25)
    assert means == sorted(means)
    if all(abs(mean - each) > 1e-6 for each in means):
        assert needed(mean / OBJECTIVE.budget, OBJECTIVE, window) == 2 + sum(mean >= each for each in means)


def test_one_failure_never_fires() -> None:
    """Even the only event there is, in a process that lives for two scrapes."""
    for target in (0.9, 0.99, 0.9999):
        objective = replace(OBJECTIVE, target=target)
        for samples in (
            [None] * 10 + [0.0, 1.0] + [None] * 200,
            [0.0] * 10 + [1.0] * 300,
            [7.0] * 40 + [8.0] + [None] * 200,
        ):
            good = [None if value is None else 0.0 for value in samples]
            evaluation = Evaluation([samples], [good])
            fired = [alert.fired for tier in objective.tiers for alert in evaluation.alerts(objective, tier)]
            assert set(fired) <= {None}
