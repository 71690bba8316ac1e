"""The plan's evaluator against the real engine of Prometheus, on the compiled rules and the same counters."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from slo_past import run

from claudescope.slo.objective import BadAndTotal, Objective, Origin
from claudescope.slo.plan.evaluator import STEP, Evaluation
from claudescope.slo.plan.simulation import expected_delay
from claudescope.slo.plan.traffic import arrivals, counter, parse_traffic
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.tiers import DEFAULT_TIERS

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

OBJECTIVE = Objective(
    service="plan",
    name="real",
    target=0.99,
    source=BadAndTotal('sum(rate(events_total{good="false"}[{{.window}}]))', "sum(rate(events_total[{{.window}}]))"),
    tiers=DEFAULT_TIERS,
    origin=Origin("plan.yml", 1, "0" * 64),
)
TIER = "sum by (alertstate) (ALERTS{burnrate_tier='%s'})"


def drawn(rate: str, seed: int, shares: list[tuple[int, float]]) -> tuple[list[float | None], list[float | None]]:
    """Counters of bad and good events; ``shares`` of failures, each for so many steps."""
    chance, mean = random.Random(seed), parse_traffic(rate).events(STEP)
    bad, good = [], []
    for steps, share in shares:
        bad += arrivals(chance, mean * share, steps)
        good += arrivals(chance, mean * (1 - share), steps)
    return counter(bad), counter(good)


def states(objective, evaluation) -> dict[str, list[str]]:
    """By tier, what its alert is at each evaluation: ``""``, ``pending`` or ``firing``."""
    found = {}
    for tier in objective.tiers:
        now = [""] * evaluation.length
        for alert in evaluation.alerts(objective, tier):
            end = evaluation.length if alert.resolved is None else alert.resolved
            fired = end if alert.fired is None else alert.fired
            now[alert.pending : fired] = ["pending"] * (fired - alert.pending)
            now[fired:end] = ["firing"] * (end - fired)
        found[tier.name] = now
    return found


def agree(programs, folder, objective, bad, good) -> dict[str, list[str]]:
    """Has promtool say, on its engine and the compiled rules, how often each alert was pending and firing in all, and
    what it was on both sides of every change; gives what ours says, which must be the same. (A share that is exactly on
    the bound, such as 20 of 333 1/3, falls to the side that rounding takes it to: no seed here has one.)
    """
    rules = compiled([objective])
    # the sums of the period are of no interest here and cost most of the time
    rules = replace(rules, groups=tuple(group for group in rules.groups if not group.name.endswith("-period")))
    (folder / "rules.yml").write_text(text_of(rules), "utf-8")
    lines = ["rule_files: [rules.yml]", "evaluation_interval: 30s", "tests:", "- interval: 30s", "  input_series:"]
    for number, (verdict, samples) in enumerate([*(("false", one) for one in bad), *(("true", one) for one in good)]):
        values = " ".join("_" if value is None else f"{value:.10g}" for value in samples)
        lines.append(f"  - {{series: 'events_total{{good=\"{verdict}\",instance=\"{number}\"}}', values: '{values}'}}")
    lines.append("  promql_expr_test:")
    found = states(objective, Evaluation(bad, good))
    for name, now in found.items():
        for at in sorted({one for two in range(1, len(now)) if now[two] != now[two - 1] for one in (two - 1, two)}):
            expected = f"[{{labels: '{{alertstate=\"{now[at]}\"}}', value: 1}}]" if now[at] else "[]"
            lines.append(f'  - {{expr: "{TIER % name}", eval_time: {at * STEP}s, exp_samples: {expected}}}')
        for state in ("pending", "firing"):
            many, last = now.count(state), (len(now) - 1) * STEP
            every = f"sum(count_over_time(ALERTS{{burnrate_tier='{name}',alertstate='{state}'}}[{last + STEP}s]))"
            expected = f"[{{labels: '{{}}', value: {many}}}]" if many else "[]"
            lines.append(f'  - {{expr: "{every}", eval_time: {last}s, exp_samples: {expected}}}')
    (folder / "test.yml").write_text("\n".join(lines) + "\n", "utf-8")
    run(programs / "promtool", "test", "rules", folder / "test.yml")
    return found


@pytest.mark.parametrize(
    ("rate", "seed", "shares"),
    [
        ("1/h", 1, [(720, 0.01), (1800, 0.6), (360, 0.0)]),
        ("10/h", 2, [(480, 0.01), (480, 0.5), (900, 0.02), (300, 0.3), (300, 0.0)]),
        ("36/h", 3, [(960, 0.012), (240, 0.3), (720, 0.01), (480, 0.09)]),
        ("1/min", 14, [(400, 0.0), (200, 1.0), (900, 0.0), (600, 0.12)]),
        ("1/s", 5, [(960, 0.01), (120, 0.5), (400, 0.01), (480, 0.08)]),
        ("10/s", 6, [(300, 0.009), (300, 0.2), (1200, 0.02)]),
    ],
)
def test_alerts_fire_and_end_at_the_same_evaluations(programs, tmp_path, rate, seed, shares) -> None:
    bad, good = drawn(rate, seed, shares)
    found = agree(programs, tmp_path, OBJECTIVE, [bad], [good])
    assert "firing" in {state for now in found.values() for state in now}  # else it would show nothing


def test_with_gaps_a_late_first_event_and_resets(programs, tmp_path) -> None:
    bad, good = drawn("36/h", 7, [(300, 0.01), (300, 0.4), (400, 0.01), (200, 0.3), (300, 0.0)])
    first = next(at for at, value in enumerate(bad) if value)
    bad = [None if at < first else value for at, value in enumerate(bad)]  # the counter is born with its first event
    for at in (*range(350, 353), *range(420, 436), *range(1080, 1130)):  # a scrape or two, and longer than 5 minutes
        bad[at] = good[at] = None
    lost_bad, lost_good = bad[500], good[500]
    for at in range(501, len(bad)):  # the process starts anew
        bad[at] = None if bad[at] is None else bad[at] - lost_bad
        good[at] = None if good[at] is None else good[at] - lost_good
    second = drawn("10/h", 8, [(600, 0.0), (300, 0.5), (600, 0.02)])  # and another one beside it
    found = agree(programs, tmp_path, OBJECTIVE, [bad, second[0]], [good, second[1]])
    assert "firing" in found["page-fast"]
    assert "firing" in found["page-slow"]


def test_waiting_and_a_fixed_minimum(programs, tmp_path) -> None:
    tiers = tuple(replace(tier, wait=type(tier.wait)(120)) for tier in DEFAULT_TIERS)
    objective = replace(OBJECTIVE, tiers=tiers, min_events=7)
    bad, good = drawn("1/min", 9, [(300, 0.01), (200, 0.3), (500, 0.05), (40, 0.9), (300, 0.01)])
    found = agree(programs, tmp_path, objective, [bad], [good])
    assert "pending" in found["page-fast"]


@pytest.mark.parametrize(("share", "name"), [(0.2, "page-fast"), (0.2, "page-slow"), (0.02, "ticket-slow")])
def test_the_plan_says_when(programs, tmp_path, share, name) -> None:
    """20 % failures page and 2 % give a ticket, at 10 events a second, when the plan says."""
    tier = next(one for one in OBJECTIVE.tiers if one.name == name)
    traffic = parse_traffic("10/s")
    said = expected_delay(OBJECTIVE, tier, traffic, share)
    history = tier.long.seconds // STEP
    steps = said // STEP + 20
    bad = counter([0.0] * history + [300 * share] * steps)
    good = counter([300.0] * history + [300 * (1 - share)] * steps)
    found = agree(programs, tmp_path, OBJECTIVE, [bad], [good])
    assert found[name].index("firing") - history == pytest.approx(said / STEP, abs=1)
