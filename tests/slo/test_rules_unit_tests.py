"""The generated tests: what traffic they play, and what they expect of each tier. promtool runs them elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from rule_objectives import BY_NAME, EVERY, VALIDITY, objective

from claudescope.slo.objective import Indicator, Notice
from claudescope.slo.rules.scenario import Scenario, Stretch, scenarios, verdict
from claudescope.slo.rules.unit_tests import rule_test
from claudescope.slo.window import Window


def played(one) -> dict[str, dict]:
    made = rule_test(one, "a.rules.yml")
    found = yaml.safe_load(made.tests)
    assert (found["rule_files"], found["evaluation_interval"]) == (["a.rules.yml"], "30s")
    return {test["name"].partition(": ")[2]: test for test in found["tests"]}


def firing(test) -> dict[str, bool]:
    """Tier -> whether it is expected to fire, at the last look."""
    found = {}
    for expected in test["promql_expr_test"]:
        if "burnrate_tier" in expected["expr"]:
            found[expected["expr"].partition('burnrate_tier="')[2].partition('"')[0]] = bool(expected["exp_samples"])
    return found


def test_counts_of_a_window() -> None:
    scenario = Scenario("s", (Stretch(10, 6), Stretch(10, None), Stretch(10, 6, 3)), (30,))
    assert scenario.counts(30, 30) == (30, 120)
    assert scenario.counts(25, 10) == (15, 30)
    assert scenario.counts(5, 60) == (0, 30)


def test_every_objective_is_tested_with_every_traffic() -> None:
    assert list(played(VALIDITY)) == [
        "quiet",
        "twice the budget",
        "all events fail",
        "20 % fail",
        "a series of failures is born",
        "no traffic",
        "a gap",
        "one failure at one event an hour",
        "the data end",
    ]


def test_what_fires_is_what_the_arithmetic_says() -> None:
    found = played(VALIDITY)
    tiers = [tier.name for tier in VALIDITY.tiers]
    # a budget of 1 %: all fail is 100 times it, 20 % is 20 times, and only the last tier is for twice
    assert firing(found["all events fail"]) == dict.fromkeys(tiers, True)
    assert firing(found["20 % fail"]) == dict.fromkeys(tiers, True)
    assert firing(found["twice the budget"]) == dict.fromkeys(tiers[:3], False) | {tiers[3]: True}
    for quiet in ("quiet", "no traffic", "a gap", "one failure at one event an hour"):
        assert firing(found[quiet]) == dict.fromkeys(tiers, False), quiet


def test_what_is_near_a_threshold_is_not_tested() -> None:
    scenario = Scenario("s", (Stretch(60, 600, 600 * 0.144),), (60,))
    assert verdict(scenario, VALIDITY, VALIDITY.tiers[0], 60) is None
    over = Scenario("s", (Stretch(60, 600, 600 * 0.17),), (60,))
    assert verdict(over, VALIDITY, VALIDITY.tiers[0], 60) is True
    assert verdict(over, VALIDITY, VALIDITY.tiers[0], 3) is None  # it waits two minutes, and rates are not yet there


def test_one_failure_is_not_played_to_what_cannot_tell() -> None:
    for one in (BY_NAME["raw"], BY_NAME["errors"]):
        assert "one failure at one event an hour" not in played(one)


def test_a_large_budget_is_not_doubled() -> None:
    assert "twice the budget" not in [one.name for one in scenarios(objective("a", Indicator("errors"), 0.4))]


def test_a_severity_that_is_off_is_not_expected() -> None:
    off = replace(VALIDITY, page=Notice(disabled=True))
    assert set(firing(played(off)["all events fail"])) == {"ticket-fast", "ticket-slow"}


def test_absence_is_tested_where_it_is_told() -> None:
    end = played(VALIDITY)["the data end"]
    assert end["promql_expr_test"][-1]["eval_time"] == "30m"  # data until 10m, absent for 15m, and 5m more
    assert 'alertname="StepValidityAbsent"' in end["promql_expr_test"][-1]["expr"]
    assert (
        played(replace(VALIDITY, absent_after=Window(60)))["the data end"]["promql_expr_test"][-1]["eval_time"] == "20m"
    )
    assert "the data end" not in played(replace(VALIDITY, absent_after=None))


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_short_forms_and_plain_queries_are_played_as_they_are(one) -> None:
    made = rule_test(one, "a.rules.yml")
    short = isinstance(one.source, Indicator) and not one.source.native
    assert made.played == (short or one.name == "requests-availability")
    assert ("claudescope_slo_test_" in made.rules) == (not made.played)


def test_samples() -> None:
    born = played(VALIDITY)["a series of failures is born"]["input_series"]
    assert {series["series"]: series["values"] for series in born} == {
        'claudescope_steps_total{claudescope_step_valid="true", gen_ai_request_model="x", service_name="app"}': (
            "0 600+600x11 7200+0x30"
        ),
        'claudescope_steps_total{claudescope_step_valid="false", gen_ai_request_model="x", service_name="app"}': (
            "_ _x12 600+600x30"
        ),
    }
    gap = played(BY_NAME["latency-load"])["a gap"]["input_series"]
    assert gap[0]["values"] == "0 600+600x9 _x8 6600+600x11"
    assert [series["series"].partition("{")[2] for series in gap[1:]] == ['le="0.2"}', 'le="0.35"}']
