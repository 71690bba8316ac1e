"""From an alert to a report: which window, which labels, which examples, and what is said where there is no answer."""

from __future__ import annotations

import pytest
from explainer_kit import STARTS_MS, FakePrometheus, Recorder, labels

from claudescope.explainer.alert import Alert
from claudescope.explainer.analyst import Analyst
from claudescope.explainer.jaeger import Jaeger
from claudescope.explainer.outbound import AwayError, HttpCaller
from claudescope.explainer.queue import Kept
from claudescope.explainer.ticket import Links
from claudescope.slo.explain.prometheus import Prometheus
from claudescope.slo.objective import BadAndTotal, Indicator, Objective, Origin, Ratio, Selection
from claudescope.slo.window import CalendarPeriod

HOUR = 3_600_000
LINKS = Links("http://e", "", "https://jaeger.example")


def objective(source, name="validity", **more):
    return Objective("shop", name, 0.99, source, (), Origin("f", 1, "0" * 64), **more)


OBJECTIVES = {
    found.id: found
    for found in (
        objective(Indicator("step_validity", where=Selection(service=("shop",))), group_by=("service_name",)),
        objective(Ratio("a / b"), "share", period=CalendarPeriod("month")),
        objective(BadAndTotal("sum(rate(x[{{.window}}]))", "sum(rate(y[{{.window}}]))"), "own"),
    )
}


@pytest.fixture
def prometheus():
    answers = FakePrometheus()
    with Recorder(answers) as server:
        server.answers = answers
        yield server


@pytest.fixture
def jaeger():
    with Recorder(lambda asked: (200, {"data": []})) as server:
        yield server


def analyst(prometheus, jaeger=None):
    asked = Jaeger(jaeger.url, HttpCaller(5)) if jaeger is not None else None
    return Analyst(OBJECTIVES, Prometheus(prometheus.url), asked, LINKS, 8)


def kept(received=STARTS_MS + HOUR, ends=None, **more):
    return Kept(1, Alert(f"{1:016x}", STARTS_MS, ends, labels(**more), {}), received, None)


@pytest.mark.parametrize(
    ("given", "seconds", "end"),
    [
        ({"long": "6h"}, 21_600, STARTS_MS + HOUR),
        ({"long": ""}, 3600, STARTS_MS + HOUR),
        ({"long": "soon"}, 3600, STARTS_MS + HOUR),
        ({"long": "52w"}, 7 * 86_400, STARTS_MS + HOUR),  # a week at most
        ({"received": STARTS_MS + 1}, 3600, STARTS_MS + 60_000),  # by the minute
        ({"ends": STARTS_MS + 60_000}, 3600, STARTS_MS + 60_000),  # it ended before it was told of
        ({"ends": STARTS_MS + 2 * HOUR}, 3600, STARTS_MS + HOUR),
    ],
)
def test_the_window_is_the_alerts_long_one_until_it_was_told(prometheus, given, seconds, end):
    window = analyst(prometheus).report(kept(**given), patient=True)["window"]
    assert window == {"from_ms": end - seconds * 1000, "to_ms": end}


def test_the_alerts_groups_are_no_slices_and_others_do_not_count(prometheus):
    report = analyst(prometheus).report(kept(), patient=True)
    first = report["explanation"]["slices"][0]
    assert "service_name" not in first["labels"]
    assert first["labels"]["gen_ai_tool_name"] == "search"
    assert report["svg"].startswith("<svg")
    assert "search" in report["text"]
    nothing = analyst(prometheus).report(kept(service_name="other"), patient=True)
    assert nothing["explanation"]["verdict"] == "insufficient_data"


def test_where_no_exemplar_is_jaeger_is_asked(prometheus, jaeger):
    jaeger.answer = lambda asked: (
        200,
        {"data": [{"traceID": "abc"}] if asked.path == "/api/traces" else []},
    )
    report = analyst(prometheus, jaeger).report(kept(), patient=True)
    assert report["traces"] == [{"id": "abc", "url": "https://jaeger.example/trace/abc"}]
    assert jaeger.asked[0].query["service"] == ["shop"]


def test_where_no_slice_stands_out_examples_are_of_the_alert(prometheus):
    prometheus.answers._matrix = lambda given: []
    prometheus.answers.exemplars = [
        {
            "seriesLabels": {"service_name": "shop"},
            "exemplars": [{"labels": {"trace_id": "t"}, "value": "1", "timestamp": 1}],
        }
    ]
    report = analyst(prometheus).report(kept(), patient=True)
    assert report["explanation"]["verdict"] == "insufficient_data"
    assert [trace["id"] for trace in report["traces"]] == ["t"]


def test_an_objective_without_counts_says_so_and_still_has_its_services(prometheus, jaeger):
    jaeger.answer = lambda asked: (200, {"data": [{"parent": "web", "child": "shop", "callCount": 3}]})
    report = analyst(prometheus, jaeger).report(kept(claudescope_slo="shop-share"), patient=True)
    assert report["explanation"] is None
    assert report["problem"].startswith("The objective shop-share is a query for a share")
    assert report["objective"]["period"] == "month"
    assert report["topology"]["services"] == ["shop", "web"]


def test_events_of_ones_own_queries(prometheus):
    report = analyst(prometheus).report(kept(claudescope_slo="shop-own"), patient=True)
    assert report["explanation"]["verdict"] in ("slices", "none", "insufficient_data")


def test_prometheus_away_is_waited_for_or_said(prometheus):
    prometheus.answers.status = 500
    with pytest.raises(AwayError, match="Prometheus answers 500"):
        analyst(prometheus).report(kept(), patient=True)
    report = analyst(prometheus).report(kept(), patient=False)
    assert report["problem"].startswith("There is no explanation: Prometheus answers 500")
    assert (report["explanation"], report["text"], report["traces"]) == (None, "", [])


def test_alerts_of_one_minute_share_an_answer_and_no_more_than_so_many_are_kept(prometheus):
    one = analyst(prometheus)
    for second in range(30):
        one.report(kept(STARTS_MS + 1 + 1000 * second), patient=True)
    ranges = [path for path, _ in prometheus.answers.queries if path == "query_range"]
    assert len(ranges) == 2
    for minute in range(100):
        one.report(kept(STARTS_MS + 60_000 * minute), patient=True)
    assert len(one._known) == 64
