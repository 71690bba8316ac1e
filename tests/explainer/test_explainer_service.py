"""The explainer over real HTTP: a webhook in, an explanation on the page, tickets out, once each."""

from __future__ import annotations

import base64
import json

import pytest
from explainer_kit import ENDS_MS, STARTS_MS, TOKEN, FakePrometheus, Recorder, alert, ask, eventually, running, webhook


@pytest.fixture
def prometheus():
    answers = FakePrometheus()
    with Recorder(answers) as server:
        server.answers = answers
        yield server


def explained(url, number=1):
    status, found, _ = ask(f"{url}/explanations/{number:016x}", Accept="application/json")
    return found if status == 200 and found["explained"] else None


def test_a_webhook_becomes_an_explanation_and_a_file(tmp_path, prometheus):
    prometheus.answers.exemplars = [
        {
            "seriesLabels": {"service_name": "shop", "gen_ai_tool_name": "search"},
            "exemplars": [
                {"labels": {"trace_id": f"{number:032x}"}, "value": "1", "timestamp": 1000 + number}
                for number in range(5)
            ],
        },
        {
            "seriesLabels": {"service_name": "shop", "gen_ai_tool_name": "pay"},
            "exemplars": [{"labels": {"trace_id": "f" * 32}, "value": "1", "timestamp": 2000}],
        },
    ]
    prometheus.answers.calls = {
        "claudescope_calls_total": [
            {"metric": {"service_name": "shop", "gen_ai_request_model": "claude-sonnet-5-5"}, "value": [1, "360"]}
        ],
        "tool_run": [{"metric": {"service_name": "shop", "gen_ai_tool_name": "search"}, "value": [1, "90"]}],
    }
    tickets = tmp_path / "tickets"
    with running(tmp_path, prometheus=prometheus.url, tickets=tickets, jaeger_public="http://jaeger.example") as it:
        status, answer, _ = ask(f"{it.url}/alerts", webhook(alert()))
        assert (status, answer) == (200, {"new": 1, "ended": 0, "known": 0, "ignored": 0, "malformed": 0})
        found = eventually(lambda: explained(it.url))
        assert found["explanation"]["verdict"] == "slices"
        first = found["explanation"]["slices"][0]
        assert first["labels"]["gen_ai_tool_name"] == "search"
        # .05 a second for an hour, where the baseline has .001
        assert first["bad"] == pytest.approx(180, abs=0.01)
        assert first["total"] == pytest.approx(360, abs=0.01)
        # the newest first, of the slice alone
        assert [trace["id"] for trace in found["traces"]] == [f"{number:032x}" for number in (4, 3, 2)]
        assert found["traces"][0]["url"] == f"http://jaeger.example/trace/{4:032x}"
        assert found["topology"] == {
            "services": ["shop"],
            "calls": [
                {"from": "shop", "to": "claude-sonnet-5-5", "kind": "model", "count": 360.0},
                {"from": "shop", "to": "search", "kind": "tool", "count": 90.0},
            ],
        }
        assert found["objective"] == {
            "id": "shop-validity",
            "service": "shop",
            "name": "validity",
            "target": 0.99,
            "period": "30d",
            "description": "Steps are valid.",
        }
        assert found["window"]["to_ms"] - found["window"]["from_ms"] == 3_600_000
        (file,) = eventually(lambda: list(tickets.glob("*.json")))
        assert file.name == f"{1:016x}-{STARTS_MS}.json"
        assert json.loads(file.read_text())["links"] == {
            "explanation": f"{it.url}/explanations/{1:016x}?starts={STARTS_MS}",
            "dashboard": found["links"]["dashboard"],
            "prometheus": "http://localhost:9090/graph?g0.expr=x",
        }
        assert found["links"]["dashboard"].startswith(
            "http://localhost:3000/d/claudescope-slo?var-slo=shop-validity&from="
        )
        assert file.stat().st_mode & 0o777 == 0o640
    ranges = [given for path, given in prometheus.answers.queries if path == "query_range"]
    assert len(ranges) == 2  # bad and total, now and before in one
    assert {given["step"][0] for given in ranges} == {"3600"}
    assert {float(given["end"][0]) - float(given["start"][0]) for given in ranges} == {8 * 3600.0}


