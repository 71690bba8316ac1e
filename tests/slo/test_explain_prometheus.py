"""Cells and examples from a Prometheus over real HTTP: which queries are asked, and what is made of the answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "explainer"))

from explainer_kit import FakePrometheus, Recorder

from claudescope.slo.burn import Counts
from claudescope.slo.explain.prometheus import Prometheus, PrometheusError, UnslicedError, sliced
from claudescope.slo.objective import BadAndTotal, Indicator, Objective, Origin, Ratio, Selection

AT = 1_796_032_800.0
VALIDITY = Indicator("step_validity")


def objective(source, group_by=()):
    return Objective("shop", "slo", 0.99, source, (), Origin("f", 1, "0" * 64), group_by=group_by)


@pytest.fixture
def server():
    answers = FakePrometheus()
    with Recorder(answers) as running:
        running.answers = answers
        yield running


def asked(server, path):
    return [given for name, given in server.answers.queries if name == path]


def test_two_queries_give_now_and_the_windows_before(server):
    cells = Prometheus(server.url, "a-token").cells(objective(VALIDITY), AT, 3600)
    assert cells.dimensions == ("service_name", "gen_ai_tool_name")  # of what is asked for, what events have
    assert cells.windows == 8
    by_tool = {row.labels[1]: row for row in cells.rows}
    assert set(by_tool) == {"search", "lookup", "pay"}
    assert by_tool["search"].now == pytest.approx(Counts(0.05 * 3600, 360))
    assert list(by_tool["search"].before) == [pytest.approx(Counts(3.6, 360))] * 8
    dims = (
        "service_name, gen_ai_request_model, claudescope_step_kind, claudescope_step_index, gen_ai_tool_name,"
        " claudescope_label_tier"  # a business label with two values
    )
    bad, total = (given["query"][0] for given in asked(server, "query_range"))
    assert bad == f'sum by ({dims}) (rate(claudescope_steps_total{{claudescope_step_valid="false"}}[3600s]))'
    assert total == f'sum by ({dims}) (rate(claudescope_steps_total{{claudescope_step_valid=~"true|false"}}[3600s]))'
    (names,) = asked(server, "labels")
    assert names["match[]"] == ['claudescope_steps_total{claudescope_step_valid=~"true|false"}']
    assert {one.headers["authorization"] for one in server.asked} == {"Bearer a-token"}


def test_a_group_of_the_alert_is_no_dimension_and_others_do_not_count(server):
    grouped = objective(VALIDITY, group_by=("service_name",))
    prometheus = Prometheus(server.url)
    cells = prometheus.cells(grouped, AT, 3600, where={"service_name": "shop", "severity": "page"})
    assert "service_name" not in cells.dimensions
    assert cells.now.total == pytest.approx(3 * 360)
    assert prometheus.cells(grouped, AT, 3600, where={"service_name": "other"}).now == Counts(0, 0)


@pytest.mark.parametrize(("window", "windows", "used"), [(3600, 3, 3), (86_400, 8, 7), (3 * 86_400, 8, 2)])
def test_the_baseline_goes_back_a_week_where_that_is_two_windows(server, window, windows, used):
    assert Prometheus(server.url).cells(objective(VALIDITY), AT, window, windows=windows).windows == used
    given = asked(server, "query_range")[0]
    assert (given["start"], given["end"], given["step"]) == (
        [f"{AT - used * window:.3f}"],
        [f"{AT:.3f}"],
        [str(window)],
    )


def test_a_bound_that_only_a_histogram_has_is_told_apart_by_its_labels_alone(server):
    Prometheus(server.url).cells(objective(Indicator("step_latency", bound=10.0)), AT, 3600)
    by = "sum by (service_name, gen_ai_request_model, claudescope_step_kind, claudescope_step_index) "
    assert all(by in given["query"][0] and "tool" not in given["query"][0] for given in asked(server, "query_range"))
    assert asked(server, "labels") == []


def test_a_query_of_ones_own_is_told_apart_by_the_labels_of_its_series(server):
    def answer(one):
        if one.path.endswith("/labels"):
            names = ["__name__", "code", "pod", "region", "route", "request_id", "one_only", "utf8.name"]
            return 200, {"status": "success", "data": names}
        if "/label/" in one.path:
            name = one.path.split("/")[-2]
            count = {"request_id": 5000, "one_only": 1}.get(name, 3)
            return 200, {"status": "success", "data": [str(number) for number in range(count)]}
        return server.answers(one)

    server.answer = answer
    own = BadAndTotal(
        'sum(rate(http_total{job="a",code=~"5.."}[{{.window}}]))', 'sum(rate(http_total{job="a"}[{{.window}}]))'
    )
    Prometheus(server.url).cells(objective(own, group_by=("region",)), AT, 3600)
    # code says what is bad, pod where it ran, request_id is an id
    queries = [given["query"][0] for given in asked(server, "query_range")]
    assert queries[0] == 'sum by (region, route) (rate(http_total{job="a",code=~"5.."}[3600s]))'


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sum(rate(a[{{.window}}]))", "sum by (x) (rate(a[{{.window}}]))"),
        ("sum by (b, c) (rate(a[{{.window}}]))", "sum by (x) (rate(a[{{.window}}]))"),
        ("SUM (rate(a[{{.window}}])) without (b)", "sum by (x) (rate(a[{{.window}}]))"),
        (
            'sum(rate(a{b="sum(x)"}[{{.window}}])) - sum(rate(c[{{.window}}]))',
            'sum by (x) (rate(a{b="sum(x)"}[{{.window}}])) - sum by (x) (rate(c[{{.window}}]))',
        ),
    ],
)
def test_every_sum_is_by_the_labels(query, expected):
    assert sliced(objective(BadAndTotal(query, query)), ("x",)).bad == expected


def test_counts_of_a_window_are_no_rates(server):
    query = 'sum(increase(a{claudescope_step_valid="false"}[{{.window}}]))'
    cells = Prometheus(server.url).cells(objective(BadAndTotal(query, query, "window")), AT, 3600)
    assert cells.now.bad == pytest.approx(0.05 + 2 * 0.001)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (Ratio("a / b"), "is a query for a share"),
        (BadAndTotal("a", "b"), "are no sums"),
        (Indicator("time_to_first_chunk", bound=3.333), "is no bucket boundary"),
    ],
)
def test_what_cannot_be_told_apart_says_why(server, source, why):
    with pytest.raises(UnslicedError, match=why):
        Prometheus(server.url).cells(objective(source), AT, 3600)


# ----------------------------------------------------------------------------------------------------------- examples


def exemplar(trace, at, value="1", **labels):
    found = {"labels": {"trace_id": trace}, "value": value, "timestamp": at}
    return {"seriesLabels": {"service_name": "shop", **labels}, "exemplars": [found]}


def traces(server, source, labels=None):
    found = Prometheus(server.url).traces(objective(source), labels or {}, AT, 3600)
    return [trace.id for trace in found]


def test_examples_are_the_newest_of_the_slice_once_each(server):
    server.answers.exemplars = [
        exemplar("a", 1),
        exemplar("b", 2, gen_ai_tool_name="search"),
        exemplar("a", 5),
        exemplar("c", 9, gen_ai_tool_name="pay"),
        exemplar("d", 3),
        exemplar("e", 4),
        {"seriesLabels": None, "exemplars": [{"labels": {}, "value": "x"}, 7]},
        "nothing",
    ]
    assert traces(server, VALIDITY, {"gen_ai_tool_name": "search"}) == ["a", "e", "d"]
    (given,) = asked(server, "query_exemplars")
    assert given["query"] == ['sum(rate(claudescope_steps_total{claudescope_step_valid="false"}[5m]))']
    assert traces(server, Indicator("step_validity", where=Selection(service=("other",)))) == []


@pytest.mark.parametrize(
    ("measure", "bound", "metric", "found"),
    [
        ("step_latency", 10.0, "claudescope_step_duration_seconds_bucket", ["over"]),
        ("time_to_first_chunk", 5.12, "gen_ai_client_operation_time_to_first_chunk_seconds_bucket", ["over"]),
        ("step_confidence", 7.0, "claudescope_step_confidence_bucket", ["under"]),
        ("saturation", 7.0, "claudescope_ratelimit_used_bucket", ["over"]),
    ],
)
def test_examples_of_a_bound_are_beyond_it(server, measure, bound, metric, found):
    server.answers.exemplars = [exemplar("under", 2, "1.5"), exemplar("over", 1, "12")]
    assert traces(server, Indicator(measure, bound=bound)) == found
    assert asked(server, "query_exemplars")[0]["query"] == [metric]


def test_a_query_for_a_share_has_no_examples(server):
    assert traces(server, Ratio("a")) == []
    assert traces(server, BadAndTotal("sum(a)", "sum(b)")) == []


# ------------------------------------------------------------------------------------------------------------ failures


def test_a_vector(server):
    server.answers.calls = {"up": [{"metric": {"job": "a"}, "value": [1, "2"]}, {"metric": {}, "value": None}]}
    (first, second) = Prometheus(server.url).vector("up", AT)
    assert first == ({"job": "a"}, 2.0)
    assert second[1] != second[1]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((503, {"error": "busy"}), "Prometheus answers 503"),
        ((200, b"<html>"), "is no Prometheus"),
        ((200, []), "is no Prometheus"),
        ((200, {}), "is no Prometheus"),
    ],
)
def test_who_does_not_help_is_said(server, answer, why):
    server.answer = lambda one: answer
    with pytest.raises(PrometheusError, match=why):
        Prometheus(server.url).vector("up", AT)


def test_who_does_not_answer_is_said():
    with pytest.raises(PrometheusError, match="does not answer"):
        Prometheus("http://127.0.0.1:9").cells(objective(VALIDITY), AT, 3600)


def test_labels_are_left_out_while_they_make_too_long_an_answer(server):
    def answer(one):
        if one.path.endswith("query_range") and "gen_ai_tool_name" in str(one.body):
            return 200, b" " * (24 * 2**20 + 1)
        return server.answers(one)

    server.answer = answer
    cells = Prometheus(server.url).cells(objective(VALIDITY), AT, 3600)
    assert cells.dimensions == ("service_name",)
    assert cells.now.total == pytest.approx(3 * 360)


def test_an_answer_that_is_too_long_is_not_kept(server, monkeypatch):
    monkeypatch.setattr("claudescope.slo.explain.prometheus._MAX_ANSWER", 10)
    with pytest.raises(PrometheusError, match="is over"):
        Prometheus(server.url).vector("up", AT)


@pytest.mark.parametrize(
    "series",
    [
        {"metric": {"a": "b"}, "values": [["x", "1"], [AT, "NaN"], [AT, "-1"], [AT, "+Inf"], [AT, None]]},
        {"metric": None, "values": None},
        "text",
    ],
)
def test_numbers_that_are_none_do_not_count(server, series):
    def answer(one):
        if one.path.endswith("query_range"):
            return 200, {"status": "success", "data": {"result": [series]}}
        return server.answers(one)

    server.answer = answer
    assert Prometheus(server.url).cells(objective(VALIDITY), AT, 3600).now == Counts(0, 0)


def test_no_redirect_is_followed_with_the_token(server):
    with Recorder(lambda asked: (302, {}, {"location": f"{server.url}/api/v1/query"})) as other:
        with pytest.raises(PrometheusError, match="Prometheus answers 302"):
            Prometheus(other.url, "a-token").cells(objective(VALIDITY), AT, 3600)
        assert other.asked
    assert not server.asked


@pytest.mark.parametrize("series", [{"values": [None]}, {"values": 3}, {"metric": "x"}, {"values": [[1]]}])
def test_series_that_are_none_are_said(server, series):
    server.answer = lambda one: (200, {"data": {"result": [series]} if one.path.endswith("range") else []})
    with pytest.raises(PrometheusError, match="is no Prometheus"):
        Prometheus(server.url).cells(objective(VALIDITY), AT, 3600)
