"""What the linter finds in dashboards with planted faults."""

import copy
import json

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

from claudescope.grafana.catalogue import encoded
from claudescope.grafana.expressions import Expression, expressions, plain
from claudescope.grafana.linter import lost_keys, query_faults
from claudescope.grafana.pipeline_health import dashboard

WHOLE = json.loads(encoded(dashboard()))


def with_query(expr, **target):
    panel = {"type": "timeseries", "title": "P", "targets": [{"refId": "A", "expr": expr, **target}]}
    return {"title": "D", "panels": [panel]}


def test_a_key_that_the_sdk_does_not_know_is_named_with_its_path():
    changed = copy.deepcopy(WHOLE)
    changed["panels"][1]["fieldConfig"]["defaults"]["brightness"] = 3
    changed["sparkle"] = True
    assert sorted(lost_keys(changed)) == ["panels[1].fieldConfig.defaults.brightness", "sparkle"]


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("sum(rate(claudescope_steps_total[5m])", "unclosed"),
        ("claudescope_step_total", "claudescope_step_total is no metric of semconv or the stack"),
        ('{job="collector"}', "is no metric of semconv or the stack"),
        ('claudescope_steps_total{kind="text"}', "kind is no label of claudescope_steps_total"),
        ("sum by (le) (claudescope_steps_total)", "le is no label of"),
        ("topk(3, sum by (check) (claudescope_step_failures_total))", "check is no label of"),
        ('claudescope_step_duration_seconds_bucket{claudescope_label_tier="a"}', "claudescope_label_tier is no label"),
        (
            "claudescope_steps_total * on (tier) group_left () claudescope:price:usd_per_token",
            "tier is no label of",
        ),
        ("sum by (dst) (sum(claudescope_steps_total))", "dst is no label of"),
    ],
)
def test_a_fault_of_a_query_is_named_with_its_place(expr, fault):
    found = list(query_faults(with_query(expr)))
    assert found
    assert found[0].startswith("D / P / A: ")
    assert fault in found[0]


@pytest.mark.parametrize(
    "expr",
    [
        'sum by (claudescope_label_tier) (claudescope_steps_total{claudescope_label_tier=~"a|b"})',
        "rate(claudescope_steps_total[$__rate_interval])",
        'sum by (new) (label_replace(up, "new", "$1", "job", "(.*)"))',
        '{__name__=~"otelcol_receiver_accepted_spans(_total)?", job="collector"}',
        "histogram_quantile(0.9, sum by (le) (rate(claudescope_step_duration_seconds_bucket[$__range])))",
        'count(ALERTS{alertstate="firing"}) or vector(0)',
        "sum without (instance) (up offset 5m)",
    ],
)
def test_what_is_right_has_no_fault(expr):
    assert list(query_faults(with_query(expr))) == []


def test_a_variable_of_an_unknown_label_is_a_fault():
    variable = {"type": "query", "name": "v", "query": {"query": "label_values(claudescope_steps_total, flavour)"}}
    found = list(query_faults({"title": "D", "panels": [], "templating": {"list": [variable]}}))
    assert found == ["D / variable v: flavour is no label of claudescope_steps_total"]


def test_queries_are_found_in_rows_annotations_and_variables():
    board = {
        "title": "D",
        "panels": [{"type": "row", "panels": with_query("up", instant=True)["panels"]}],
        "annotations": {"list": [{"name": "a", "expr": "ALERTS"}]},
        "templating": {"list": [{"type": "query", "name": "v", "query": "label_names(up)"}]},
    }
    assert list(expressions(board)) == [
        Expression("D / P / A", "up", True),
        Expression("D / annotation a", "ALERTS", marks=True),
        Expression("D / variable v", "up", True),
    ]


def test_variables_are_replaced_and_the_groups_of_a_regular_expression_are_not():
    text = 'rate(a{s=~"$service", claudescope_label_${label}="x"}[$__rate_interval]) offset $__range "$1-$2"'
    assert plain(text, 60) == 'rate(a{s=~".*", claudescope_label_tier="x"}[5m]) offset 60s "$1-$2"'
