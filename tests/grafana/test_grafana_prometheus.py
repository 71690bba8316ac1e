"""Queries on a Prometheus: a real HTTP server with planted answers."""

import pytest
from grafana_server import Prometheus as Server
from grafana_server import serving

from claudescope.errors import UsageError
from claudescope.grafana.expressions import Expression
from claudescope.grafana.prometheus import Prometheus


def test_queries_without_a_number_are_listed_as_they_were_run():
    server = Server(
        {
            "one": [{"metric": {}, "value": [0, "0"]}],
            "nan": [{"metric": {}, "value": [0, "NaN"]}],
            "course[60s]": [{"metric": {}, "values": [[0, "NaN"], [1, "3"]]}],
            "flat": [{"metric": {}, "values": [[0, "NaN"]]}],
        }
    )
    queries = [
        Expression("a", "one", True),
        Expression("b", "nan", True),
        Expression("c", "course[$__range]"),
        Expression("d", "flat"),
        Expression("e", "absent", True),
        Expression("f", "absent", marks=True),
    ]
    with serving(server) as url:
        empty = list(Prometheus(url + "/", 60).without_data(queries))
    assert [(query.place, text) for query, text in empty] == [("b", "nan"), ("d", "flat"), ("e", "absent")]
    paths = [path for _, path, _ in server.asked]
    assert paths == ["/api/v1/query", "/api/v1/query", "/api/v1/query_range", "/api/v1/query_range", "/api/v1/query"]
    course = server.asked[2][2]
    assert float(course["end"]) - float(course["start"]) == pytest.approx(60, abs=0.01)
    assert course["step"] == "15"


def test_a_query_that_prometheus_refuses_has_no_data():
    with serving(Server(status=422)) as url:
        (found,) = Prometheus(url, 60).without_data([Expression("a", "x", True)])
    assert found[1] == "x"


@pytest.mark.parametrize("status", [401, 500])
def test_a_prometheus_that_fails_is_named(status):
    with serving(Server(status=status)) as url, pytest.raises(UsageError, match=f"answers {status}"):
        list(Prometheus(url, 60).without_data([Expression("a", "x", True)]))


def test_nothing_there_and_something_else_there():
    with pytest.raises(UsageError, match="does not answer"):
        list(Prometheus("http://127.0.0.1:9", 60).without_data([Expression("a", "x", True)]))
    with serving(lambda *_: (200, {"hello": 1})) as url, pytest.raises(UsageError, match="is no Prometheus"):
        list(Prometheus(url, 60).without_data([Expression("a", "x", True)]))
