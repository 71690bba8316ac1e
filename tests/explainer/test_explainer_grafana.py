"""Annotations, through the real grafana-client against a server that answers as Grafana does.

There is no Grafana here: method, path, headers and body are those of its HTTP API's documentation, and are asserted
whole. grafana-client is in a folder of its own (see tests/grafana/client_folder.py), which only the explainer sees.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from explainer_kit import ENDS_MS, STARTS_MS, FakePrometheus, Recorder, alert, ask, eventually, process, webhook

sys.path.insert(0, str(Path(__file__).parents[1] / "grafana"))

import client_folder

pytestmark = pytest.mark.slow

KEY = f"{1:016x}-{STARTS_MS}"
TAGS = ["claudescope-slo", "slo:shop-validity", "severity:page", f"alert:{KEY}"]
TRACE = "a" * 32


@pytest.fixture(scope="module")
def client():
    return str(client_folder.make())


class Grafana:
    """Annotations as Grafana keeps them; ``fails`` are statuses of the next answers."""

    def __init__(self):
        self.annotations, self.fails = [], []

    def __call__(self, asked):
        if asked.headers.get("authorization") != "Bearer glsa_secret":
            return 401, {"message": "Unauthorized"}
        if self.fails:
            return self.fails.pop(0), {"message": "database is locked"}
        if asked.method == "POST":
            self.annotations.append({**asked.body, "id": 40 + len(self.annotations)})
            return 200, {"id": self.annotations[-1]["id"], "message": "Annotation added"}
        if asked.method == "PATCH":
            return 200, {"message": "Annotation patched"}
        return 200, [one for one in self.annotations if set(asked.query["tags"]) <= set(one["tags"])]


def start(tmp_path, prometheus, grafana, client, **more):
    variables = {
        "PROMETHEUS": prometheus.url,
        "GRAFANA": grafana.url,
        "GRAFANA_TOKEN": "glsa_secret",
        "GRAFANA_PUBLIC": "https://grafana.example",
        "JAEGER_PUBLIC": "https://jaeger.example",
        "PUBLIC": "https://explainer.example",
    }
    return process(tmp_path, extra_path=client, **{**variables, **more})


@pytest.fixture
def prometheus():
    answers = FakePrometheus()
    answers.exemplars = [
        {
            "seriesLabels": {"service_name": "shop", "gen_ai_tool_name": "search"},
            "exemplars": [{"labels": {"trace_id": TRACE}, "value": "1", "timestamp": 5}],
        }
    ]
    with Recorder(answers) as server:
        yield server


def test_an_annotation_is_made_and_gets_its_end(tmp_path, prometheus, client):
    answers = Grafana()
    with Recorder(answers) as grafana, start(tmp_path, prometheus, grafana, client) as it:
        hostile = alert(tool="<img src=x>")
        hostile["annotations"]["summary"] = "<b>shop</b> burns"
        ask(f"{it.url}/alerts", webhook(hostile))
        assert eventually(lambda: answers.annotations)
        assert eventually(lambda: ask(f"{it.url}/healthz")[1]["waiting"] == 0)
        ask(f"{it.url}/alerts", webhook({**hostile, **{k: alert(ended=True)[k] for k in ("status", "endsAt")}}))
        assert eventually(lambda: grafana.of("PATCH"))
        code, said = it.end()
    assert code == 0
    assert "glsa_secret" not in said
    (made,), (ended,) = grafana.of("POST"), grafana.of("PATCH")
    text = made.body.pop("text")
    assert (made.path, made.query) == ("/api/annotations", {})
    assert made.headers["authorization"] == "Bearer glsa_secret"
    assert made.body == {"panelId": None, "time": STARTS_MS, "timeEnd": None, "tags": TAGS}
    assert text.startswith("<b>&lt;b&gt;shop&lt;/b&gt; burns: ")
    assert "search" in text
    assert f'<a href="https://explainer.example/explanations/{1:016x}?starts={STARTS_MS}">explanation</a>' in text
    assert f'<a href="https://jaeger.example/trace/{TRACE}">trace</a>' in text
    assert 'href="https://grafana.example/d/claudescope-slo?var-slo=shop-validity&amp;from=' in text
    assert (ended.path, ended.query) == ("/api/annotations/40", {})
    assert {name: value for name, value in ended.body.items() if name != "text"} == {
        "time": STARTS_MS,
        "timeEnd": ENDS_MS,
        "tags": TAGS,
    }


def test_an_annotation_whose_answer_was_lost_is_found(tmp_path, prometheus, client):
    answers = Grafana()
    lost = []

    def answer(asked):
        found = answers(asked)
        if asked.method == "POST" and not lost:
            lost.append(None)
            return 502, {"message": "bad gateway"}
        return found

    with Recorder(answer) as grafana, start(tmp_path, prometheus, grafana, client) as it:
        ask(f"{it.url}/alerts", webhook(alert()))
        assert eventually(lambda: grafana.of("GET"))
        assert eventually(lambda: ask(f"{it.url}/healthz")[1]["waiting"] == 0)
    assert len(answers.annotations) == 1
    (sought,) = grafana.of("GET")
    assert (sought.path, sought.query) == (
        "/api/annotations",
        {
            "from": [str(STARTS_MS - 1)],
            "to": [str(STARTS_MS + 1)],
            "type": ["annotation"],
            "tags": ["claudescope-slo", f"alert:{KEY}"],
            "limit": ["1"],
        },
    )


@pytest.mark.parametrize(
    ("status", "dead", "said"),
    [(401, 0, "it answers 401: Unauthorized"), (500, 0, "it answers 500"), (400, 1, "it answers 400")],
)
def test_what_grafana_refuses_is_said(tmp_path, prometheus, client, status, dead, said):
    answers = Grafana()
    answers.fails = [status] * 100
    with Recorder(answers) as grafana, start(tmp_path, prometheus, grafana, client) as it:
        ask(f"{it.url}/alerts", webhook(alert()))

        def told():
            health = ask(f"{it.url}/healthz")[1]
            return health["dead"] == dead and (health["problems"].get("grafana") or health["dead_letters"]) and health

        health = eventually(told)
        assert said in str(health)


def test_a_grafana_that_is_away_is_said(tmp_path, prometheus, client):
    with Recorder() as grafana, start(tmp_path, prometheus, grafana, client, GRAFANA="http://127.0.0.1:9") as it:
        ask(f"{it.url}/alerts", webhook(alert()))
        problem = eventually(lambda: ask(f"{it.url}/healthz")[1]["problems"].get("grafana"))
        assert problem.startswith("it does not answer")
