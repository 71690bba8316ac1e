"""The generated rules under the real promtool, the new one and the old one: accepted, proved, and in time."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from slo_past import old_promtool, promtool_test, run
from stack_native import COLLECTOR

from rule_objectives import BY_NAME, EVERY, VALIDITY  # isort: skip

from claudescope.slo.burn import Counts, fires
from claudescope.slo.objective import Indicator, Tier
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.dialect import PROMETHEUS_2_42
from claudescope.slo.rules.indicator import windows
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.rules.scenario import Scenario, Stretch
from claudescope.slo.rules.unit_tests import rule_test
from claudescope.slo.spec.load import load

pytestmark = pytest.mark.stack


OLD = [one for one in EVERY if not (isinstance(one.source, Indicator) and one.source.native)]


STEPS = 'claudescope_steps_total{claudescope_step_valid="%s",gen_ai_request_model="m",service_name="app"}'


def test_both_promtools_accept_all_of_it(programs, tmp_path) -> None:
    new = tmp_path / "new.yml"
    new.write_text(text_of(compiled(EVERY)), "utf-8")
    print(run(programs / "promtool", "check", "rules", "--lint=all", "--lint-fatal", new))
    old = tmp_path / "old.yml"
    old.write_text(text_of(compiled(OLD, PROMETHEUS_2_42), prometheus="2.42"), "utf-8")
    print(run(old_promtool(), "check", "rules", "--lint=all", "--lint-fatal", old))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_the_generated_tests_pass(programs, tmp_path, one) -> None:
    made = rule_test(one, "a.rules.yml")
    (tmp_path / "a.rules.yml").write_text(made.rules, "utf-8")
    (tmp_path / "a.test.yml").write_text(made.tests, "utf-8")
    run(programs / "promtool", "test", "rules", tmp_path / "a.test.yml")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["step-validity", "latency-load", "requests-availability", "confidence"])
def test_the_generated_tests_pass_on_the_old_one(tmp_path, name) -> None:
    made = rule_test(BY_NAME[name], "a.rules.yml")
    (tmp_path / "a.rules.yml").write_text(made.rules, "utf-8")
    (tmp_path / "a.test.yml").write_text(made.tests, "utf-8")
    run(old_promtool(), "test", "rules", tmp_path / "a.test.yml")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_generated_tests_find_rules_that_are_wrong(programs, tmp_path) -> None:
    made = rule_test(VALIDITY, "a.rules.yml")
    for right, wrong in (
        ("> 0.144", "> 1.44"),
        ("+ 0.2 >=", "+ 0.2 <"),
        ("or\n          0 *", "or\n          1 *"),
    ):
        assert right in made.rules
        broken = made.rules.replace(right, wrong)
        (tmp_path / "a.rules.yml").write_text(broken, "utf-8")
        (tmp_path / "a.test.yml").write_text(made.tests, "utf-8")
        with pytest.raises(AssertionError, match="FAILED"):
            run(programs / "promtool", "test", "rules", tmp_path / "a.test.yml")


@pytest.mark.parametrize("version", ["3", "2.42"])
def test_links_hold_whatever_a_label_holds(programs, tmp_path, version) -> None:
    one = replace(VALIDITY, group_by=("service_name",), tiers=VALIDITY.tiers[:1], absent_after=None)
    series = 'claudescope_steps_total{claudescope_step_valid="false",service_name="%s"}'
    named = replace(one, source=Indicator("step_validity"))
    test = {
        "interval": "1m",
        "input_series": [{"series": series % "a b&c", "values": "0+60x30"}],
        "alert_rule_test": [
            {
                "eval_time": "20m",
                "alertname": "StepValidityBudgetBurn",
                "exp_alerts": [
                    {
                        "exp_labels": {
                            "severity": "page",
                            "burnrate_tier": "page-fast",
                            "long": "1h",
                            "short": "5m",
                            "service_name": "a b&c",
                            "claudescope_slo": "app-step-validity",
                            "claudescope_slo_name": "step-validity",
                            "claudescope_slo_service": "app",
                        },
                        "exp_annotations": {
                            "summary": "app: step-validity uses up its error budget for a b&c",
                            "description": "100% of the events of the last 1h are bad, and 1 % may be. This alert is"
                            " for 14.4 times as much, over 1h and over 5m.",
                            "dashboard": "http://localhost:3000/d/claudescope-slo?var-slo=app-step-validity",
                            "trace": "http://localhost:16686/search?service=a+b%26c&lookback=1h"
                            "&tags=%7B%22claudescope.step.valid%22%3A%22false%22%7D",
                            "explanation": "http://localhost:9096/explain?slo=app-step-validity&window=1h"
                            "&service_name=a+b%26c",
                            "objective": "Steps are {{valid}}.",
                        },
                    }
                ],
            }
        ],
    }
    (tmp_path / "r.yml").write_text(text_of(compiled([named])), "utf-8")
    tests = {"rule_files": ["r.yml"], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "t.yml").write_text(json.dumps(tests), "utf-8")
    run(programs / "promtool" if version == "3" else old_promtool(), "test", "rules", tmp_path / "t.yml")


def test_promtool_accepts_every_specification_that_the_reader_does(programs, tmp_path) -> None:
    specs = sorted((Path(__file__).parents[1] / "slo" / "good").glob("*.yml"))
    for spec in specs:
        file = tmp_path / spec.name
        file.write_text(text_of(compiled(load([spec]))), "utf-8")
        run(programs / "promtool", "check", "rules", "--lint=all", "--lint-fatal", file)
    assert len(specs) > 5


def first_firing(programs, folder, one, stretches, minutes: list[float], matcher: str) -> float | None:
    """The first of ``minutes`` at which an alert with ``matcher`` fires: promtool is to see none, and says where."""
    expr = f'count(ALERTS{{alertstate="firing", {matcher}}})'
    checks = [{"expr": expr, "eval_time": _promtools(minute), "exp_samples": []} for minute in minutes]
    good = " ".join(_counter(stretches, lambda stretch: stretch.total - stretch.bad))
    bad = " ".join(_counter(stretches, lambda stretch: stretch.bad))
    given = [{"series": STEPS % "true", "values": good}, {"series": STEPS % "false", "values": bad}]
    test = {"interval": "1m", "input_series": given, "promql_expr_test": checks}
    try:
        promtool_test(programs, folder, text_of(compiled([one])), {"evaluation_interval": "30s", "tests": [test]})
    except AssertionError as failed:
        return next(minute for minute in minutes if f"time: {_promtools(minute)}," in str(failed))
    return None


def _counter(stretches, step):
    value = 0.0
    yield "0"
    for stretch in stretches:
        yield f"{value + step(stretch):g}+{step(stretch):g}x{stretch.minutes - 1}"
        value += step(stretch) * stretch.minutes


def by_arithmetic(scenario: Scenario, tier: Tier) -> float:
    """The minute at which the tier's condition has held as long as it wants, by exact counts."""
    for half in range(2 * sum(stretch.minutes for stretch in scenario.stretches)):
        counts = {str(window): Counts(*scenario.counts(half / 2, window.seconds / 60)) for window in windows(VALIDITY)}
        if fires(VALIDITY, tier, counts):
            return half / 2 + tier.wait.seconds / 60
    raise AssertionError("never")


