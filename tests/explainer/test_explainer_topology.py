"""The services around an alert (Jaeger's dependencies, Prometheus' labels), and example traces by Jaeger's search."""

from __future__ import annotations

import json

import pytest
from explainer_kit import FakePrometheus, Recorder

from claudescope.explainer.jaeger import Jaeger
from claudescope.explainer.outbound import HttpCaller
from claudescope.explainer.topology import topology
from claudescope.slo.explain.prometheus import Prometheus
from claudescope.slo.objective import BadAndTotal, Indicator, Objective, Origin, Selection

AT = 1_796_032_800.0


def objective(source):
    return Objective("shop", "slo", 0.99, source, (), Origin("f", 1, "0" * 64))


@pytest.fixture
def jaeger():
    with Recorder() as server:
        yield server


@pytest.fixture
def prometheus():
    answers = FakePrometheus()
    with Recorder(answers) as server:
        server.answers = answers
        yield server


def edge(parent, child, count=1):
    return {"parent": parent, "child": child, "callCount": count}


def found(prometheus, jaeger, around=()):
    return topology(Prometheus(prometheus.url), Jaeger(jaeger.url, HttpCaller(5)), AT, 3600, around)


def test_services_models_and_tools(prometheus, jaeger):
    prometheus.answers.calls = {
        "claudescope_calls_total": [
            {"metric": {"service_name": "shop", "gen_ai_request_model": "m"}, "value": [1, "5"]},
            {"metric": {"service_name": "", "gen_ai_request_model": "m"}, "value": [1, "5"]},
            {"metric": {"service_name": "shop"}, "value": [1, "5"]},
        ],
        "tool_run": [{"metric": {"service_name": "shop", "gen_ai_tool_name": "search"}, "value": [1, "3.25"]}],
    }
    bad = [{"parent": "x"}, {"parent": 1, "child": 2, "callCount": 3}, "no", edge("a", "b", "many")]
    jaeger.answer = lambda asked: (200, {"data": [edge("web", "shop", 7), *bad]})
    assert found(prometheus, jaeger) == {
        "services": ["shop", "web"],
        "calls": [
            {"from": "web", "to": "shop", "kind": "service", "count": 7.0},
            {"from": "shop", "to": "m", "kind": "model", "count": 5.0},
            {"from": "shop", "to": "search", "kind": "tool", "count": 3.2},
        ],
    }
    (asked,) = jaeger.asked
    assert (asked.path, asked.query) == (
        "/api/dependencies",
        {"endTs": [str(int(AT * 1000))], "lookback": ["3600000"]},
    )
    queries = [given["query"][0] for path, given in prometheus.answers.queries if path == "query"]
    models = 'claudescope_calls_total{gen_ai_request_model!=""}'
    tools = 'claudescope_steps_total{claudescope_step_kind="tool_run",gen_ai_tool_name!=""}'
    assert queries == [
        f"sum by (service_name, gen_ai_request_model) (increase({models}[3600s])) > 0",
        f"sum by (service_name, gen_ai_tool_name) (increase({tools}[3600s])) > 0",
    ]


def test_only_what_is_near(prometheus, jaeger):
    chain = [edge("a", "b"), edge("b", "shop"), edge("shop", "c"), edge("c", "d"), edge("d", "e"), edge("y", "z")]
    jaeger.answer = lambda asked: (200, {"data": chain})
    calls = {(call["from"], call["to"]) for call in found(prometheus, jaeger, {"shop"})["calls"]}
    assert calls == {("a", "b"), ("b", "shop"), ("shop", "c"), ("c", "d")}
    assert len(found(prometheus, jaeger)["calls"]) == 6


def test_at_most_a_hundred(prometheus, jaeger):
    jaeger.answer = lambda asked: (200, {"data": [edge("shop", f"s{number}", number) for number in range(500)]})
    calls = found(prometheus, jaeger)["calls"]
    assert [call["count"] for call in calls] == list(range(499, 399, -1))


def test_what_does_not_answer_is_left_out(prometheus, jaeger):
    jaeger.answer = lambda asked: (500, {})
    prometheus.answers.status = 500
    assert found(prometheus, jaeger) == {"services": [], "calls": []}
    assert topology(Prometheus(prometheus.url), None, AT, 3600) == {"services": [], "calls": []}
    jaeger.answer = lambda asked: (200, [])
    assert found(prometheus, jaeger)["calls"] == []


def traces(jaeger, source, labels):
    return Jaeger(jaeger.url, HttpCaller(5)).traces(objective(source), labels, AT, 60)


def test_traces_of_a_slice(jaeger):
    jaeger.answer = lambda asked: (200, {"data": [{"traceID": "a"}, {"traceID": 7}, "x", {"traceID": "b"}]})
    labels = {
        "service_name": "shop",
        "gen_ai_tool_name": "search",
        "gen_ai_request_model": "",
        "claudescope_step_index": "16+",
        "claudescope_label_tier": "gold",
        "region": "eu",
    }
    assert traces(jaeger, Indicator("step_validity"), labels) == ["a", "b"]
    (asked,) = jaeger.asked
    tags = json.loads(asked.query.pop("tags")[0])
    assert tags == {
        "claudescope.step.valid": "false",
        "gen_ai.tool.name": "search",
        "claudescope.label.tier": "gold",
    }
    assert (asked.path, asked.query) == (
        "/api/traces",
        {"service": ["shop"], "start": [str(int((AT - 60) * 1e6))], "end": [str(int(AT * 1e6))], "limit": ["3"]},
    )


def test_traces_of_failed_calls_of_the_one_service_of_an_objective(jaeger):
    jaeger.answer = lambda asked: (200, {"data": None})
    assert traces(jaeger, Indicator("errors", where=Selection(service=("shop",))), {}) == []
    assert json.loads(jaeger.asked[0].query["tags"][0]) == {"error": "true"}


def test_nothing_is_searched_for_where_no_tag_or_no_service_is_known(jaeger):
    several = Selection(service=("a", "b"))
    for source in (
        Indicator("step_validity"),
        Indicator("step_validity", where=several),
        Indicator("step_latency", bound=1.0, where=Selection(service=("a",))),
        BadAndTotal("sum(a)", "sum(b)"),
    ):
        assert traces(jaeger, source, {}) == []
    assert jaeger.asked == []
