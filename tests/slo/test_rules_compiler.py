"""Objectives to rules: what is recorded, who is told, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rule_objectives import BY_NAME, EVERY, SLOTH, VALIDITY, objective

from claudescope.errors import UsageError
from claudescope.slo.objective import Canary, Indicator, Notice, Ratio
from claudescope.slo.rules.alerts import asked_for
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.dialect import PROMETHEUS_2_42
from claudescope.slo.rules.links import Links
from claudescope.slo.rules.rule import Alert, Recording, RuleFile
from claudescope.slo.window import Window


def rules_of(one, **options) -> list[Recording | Alert]:
    return [rule for group in compiled([one], **options).groups for rule in group.rules]


def recordings(one) -> dict[str, Recording]:
    return {rule.name: rule for rule in rules_of(one) if isinstance(rule, Recording)}


def alerts(one, **options) -> list[Alert]:
    return [rule for rule in rules_of(one, **options) if isinstance(rule, Alert)]


def test_one_group_an_objective_and_one_for_its_period() -> None:
    groups = compiled([VALIDITY]).groups
    assert [(group.name, group.interval_seconds) for group in groups] == [
        ("claudescope-slo-app-step-validity", 30),
        ("claudescope-slo-app-step-validity-period", 120),
    ]
    names = [rule.name for rule in groups[0].rules]
    assert names[:3] == ["slo:sli_total:rate5m", "slo:sli_bad:rate5m", "slo:sli_error:ratio_rate5m"]
    for window in ("30m", "1h", "2h", "6h", "1d", "3d"):
        at = names.index(f"slo:sli_total:events{window}")
        assert names[at : at + 3] == [
            f"slo:sli_{part}{window}" for part in ("total:events", "bad:events", "error:ratio_rate")
        ]
    assert [rule.name for rule in groups[1].rules] == [
        "slo:sli_total:events30d",
        "slo:sli_bad:events30d",
        "slo:sli_error:ratio_rate30d",
        "slo:period_burn_rate:ratio",
        "slo:period_error_budget_remaining:ratio",
    ]


def test_events_by_group_with_a_zero_for_what_does_not_fail() -> None:
    found = recordings(VALIDITY)
    by = "sum by (gen_ai_request_model, service_name)"
    own = '{claudescope_slo="app-step-validity"}'
    assert found["slo:sli_total:rate5m"].expr.endswith('service_name="app"}[5m])) > 0')
    assert found["slo:sli_bad:rate5m"].expr.endswith(f"\nor\n0 * {by} (slo:sli_total:rate5m{own})")
    assert found["slo:sli_total:events1h"].expr.endswith("[1h])) * 3600 > 0")
    assert found["slo:sli_bad:events6h"].expr == f"{by} (30 * sum_over_time(slo:sli_bad:rate5m{own}[6h]))"
    assert found["slo:sli_error:ratio_rate6h"].expr == f"slo:sli_bad:events6h{own} / slo:sli_total:events6h{own}"
    assert found["slo:sli_bad:rate5m"].labels == {
        "claudescope_slo": "app-step-validity",
        "claudescope_slo_name": "step-validity",
        "claudescope_slo_service": "app",
    }


def test_a_missing_bucket_is_no_success() -> None:
    assert "or" not in recordings(BY_NAME["latency-whole"])["slo:sli_bad:rate5m"].expr.split()
    absent = next(alert for alert in alerts(BY_NAME["latency-whole"]) if alert.name == "LatencyWholeAbsent")
    assert absent.expr.count("absent(") == 2


def test_each_tier_is_an_alert() -> None:
    burns = [alert for alert in alerts(VALIDITY) if alert.name == "StepValidityBudgetBurn"]
    assert [
        (alert.labels["severity"], alert.labels["burnrate_tier"], alert.labels["long"], alert.labels["short"])
        for alert in burns
    ] == [(tier.severity, tier.name, str(tier.long), str(tier.short)) for tier in VALIDITY.tiers]
    own = '{claudescope_slo="app-step-validity"}'
    assert burns[0].expr == (
        f"slo:sli_error:ratio_rate1h{own} > 0.144\nand\nslo:sli_error:ratio_rate5m{own} > 0.144\nand\n(\n"
        f"  300 * slo:sli_bad:rate5m{own} + 0.2 >= slo:sli_bad:needed5m{own}\n  or\n"
        f"  slo:sli_bad:events30m{own} + 0.2 >= slo:sli_bad:needed30m{own}\n  or\n"
        f"  slo:sli_bad:events1h{own} + 0.2 >= slo:sli_bad:needed1h{own}\n)"
    )
    assert (burns[0].for_seconds, burns[0].keep_firing_seconds) == (VALIDITY.tiers[0].wait.seconds, 300)
    assert burns[0].annotations["dashboard"] == "http://localhost:3000/d/claudescope-slo?var-slo=app-step-validity"
    assert burns[0].annotations["objective"] == 'Steps are {{ "{{" }}valid}}.'


def test_links_are_those_of_the_stack() -> None:
    links = Links("https://g", "https://j", "https://e")
    told = alerts(VALIDITY, links=links)[0].annotations
    assert told["explanation"] == (
        "https://e/explain?slo=app-step-validity&window=1h"
        "&gen_ai_request_model={{ $labels.gen_ai_request_model | urlquery }}"
        "&service_name={{ $labels.service_name | urlquery }}"
    )
    assert told["trace"] == (
        "https://j/search?service={{ $labels.service_name | urlquery }}&lookback=1h"
        "&tags=%7B%22claudescope.step.valid%22%3A%22false%22%2C"
        "%22gen_ai.request.model%22%3A%22{{ $labels.gen_ai_request_model | urlquery }}%22%7D"
    )
    slow = alerts(BY_NAME["latency-between"], links=links)[0].annotations["trace"]
    assert slow.startswith("https://j/search?service=app&lookback=1h&minDuration=1200ms&tags=")
    assert alerts(BY_NAME["raw"], links=links)[0].annotations["trace"] == "https://j/search?service=app&lookback=1h"


def test_the_clause_only_where_something_is_asked_for() -> None:
    plain, few = BY_NAME["errors"], BY_NAME["errors-few"]
    assert "needed" not in alerts(plain)[0].expr
    assert "slo:sli_bad:needed1h" not in recordings(plain)
    assert recordings(few)["slo:sli_bad:needed1h"].expr.endswith("+ 5")
    assert recordings(BY_NAME["latency-whole"])["slo:sli_bad:needed1h"].expr.startswith("clamp_min(")


def test_a_tier_that_was_capped_says_so() -> None:
    low = objective("low", Indicator("errors"), 0.5)
    group = compiled([low]).groups[0]
    assert group.notes[0] == (
        "page-fast: 14.4 times was asked for and can never be, since it is over 100 %, so it is for 1.8 times."
    )
    assert (
        "(14.4 times was asked for and can never be, since it is over 100 %)"
        in alerts(low)[0].annotations["description"]
    )
    assert "0.5 times was asked for and is less than the budget allows" in asked_for(
        replace(VALIDITY.tiers[3], asked=0.5)
    )


def test_severities_that_are_switched_off_and_labels_of_their_own() -> None:
    changed = replace(
        VALIDITY,
        page=Notice({"team": "a"}, {"runbook": "r"}),
        ticket=Notice(disabled=True),
        alert_labels={"category": "quality"},
        labels={"owner": "o"},
    )
    burns = [alert for alert in alerts(changed) if "burnrate_tier" in alert.labels]
    assert {alert.labels["severity"] for alert in burns} == {"page"}
    assert burns[0].labels.items() >= {"team": "a", "category": "quality", "owner": "o"}.items()
    assert burns[0].annotations["runbook"] == "r"
    assert recordings(changed)["slo:sli_bad:rate5m"].labels["owner"] == "o"


def test_absence_is_of_all_and_not_of_an_idle_app() -> None:
    absent = alerts(VALIDITY)[-1]
    assert (absent.name, absent.labels["severity"], absent.for_seconds) == ("StepValidityAbsent", "ticket", 600)
    assert absent.expr.startswith("absent(\nsum by")
    assert "slo:sli_total" not in absent.expr  # recorded above 0 only
    assert len(alerts(replace(VALIDITY, absent_after=None))) == 4
    assert alerts(replace(VALIDITY, absent_after=Window(60)))[-1].for_seconds == 0
    told = alerts(BY_NAME["confidence-between"])[-1].annotations["description"]
    assert "CLAUDESCOPE_CONFIDENCE_BOUNDS=0.75" in told


def test_facts_for_dashboards() -> None:
    found = recordings(VALIDITY)
    assert found["slo:objective:ratio"].expr == "vector(0.99)"
    assert found["slo:error_budget:ratio"].expr == "vector(0.01)"
    assert found["slo:time_period:days"].expr == "vector(30)"
    assert found["slo:current_burn_rate:ratio"].expr.endswith(" / 0.01")
    assert (
        found["claudescope_slo_info"].labels.items()
        >= {
            "claudescope_slo_measure": "step_validity",
            "claudescope_slo_objective": "99",
            "claudescope_slo_period": "30d",
        }.items()
    )
    factors = [rule for rule in rules_of(VALIDITY) if rule.name == "slo:tier:burn_rate"]
    assert [rule.expr for rule in factors] == [f"vector({tier.factor:g})" for tier in VALIDITY.tiers]
    assert recordings(BY_NAME["counted"])["claudescope_slo_info"].labels["claudescope_slo_measure"] == "events"


def test_bounds_by_load_are_judged_at_the_load_of_their_time() -> None:
    found = recordings(BY_NAME["latency-load"])
    assert "> 5000) or clamp_min" in found["slo:sli_bad:rate5m"].expr
    assert found["slo:sli_bad:events1h"].expr.startswith("sum(30 * sum_over_time(slo:sli_bad:rate5m")


def test_counts_of_a_window_are_not_rates() -> None:
    found = recordings(BY_NAME["counted"])
    assert found["slo:sli_total:rate5m"].expr == "sum(increase(t[5m])) / 300 > 0"
    assert found["slo:sli_total:events1h"].expr == "sum(increase(t[1h])) > 0"
    # on lines of its own, since it ends in a comment
    assert found["slo:sli_bad:events1h"].expr.startswith("(sum(\nincrease(b[1h]) # bad\n))\nor\n")


def test_what_is_written_for_sloth_has_its_labels_too() -> None:
    one = BY_NAME["requests-availability"]
    found = recordings(one)
    assert found["slo:sli_error:ratio_rate1h"].labels == {
        "owner": "myteam",
        "claudescope_slo": "myservice-requests-availability",
        "claudescope_slo_name": "requests-availability",
        "claudescope_slo_service": "myservice",
        "sloth_id": "myservice-requests-availability",
        "sloth_service": "myservice",
        "sloth_slo": "requests-availability",
        "sloth_window": "1h",
    }
    assert found["sloth_slo_info"].labels["sloth_objective"] == "99.9"
    burn = alerts(one)[0]
    assert burn.name == "MyServiceHighErrorRate"
    assert burn.labels["sloth_severity"] == "page"
    assert burn.expr.count("max without (sloth_window) (slo:sli_error:") == 2


def test_a_share_without_counts() -> None:
    raw = BY_NAME["raw"]
    group = compiled([raw]).groups[0]
    assert group.notes == ("It has no counts, only a share: a single failure at low traffic can fire its alerts.",)
    found = recordings(raw)
    assert found["slo:sli_error:ratio_rate1h"].expr == "(\nsum(rate(b[1h])) / sum(rate(t[1h]))\n) >= 0"
    assert found["slo:sli_error:ratio_rate30d"].expr.startswith("avg_over_time(slo:sli_error:ratio_rate5m")
    assert not [name for name in found if "events" in name or "needed" in name]
    assert "needed" not in alerts(raw)[0].expr
    assert alerts(raw)[-1].expr.startswith("absent(")


def test_a_canary_and_its_baseline() -> None:
    one = replace(VALIDITY, canary=Canary("deployment", "canary", "baseline", min_events=12))
    found = recordings(one)
    assert "sum by (gen_ai_request_model, service_name, deployment)" in found["slo:canary_total:events30m"].expr
    assert found["slo:canary:zscore"].expr.endswith(" > 0)")
    told = next(alert for alert in alerts(one) if alert.name == "StepValidityCanaryWorse")
    assert told.labels.items() >= {"deployment": "canary", "severity": "page", "long": "30m"}.items()
    assert " > 3.3" in told.expr
    assert " >= 0.0005" in told.expr
    assert told.expr.endswith(">= 12")
    without = replace(one, alpha=0)
    assert "slo:canary_bad:needed" not in recordings(without)
    assert "needed" not in next(alert for alert in alerts(without) if "Canary" in alert.name).expr
    counted = replace(BY_NAME["counted"], canary=one.canary)
    assert recordings(counted)["slo:canary_total:events30m"].expr == "sum by (deployment) (increase(t[30m])) > 0"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (objective("a", Indicator("time_to_first_chunk", bound=2)), "specs/app.yml:7: a: 2s is no bucket boundary"),
        (replace(VALIDITY, tiers=(replace(VALIDITY.tiers[0], short=Window(60)),)), "the window 1m of page-fast"),
        (replace(VALIDITY, tiers=(replace(VALIDITY.tiers[0], long=Window(3601)),)), "the window 3601s of page-fast"),
        (replace(VALIDITY, labels={"service_name": "x"}), "'service_name' is one that the rules set themselves"),
        (replace(VALIDITY, alert_labels={"a-b": "x"}), "'a-b' is no name of a label"),
        (objective("a", Ratio("x"), min_events=3), "min_events needs counts"),
        (objective("a", Ratio("x"), canary=Canary("d", "c", "b")), "a canary needs counts"),
    ],
)
def test_what_is_refused_has_its_place_and_a_fix(one, said) -> None:
    with pytest.raises(UsageError) as refused:
        compiled([one])
    assert said in refused.value.message
    assert refused.value.message.startswith("specs/app.yml:7: ")
    assert refused.value.fix


def test_one_name_is_one_objective() -> None:
    with pytest.raises(UsageError, match=r"is there twice, first at specs/app\.yml:7"):
        compiled([VALIDITY, replace(VALIDITY, target=0.9)])


def test_an_older_prometheus_has_no_native_histograms() -> None:
    with pytest.raises(UsageError, match=r"native histograms .* are not in Prometheus 2\.42"):
        compiled([BY_NAME["latency-native"]], PROMETHEUS_2_42)
    assert compiled([VALIDITY], PROMETHEUS_2_42) == compiled([VALIDITY])


def test_a_file_names_each_source_once() -> None:
    file = compiled(EVERY)
    assert isinstance(file, RuleFile)
    assert [origin.path for origin in file.origins] == ["specs/app.yml"]
    assert len(file.groups) == 2 * len(EVERY)
    assert compiled([replace(VALIDITY, source=SLOTH)]).groups
