"""The short forms as PromQL on our own metrics, and what no query can say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claudescope.slo.objective import Indicator, LoadBound, Selection
from claudescope.slo.rules.promql import among, quoted
from claudescope.slo.rules.queries import UnfitError, bad_and_total, dimensions, needed_setting

STEPS = "claudescope_steps_total"
SECONDS = "claudescope_step_duration_seconds"


@pytest.mark.parametrize(
    ("indicator", "bad", "total"),
    [
        (
            Indicator("step_validity"),
            f'sum(rate({STEPS}{{claudescope_step_valid="false"}}[{{{{.window}}}}]))',
            f'sum(rate({STEPS}{{claudescope_step_valid=~"true|false"}}[{{{{.window}}}}]))',
        ),
        (
            Indicator("step_validity", unknown="bad"),
            f'sum(rate({STEPS}{{claudescope_step_valid=~"false|unknown"}}[{{{{.window}}}}]))',
            f"sum(rate({STEPS}[{{{{.window}}}}]))",
        ),
        (
            Indicator("step_validity", unknown="good"),
            f'sum(rate({STEPS}{{claudescope_step_valid="false"}}[{{{{.window}}}}]))',
            f"sum(rate({STEPS}[{{{{.window}}}}]))",
        ),
        (
            Indicator("tool_success", unknown="bad"),
            f'sum(rate({STEPS}{{claudescope_step_valid="false", claudescope_step_kind="tool_run"}}[{{{{.window}}}}]))',
            (
                f'sum(rate({STEPS}{{claudescope_step_valid=~"true|false", claudescope_step_kind="tool_run"}}'
                "[{{.window}}]))"
            ),
        ),
        (
            Indicator("errors"),
            'sum(rate(claudescope_calls_total{gen_ai_operation_name="chat", error_type!~"|cancelled"}[{{.window}}]))',
            'sum(rate(claudescope_calls_total{gen_ai_operation_name="chat"}[{{.window}}]))',
        ),
        (
            Indicator("step_confidence", bound=0.7),
            'sum(rate(claudescope_step_confidence_bucket{le="0.7"}[{{.window}}]))',
            "sum(rate(claudescope_step_confidence_count[{{.window}}]))",
        ),
        (
            Indicator("step_confidence", bound=0.75),
            (
                'sum(rate(claudescope_step_below_total{claudescope_step_beyond="true", claudescope_step_bound="0.75"}'
                "[{{.window}}]))"
            ),
            'sum(rate(claudescope_step_below_total{claudescope_step_bound="0.75"}[{{.window}}]))',
        ),
        (
            Indicator("saturation", bound=1),
            (
                "clamp_min(sum(rate(claudescope_ratelimit_used_count[{{.window}}]))"
                ' - sum(rate(claudescope_ratelimit_used_bucket{le=~"1([.]0)?"}[{{.window}}])), 0)'
            ),
            "sum(rate(claudescope_ratelimit_used_count[{{.window}}]))",
        ),
    ],
)
def test_what_is_bad_of_what(indicator, bad, total) -> None:
    found = bad_and_total(indicator)
    assert (found.bad, found.total, found.per) == (bad, total, "second")


def test_latency_leaves_out_the_apps_own_time() -> None:
    found = bad_and_total(Indicator("step_latency", Selection(kind=("thinking", "text")), bound=0.8), ("service_name",))
    chosen = 'claudescope_step_kind=~"thinking|text", claudescope_step_latency_source!="consumer"'
    total = f"sum by (service_name) (rate({SECONDS}_count{{{chosen}}}[{{{{.window}}}}]))"
    below = f'sum by (service_name) (rate({SECONDS}_bucket{{le="0.8", {chosen}}}[{{{{.window}}}}]))'
    assert found == replace(found, total=total, bad=f"clamp_min({total} - {below}, 0)")


def test_the_highest_load_that_is_reached_decides() -> None:
    indicator = Indicator("step_latency", bound=0.2, loads=(LoadBound(100, 0.35), LoadBound(5000, 0.5)))
    bad, total = bad_and_total(indicator).bad, bad_and_total(indicator).total
    order = [bad.index(f'le="{bound}"') for bound in (0.5, 0.35, 0.2)]
    assert order == sorted(order)
    assert f"and {total} > 5000) or (" in bad
    assert f"and {total} > 100) or clamp_min" in bad


def test_native_histograms_are_asked_for_a_fraction() -> None:
    found = bad_and_total(Indicator("step_latency", bound=1.2, native=True))
    rates = f'sum(rate({SECONDS}{{claudescope_step_latency_source!="consumer"}}[{{{{.window}}}}]))'
    assert found.total == f"histogram_count({rates})"
    assert found.bad == f"(histogram_fraction(1.2, +Inf, {rates}) * {found.total} >= 0)"
    below = bad_and_total(Indicator("step_confidence", bound=0.75, native=True))
    assert "histogram_fraction(-Inf, 0.75," in below.bad


def test_a_tool_or_business_label_takes_the_counter_also_at_a_boundary() -> None:
    indicator = Indicator("step_latency", Selection(labels=(("tier", ("gold",)),)), bound=0.8)
    found = bad_and_total(indicator)
    assert 'claudescope_step_over_total{claudescope_step_bound="0.8", claudescope_label_tier="gold"' in found.total
    assert needed_setting(indicator) == "CLAUDESCOPE_STEP_BOUNDS=0.8s"
    assert needed_setting(Indicator("step_latency", bound=0.8), ("gen_ai_tool_name",)) == needed_setting(indicator)
    assert needed_setting(Indicator("step_confidence", bound=0.75)) == "CLAUDESCOPE_CONFIDENCE_BOUNDS=0.75"
    assert needed_setting(Indicator("step_latency", bound=0.8)) == needed_setting(Indicator("errors")) == ""


@pytest.mark.parametrize(
    ("indicator", "group_by", "said", "fix"),
    [
        (Indicator("time_to_first_chunk", bound=2), (), "2s is no bucket boundary", "1.28s or 2.56s"),
        (Indicator("saturation", bound=0.85), (), "0.85 is no bucket boundary", "0.8 or 0.9"),
        (Indicator("errors", Selection(kind=("text",))), (), "by claudescope_step_kind", "gen_ai_request_model"),
        (Indicator("saturation", bound=0.9), ("gen_ai_tool_name",), "by gen_ai_tool_name", "gen_ai_request_model"),
        (Indicator("saturation", bound=0.9), ("claudescope_label_tier",), "by claudescope_label_tier", "It has"),
        (Indicator("tool_success", Selection(kind=("text",))), (), "steps of one kind", "Leave `kind` out"),
    ],
)
def test_what_no_query_can_say_is_refused_with_what_can_be_said(indicator, group_by, said, fix) -> None:
    with pytest.raises(UnfitError) as refused:
        bad_and_total(indicator, group_by)
    assert said in str(refused.value)
    assert fix in refused.value.fix


def test_a_label_that_is_not_ours_is_passed_on() -> None:
    assert bad_and_total(Indicator("errors"), ("cluster",)).total.startswith("sum by (cluster) (rate(")


def test_dimensions_are_the_labels_of_the_metric() -> None:
    assert dimensions(Indicator("errors")) == ("service_name", "gen_ai_request_model")
    assert "gen_ai_tool_name" in dimensions(Indicator("step_validity"))
    assert "gen_ai_tool_name" not in dimensions(Indicator("step_latency", bound=1))


def test_values_are_literal() -> None:
    assert among("a", ()) == ()
    assert among("a", ('x"y',)) == ('a="x\\"y"',)
    assert among("a", ("x.y", "(z)")) == ('a=~"x\\\\.y|\\\\(z\\\\)"',)
    assert quoted("a\nb") == '"a\\nb"'