def test_an_alert_that_is_told_again_is_one_and_its_end_is_written_once(tmp_path, prometheus):
    with Recorder() as hook, running(tmp_path, prometheus=prometheus.url, webhook=hook.url + "/tickets") as it:
        for _ in range(3):
            ask(f"{it.url}/alerts", webhook(alert()))
        assert eventually(lambda: hook.asked)
        assert ask(f"{it.url}/alerts", webhook(alert()))[1]["known"] == 1
        assert ask(f"{it.url}/alerts", webhook(alert(ended=True)))[1]["ended"] == 1
        assert eventually(lambda: len(hook.asked) == 2)
        for _ in range(2):
            assert ask(f"{it.url}/alerts", webhook(alert(ended=True)))[1]["known"] == 1
        assert eventually(lambda: ask(f"{it.url}/healthz")[1]["waiting"] == 0)
        # the same alert, fired anew: another ticket
        assert ask(f"{it.url}/alerts", webhook(alert(starts="2026-11-30T12:00:00Z")))[1]["new"] == 1
        assert eventually(lambda: len(hook.asked) == 3)
    keys = [one.headers["idempotency-key"] for one in hook.asked]
    key = f"{1:016x}-{STARTS_MS}"
    assert keys == [key, f"{key}-resolved", f"{1:016x}-{STARTS_MS + 7_200_000}"]
    firing, ended, _ = (one.body for one in hook.asked)
    assert (firing["status"], firing["ends_ms"]) == ("firing", None)
    assert (ended["status"], ended["ends_ms"]) == ("resolved", ENDS_MS)
    assert {(one.method, one.path) for one in hook.asked} == {("POST", "/tickets")}
    assert all("authorization" not in one.headers for one in hook.asked)


def test_who_shows_no_token_or_a_wrong_one_is_not_let_in(tmp_path, prometheus):
    with running(tmp_path, prometheus=prometheus.url) as it:
        body = webhook(alert())
        basic = {"Authorization": f"Basic {base64.b64encode(f'anyone:{TOKEN}'.encode()).decode()}"}
        for token, headers in (("", {}), ("wrong", {}), ("", basic)):
            status, answer, told = ask(f"{it.url}/alerts", body, token=token, **headers)
            assert (status, answer["error"]["code"]) == (401, "token_needed")
            assert told["www-authenticate"] == "Bearer"
        for path in ("/", "/explanations", "/explanations/0000000000000001", "/explain?slo=shop-validity"):
            status, answer, told = ask(it.url + path, token="")
            assert (status, answer["error"]["code"]) == (401, "token_needed")
            assert told["www-authenticate"].startswith("Basic ")
        # a browser: the token is the password
        assert ask(f"{it.url}/explanations", token="", **basic)[0] == 200
        assert ask(f"{it.url}/explanations", token="", Authorization="Basic !")[0] == 401
        status, answer, _ = ask(f"{it.url}/healthz", token="")
        assert status == 200
        assert set(answer) == {"service", "version", "status", "waiting", "dead"}
        assert (answer["service"], answer["waiting"]) == ("claudescope explainer", 0)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b"[]", 400, "malformed"),
        (b'{"version": "3", "alerts": []}', 400, "malformed"),
        (b'{"version": "4"}', 400, "malformed"),
        (b'{"version": "4", "alerts": {}}', 400, "malformed"),
        (b"[" * 100_000, 400, "malformed"),
        (b" " * (16 * 2**20 + 1), 413, "too_large"),
    ],
)
def test_what_is_no_webhook_is_refused_with_a_reason(tmp_path, prometheus, body, status, code):
    with running(tmp_path, prometheus=prometheus.url) as it:
        found = ask(f"{it.url}/alerts", body, method="POST")
        assert (found[0], found[1]["error"]["code"]) == (status, code)
        assert ask(f"{it.url}/healthz")[1]["places"] == {}


def test_other_content_and_other_methods_are_refused(tmp_path, prometheus):
    with running(tmp_path, prometheus=prometheus.url) as it:
        assert ask(f"{it.url}/alerts", b"a=b", Content_Type="application/x-www-form-urlencoded")[0] == 415
        assert ask(f"{it.url}/alerts")[0] == 405
        assert ask(f"{it.url}/nothing")[0] == 404
        assert ask(f"{it.url}/explanations/zzz")[0] == 404
        assert ask(f"{it.url}/explanations/{1:016x}?starts=now")[0] == 400
        assert ask(f"{it.url}/explanations?x={'y' * 9000}")[0] == 414


