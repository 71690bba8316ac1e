"""Rules as text: what YAML reads back is what was compiled, whatever it is for."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rule_objectives import EVERY, ORIGIN

from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.promql import equal, selector
from claudescope.slo.rules.rendering import resource_name, text_of
from claudescope.slo.rules.rule import Alert, Recording, RuleFile, RuleGroup

FILE = compiled(EVERY)


def rendered(rule) -> dict[str, object]:
    """A rule as Prometheus' file has it."""
    kind = "alert" if isinstance(rule, Alert) else "record"
    found = {kind: rule.name, "expr": rule.expr}
    if rule.labels:
        found["labels"] = dict(rule.labels)
    if isinstance(rule, Alert) and rule.annotations:
        found["annotations"] = dict(rule.annotations)
    return found


def test_yaml_reads_back_what_was_compiled() -> None:
    groups = yaml.safe_load(text_of(FILE))["groups"]
    assert [group["name"] for group in groups] == [group.name for group in FILE.groups]
    assert [group["interval"] for group in groups[:2]] == ["30s", "2m"]
    for group, source in zip(groups, FILE.groups, strict=True):
        for rule, made in zip(group["rules"], source.rules, strict=True):
            times = {name: rule.pop(name) for name in ("for", "keep_firing_for") if name in rule}
            assert rule == rendered(made)
            assert ("for" in times) == (isinstance(made, Alert) and made.for_seconds > 0)


def test_it_is_the_same_every_time_and_names_its_sources() -> None:
    text = text_of(FILE)
    assert text == text_of(compiled(EVERY))
    assert text.splitlines()[:3] == [
        "# Made by `claudescope slo rules`; changes here are lost.",
        "# For Prometheus 3. From:",
        f"#   app.yml sha256:{ORIGIN.sha256}",
    ]
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_a_prometheus_rule_of_kubernetes() -> None:
    found = yaml.safe_load(text_of(FILE, "kubernetes", name="app-slos", namespace="monitoring"))
    assert (found["apiVersion"], found["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert found["metadata"] == {
        "name": "app-slos",
        "namespace": "monitoring",
        "labels": {"app.kubernetes.io/managed-by": "claudescope"},
    }
    assert found["spec"] == yaml.safe_load(text_of(FILE))
    assert "namespace" not in yaml.safe_load(text_of(FILE, "kubernetes"))["metadata"]


def test_mimir_and_thanos() -> None:
    plain = yaml.safe_load(text_of(FILE))
    assert yaml.safe_load(text_of(FILE, "mimir", name="slos")) == {"namespace": "slos", **plain}
    thanos = yaml.safe_load(text_of(FILE, "thanos"))["groups"]
    assert {group.pop("partial_response_strategy") for group in thanos} == {"abort"}
    assert thanos == plain["groups"]


def test_recordings_alone() -> None:
    groups = yaml.safe_load(text_of(FILE, alerts=False))["groups"]
    assert all("record" in rule for group in groups for rule in group["rules"])


@pytest.mark.parametrize(
    ("text", "name"), [("My SLOs.v1", "my-slos-v1"), ("--", "claudescope-slo"), ("a" * 300, "a" * 253)]
)
def test_names_for_kubernetes(text, name) -> None:
    assert resource_name(text) == name


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x85\u2028\u2029\x00"), min_size=1)


@given(st.text(st.characters(codec="utf-8"), min_size=1), LINES)
def test_any_text_survives(value, words) -> None:
    group = RuleGroup(
        "g", 30, (Recording("r", "a\n+ b", {"label": value}), Alert("A", "x", 90, 0, {}, {"said": words}))
    )
    read = yaml.safe_load(text_of(RuleFile((group,), ())))["groups"][0]["rules"]
    assert read[0] == {"record": "r", "expr": "a\n+ b", "labels": {"label": value}}
    assert read[1] == {"alert": "A", "expr": "x", "for": "90s", "annotations": {"said": words}}


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.booleans())
def test_any_value_of_a_label_survives_in_an_expression(value, long) -> None:
    expr = selector("m", equal("a", value)) + ("\n> 0" if long else "")
    text = text_of(RuleFile((RuleGroup("g", 30, (Recording("r", expr, {}),)),), ()))
    assert yaml.safe_load(text)["groups"][0]["rules"][0]["expr"] == expr
    # Prometheus' YAML parser and others end a line at these, too
    assert not set(text) & set("\v\f\r\x1c\x1d\x1e\x85\u2028\u2029\ufeff")
