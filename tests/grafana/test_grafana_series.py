"""Prometheus names, the PromQL forms, thresholds that match the alerts, and prices."""

import json
from pathlib import Path

import pytest
import yaml

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

import promql_parser as promql

from claudescope import semconv
from claudescope.grafana import promql as forms
from claudescope.grafana.cost import PRICE, price_rules
from claudescope.grafana.series import label, names_of, our_labels, series
from claudescope.grafana.thresholds import DROPS, LOW_CONFIDENCE, QUEUE_SHARE, RATE_LIMIT_USED
from claudescope.live.web.prometheus import family_name, label_name
from claudescope.prices import Prices

RULES = Path(__file__).parents[2] / "collector" / "rules"


def test_names_are_those_of_prometheus():
    assert series(semconv.STEP_DURATION) == "claudescope_step_duration_seconds"
    assert series(semconv.STEP_CONFIDENCE_METRIC) == "claudescope_step_confidence"
    assert series(semconv.STEPS) == "claudescope_steps_total"
    assert series(semconv.CALLS) == "claudescope_calls_total"
    assert series(semconv.RATELIMIT_USED) == "claudescope_ratelimit_used"
    assert names_of(semconv.ACTIVE_CALLS) == ("claudescope_active_calls",)
    assert series(semconv.TOKEN_USAGE) == "gen_ai_client_token_usage"
    assert names_of(semconv.CHAIN_STEPS) == tuple(
        f"claudescope_chain_steps_{end}" for end in ("bucket", "sum", "count")
    )


def test_the_embedded_server_shows_the_same_names():
    for metric in semconv.METRICS.values():
        family, _ = family_name(metric)
        assert series(metric) == family + ("_total" if metric.kind == "counter" else "")
    assert all(label(name) == label_name(name) for metric in semconv.METRICS.values() for name in metric.attributes)


def test_labels_are_those_of_the_instrument():
    assert our_labels()["claudescope_chain_steps_bucket"] == {
        "gen_ai_request_model",
        "le",
        "job",
        "instance",
        "service_name",
        "service_version",
        "deployment_environment_name",
        "__name__",
    }


@pytest.mark.parametrize(
    "query",
    [
        forms.share("sum(a)", "sum(b)"),
        forms.quantile(0.95, "a", 'x="1"', by=("k",)),
        forms.mean("a", by=("k",), window="5m"),
        forms.within("a", 34, 'x="1"'),
        forms.beyond("a", 0.8, 'x="1"', by=("k",)),
        forms.or_zero("sum(a)"),
        forms.or_zero_named("sum by (k) (a)", "k", "none"),
        forms.grown("a", "5m"),
    ],
)
def test_every_form_is_promql(query):
    promql.parse(query.replace("$__rate_interval", "5m"))


def test_a_whole_bound_matches_both_spellings_of_it():
    assert 'le=~"34([.]0)?"' in forms.within("a", 34)
    assert 'le="0.7"' in forms.within("a", 0.7)
    assert LOW_CONFIDENCE.wrong in semconv.STEP_CONFIDENCE_METRIC.boundaries
    assert 34 in semconv.CHAIN_STEPS.boundaries
    assert RATE_LIMIT_USED.watch in semconv.RATELIMIT_USED.boundaries


def alerts():
    return {
        rule["alert"]: rule["expr"]
        for path in RULES.glob("*.yml")
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


@pytest.mark.parametrize(
    ("alert", "bound"),
    [("QueueFilling", QUEUE_SHARE.wrong), ("AppDropping", 0), ("CollectorDropping", 0), ("CollectorRefusing", 0)],
)
def test_thresholds_are_those_of_the_alerts(alert, bound):
    comparison = promql.parse(alerts()[alert])
    assert (str(comparison.op), comparison.rhs.val) == (">", bound)
    assert DROPS.wrong > 0  # a threshold holds from its value on: the least that is not 0


def test_every_price_is_a_rule_with_its_date():
    prices = Prices.load()
    rules = yaml.safe_load(price_rules(prices))["groups"][0]["rules"]
    table = json.loads((Path(forms.__file__).parents[1] / "prices.json").read_text("utf-8"))
    assert len(rules) == 5 * len(table["models"])
    found = {
        (rule["labels"]["price_model"], rule["labels"]["claudescope_token_class"]): float(rule["expr"][7:-1])
        for rule in rules
    }
    for row in table["models"]:
        for kind in ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"):
            assert found[row["match"], kind] == pytest.approx(row[kind] / 1e6)
    assert {rule["record"] for rule in rules} == {PRICE}
    assert {rule["labels"]["price_date"] for rule in rules} == {prices.date}