def test_good_alerts_of_a_webhook_are_taken_beside_bad_ones(tmp_path, prometheus):
    bad = [
        None,
        {},
        {**alert(2), "fingerprint": "nope"},
        {**alert(3), "labels": {"a": 1}},
        {**alert(4), "startsAt": "yesterday"},
        {**alert(5), "status": "maybe"},
        {**alert(6), "labels": {}},
    ]
    other = {**alert(7), "labels": {"alertname": "CollectorDown", "severity": "page"}}
    body = webhook(alert())
    body["alerts"] += [*bad, other]
    with running(tmp_path, prometheus=prometheus.url) as it:
        assert ask(f"{it.url}/alerts", body)[1] == {"new": 1, "ended": 0, "known": 0, "ignored": 1, "malformed": 7}
        assert ask(f"{it.url}/healthz")[1]["ignored"] == 1


def test_the_pages_of_an_alert(tmp_path, prometheus):
    hostile = "<script>alert(1)</script>\"'`"
    with running(tmp_path, prometheus=prometheus.url, public="https://explainer.example") as it:
        ask(f"{it.url}/alerts", webhook(alert(tier=hostile)))
        assert eventually(lambda: explained(it.url))
        url = f"{it.url}/explanations/{1:016x}"
        status, html, headers = ask(url, Accept="text/html")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert "default-src 'none'" in headers["content-security-policy"]
        text = ask(f"{url}?format=text")[1]
        assert "search" in text
        assert f"Explanation: https://explainer.example/explanations/{1:016x}?starts={STARTS_MS}" in text
        status, picture, headers = ask(f"{url}?format=svg")
        assert (status, headers["content-type"]) == (200, "image/svg+xml")
        assert picture.startswith("<svg")
        listed = ask(f"{it.url}/explanations", Accept="text/html")[1]
        assert "shop-validity" in listed
        assert "tool search" in listed
        items = ask(f"{it.url}/explanations?slo=shop-validity&service_name=shop", Accept="application/json")[1]["items"]
        assert [one["fingerprint"] for one in items] == [f"{1:016x}"]
        assert ask(f"{it.url}/explanations?slo=other&format=json")[1] == {"items": []}
        assert "There are none" in ask(f"{it.url}/explanations?slo=other&format=html")[1]
        status, _, headers = ask(f"{it.url}/explain?slo=shop-validity&window=1h&service_name=shop")
        assert (status, headers["location"]) == (303, f"explanations/{1:016x}?starts={STARTS_MS}")
        assert ask(f"{it.url}/explain?slo=other")[2]["location"] == "explanations?claudescope_slo=other"
        assert ask(f"{it.url}/")[2]["location"] == "explanations"
        assert ask(f"{it.url}/style.css", token="")[2]["content-type"].startswith("text/css")


def test_an_unknown_objective_and_a_prometheus_that_is_away_still_give_a_ticket(tmp_path, prometheus):
    prometheus.answers.status = 503
    more = {"prometheus": prometheus.url, "tickets": tmp_path / "tickets", "explain_within": "1s"}
    with running(tmp_path, **more) as it:
        ask(f"{it.url}/alerts", webhook(alert(1), alert(2, claudescope_slo="other-thing")))
        unknown = eventually(lambda: explained(it.url, 2))
        assert unknown["problem"] == "The objective other-thing is in none of the explainer's files."
        assert explained(it.url, 1) is None or explained(it.url, 1)["problem"]
        away = eventually(lambda: explained(it.url, 1))
        assert away["problem"].startswith("There is no explanation: Prometheus answers 503")
        assert eventually(lambda: len(list((tmp_path / "tickets").iterdir())) == 2)


def test_the_token_is_in_no_answer_and_no_log(tmp_path, prometheus, caplog):
    caplog.set_level("DEBUG", "claudescope")
    with running(tmp_path, prometheus=prometheus.url, tickets=tmp_path / "tickets") as it:
        ask(f"{it.url}/alerts", webhook(alert()))
        assert eventually(lambda: explained(it.url))
        for path in ("/healthz", "/explanations?format=json", f"/explanations/{1:016x}"):
            assert TOKEN not in str(ask(it.url + path))
    assert caplog.records
    assert TOKEN not in caplog.text