def _promtools(minute: float) -> str:
    """A duration as promtool prints it: 1h43m30s, 1h30m, 45m."""
    hours, rest = divmod(round(minute * 60), 3600)
    minutes, seconds = divmod(rest, 60)
    return "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if n)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_at_20_percent_comes_when_the_arithmetic_says(programs, tmp_path) -> None:
    """Target 99 %, 10 events a second, an hour and a half without a failure, then 20 %: the hour's share is over 14.4 %
    after 14.4 / 20 of it, 43.2 minutes.
    """
    tier, scenario = VALIDITY.tiers[0], Scenario("", (Stretch(90, 600), Stretch(70, 600, 120)), ())
    expected = by_arithmetic(scenario, tier)
    assert expected == 134.5  # the first half minute after 90 + 43.2, and the minute that pages wait
    minutes = [expected - 20 + step / 2 for step in range(60)]
    found = first_firing(programs, tmp_path, VALIDITY, scenario.stretches, minutes, 'burnrate_tier="page-fast"')
    print(f"page at minute {found}, expected {expected}")
    assert found is not None
    assert abs(found - expected) <= 0.5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_ticket_at_2_percent_comes_when_the_arithmetic_says(programs, tmp_path) -> None:
    """Two hours without a failure, then 2 %: no page, and a ticket when the share of all that there is, here less than
    the three days, is over 1 % by more than chance. Its sums are 2 minutes late.
    """
    tier, scenario = VALIDITY.tiers[3], Scenario("", (Stretch(120, 600), Stretch(200, 600, 12)), ())
    expected = by_arithmetic(scenario, tier)
    minutes = [expected - 20 + step / 2 for step in range(60)]
    found = first_firing(programs, tmp_path, VALIDITY, scenario.stretches, minutes, 'severity="ticket"')
    print(f"ticket at minute {found}, expected {expected}")
    assert found is not None
    assert expected - 0.5 <= found <= expected + 3
    assert first_firing(programs, tmp_path, VALIDITY, scenario.stretches, minutes, 'severity="page"') is None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_failure_at_one_event_an_hour_never_fires(programs, tmp_path) -> None:
    """Six hours with an event in each, the third one bad, looked at every minute from there on."""
    hours = [(Stretch(59, 0), Stretch(1, 1, int(hour == 2))) for hour in range(6)]
    stretches = [stretch for hour in hours for stretch in hour]
    minutes = [179.0 + step for step in range(181)]
    assert first_firing(programs, tmp_path, VALIDITY, stretches, minutes, 'burnrate_tier!=""') is None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_shipped_objectives_prove_themselves(programs) -> None:
    """Every alert of rules/slo-*.yml, as `claudescope slo test` plays it; the committed files are what it compiles."""
    specs = sorted((COLLECTOR / "slos").glob("*.yml"))
    command = [
        sys.executable,
        "-m",
        "claudescope",
        "slo",
        "test",
        *specs,
        "--promtool",
        programs / "promtool",
        "--fail",
    ]
    said = run(*command)
    print(said)
    assert "7 objectives, all passed." in said
