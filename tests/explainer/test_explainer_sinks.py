"""What Jira, GitHub and a webhook are sent, to the byte that counts: method, path, headers and body."""

from __future__ import annotations

import base64

import orjson
import pytest
from explainer_kit import ENDS_MS, STARTS_MS, Recorder

from claudescope.errors import UsageError
from claudescope.explainer.alert import Alert
from claudescope.explainer.outbound import AwayError, HttpCaller, RefusedError
from claudescope.explainer.queue import Kept
from claudescope.explainer.sinks.folder import FolderSink
from claudescope.explainer.sinks.github import GitHubSink
from claudescope.explainer.sinks.jira import JiraSink
from claudescope.explainer.sinks.webhook import WebhookSink
from claudescope.explainer.ticket import Links, Ticket
from claudescope.version import __version__

KEY = f"{1:016x}-{STARTS_MS}"
LINKS = Links("https://explainer.example", "https://grafana.example", "https://jaeger.example")
PAGE = f"https://explainer.example/explanations/{1:016x}?starts={STARTS_MS}"
BOARD = (
    "https://grafana.example/d/claudescope-slo?var-slo=shop-validity"
    f"&from={STARTS_MS - 3_600_000 - 600_000}&to={STARTS_MS + 600_000}"
)
TRACE = "1" * 32
REPORT = {
    "objective": {
        "id": "shop-validity",
        "service": "shop",
        "name": "validity",
        "target": 0.99,
        "period": "30d",
        "description": "Steps are valid.",
    },
    "window": {"from_ms": STARTS_MS - 3_600_000, "to_ms": STARTS_MS},
    "explanation": {
        "verdict": "slices",
        "slices": [{"labels": {"gen_ai_tool_name": "search"}, "bad": 180, "total": 360}],
    },
    "text": "tool search: 180 of 360 steps are bad, 3.6 were to be expected.",
    "svg": "<svg/>",
    "traces": [{"id": TRACE, "url": f"https://jaeger.example/trace/{TRACE}"}],
    "topology": {
        "services": ["pay", "shop"],
        "calls": [
            {"from": "shop", "to": "claude-sonnet-5-5", "kind": "model", "count": 360.0},
            {"from": "shop", "to": "pay", "kind": "service", "count": 12.5},
        ],
    },
    "problem": "",
}
TEXT = f"""\
20 % of steps are invalid.
Objective shop-validity: 99 % over 30d. Steps are valid.
Firing since 2026-11-30 10:00:00 UTC.

What burns:
tool search: 180 of 360 steps are bad, 3.6 were to be expected.

Services and what they call:
shop -> claude-sonnet-5-5 (model): 360 calls
shop -> pay (service): 12.5 calls

Explanation: {PAGE}
Dashboard: {BOARD}
Prometheus: http://localhost:9090/graph
Trace: https://jaeger.example/trace/{TRACE}

Alert {KEY}: claudescope_slo=shop-validity, severity=page"""
ENDED = TEXT.replace("10:00:00 UTC.", "10:00:00 UTC.\nEnded 2026-11-30 11:30:00 UTC.")
TITLE = "shop-validity burns its error budget: tool search (page)"
AGENT = f"claudescope/{__version__}"


def ticket(*, ends=None, report=REPORT, annotations=None, labels=None):
    given = {"claudescope_slo": "shop-validity", "severity": "page", **(labels or {})}
    said = {"description": "20 % of steps are invalid.", **(annotations or {})}
    alert = Alert(f"{1:016x}", STARTS_MS, ends, given, said, "http://localhost:9090/graph")
    return Ticket(Kept(1, alert, STARTS_MS, report), LINKS)


@pytest.fixture
def server():
    with Recorder() as recorder:
        yield recorder


def only(server, *names):
    """Of each request: method, path, query, the headers that matter, body."""
    return [
        (one.method, one.path, one.query, {name: one.headers.get(name) for name in names}, one.body)
        for one in server.asked
    ]


def test_the_text_of_a_ticket():
    assert ticket().text() == TEXT
    assert ticket().title == TITLE
    assert ticket(ends=ENDS_MS).text() == ENDED


def test_a_ticket_without_an_explanation_says_why():
    bare = ticket(report={"problem": "There is no explanation: Prometheus does not answer."})
    assert "What burns:\nThere is no explanation: Prometheus does not answer.\n" in bare.text()
    assert bare.json()["topology"] == {"services": [], "calls": []}
    nothing = ticket(report=None)
    assert "What burns" not in nothing.text()
    assert nothing.json()["explanation"] is None


def test_the_dashboard_that_the_alert_names_wins():
    def board(**annotations):
        return ticket(annotations=annotations).links_by_name()["dashboard"].partition("from=")[0]

    assert board(dashboard="https://g.example/d/x?var-a=b") == "https://grafana.example/d/x?var-a=b&"
    assert board(dashboard="https://runbooks.example/burns") == "https://runbooks.example/burns?"
    assert board(dashboard="/d/claudescope-slo") == "https://grafana.example/d/claudescope-slo?"
    assert board(dashboard="javascript:alert(1)").startswith("https://grafana.example/d/claudescope-slo?var-slo=")
    named = Ticket(ticket(annotations={"dashboard": "https://g.example/d/x?var-a=b"}).kept, Links("https://e.example"))
    assert named.links_by_name()["dashboard"].startswith("https://g.example/d/x?var-a=b&from=")
    without = Ticket(ticket().kept, Links("https://e.example"))
    assert "dashboard" not in without.links_by_name()
    assert without.links.trace(TRACE) == ""


def test_many_calls_are_cut():
    calls = [{"from": "a", "to": f"b{number}", "kind": "tool", "count": 1.0} for number in range(40)]
    text = ticket(report={**REPORT, "topology": {"services": ["a"], "calls": calls}}).text()
    assert "a -> b29 (tool): 1 calls\nand 10 more\n" in text
    assert "b30" not in text


# ---------------------------------------------------------------------------------------------------------- webhook


@pytest.mark.parametrize("said", [b"ok", b"", b"<html>", b"x" * (9 << 20)])
def test_a_webhook_that_took_it_and_says_no_json_gets_it_once(server, said):
    server.answer = lambda asked: (200, said)
    assert WebhookSink(f"{server.url}/hook", "", HttpCaller(5)).open(ticket()) == KEY
    assert len(server.asked) == 1


def test_webhook(server):
    sink = WebhookSink(f"{server.url}/hook", "their-token", HttpCaller(5))
    assert sink.find(ticket(), 0) is None
    assert sink.open(ticket()) == KEY
    sink.close(ticket(ends=ENDS_MS), KEY)
    names = ("authorization", "content-type", "idempotency-key", "accept", "user-agent")
    headers = {
        "authorization": "Bearer their-token",
        "content-type": "application/json",
        "accept": "application/json",
        "user-agent": AGENT,
    }
    body = {
        "version": 1,
        "key": KEY,
        "status": "firing",
        "title": TITLE,
        "fingerprint": f"{1:016x}",
        "starts_ms": STARTS_MS,
        "ends_ms": None,
        "labels": {"claudescope_slo": "shop-validity", "severity": "page"},
        "annotations": {"description": "20 % of steps are invalid."},
        "objective": REPORT["objective"],
        "window": REPORT["window"],
        "explanation": REPORT["explanation"],
        "problem": "",
        "text": TEXT,
        "links": {"explanation": PAGE, "dashboard": BOARD, "prometheus": "http://localhost:9090/graph"},
        "traces": REPORT["traces"],
        "topology": REPORT["topology"],
    }
    assert only(server, *names) == [
        ("POST", "/hook", {}, {**headers, "idempotency-key": KEY}, body),
        (
            "POST",
            "/hook",
            {},
            {**headers, "idempotency-key": f"{KEY}-resolved"},
            {**body, "status": "resolved", "ends_ms": ENDS_MS, "text": ENDED},
        ),
    ]


# ----------------------------------------------------------------------------------------------------------- GitHub

GITHUB = ("accept", "x-github-api-version", "authorization")
GITHUB_HEADERS = {
    "accept": "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
    "authorization": "Bearer ghp_token",
}
ISSUE = (
    f"<!-- claudescope {KEY} -->\n"
    f"[explanation]({PAGE}) · [dashboard]({BOARD}) · [prometheus](http://localhost:9090/graph)\n\n"
    f"```text\n{TEXT}\n```\n"
)


def github(server):
    return GitHubSink(server.url, "acme/shop", "ghp_token", HttpCaller(5))


def test_github_opens_an_issue(server):
    server.answer = lambda asked: (201, {"number": 12})
    assert github(server).open(ticket()) == "12"
    body = {"title": TITLE, "body": ISSUE, "labels": ["claudescope"]}
    assert only(server, *GITHUB) == [("POST", "/repos/acme/shop/issues", {}, GITHUB_HEADERS, body)]


def test_github_finds_what_a_lost_try_has_made(server):
    issues = [
        {"number": 3, "body": None},
        {"number": 4, "body": "about <!-- claudescope"},
        {"number": 5, "body": ISSUE},
    ]
    server.answer = lambda asked: (200, issues)
    assert github(server).find(ticket(), STARTS_MS + 999) == "5"
    issues.pop()
    assert github(server).find(ticket(), STARTS_MS) is None
    query = {
        "labels": ["claudescope"],
        "state": ["all"],
        "since": ["2026-11-30T10:00:00Z"],
        "per_page": ["100"],
        "sort": ["created"],
    }
    assert only(server, *GITHUB) == 2 * [("GET", "/repos/acme/shop/issues", query, GITHUB_HEADERS, "")]


def test_github_closes_it_with_a_comment_unless_somebody_has(server):
    state = {"state": "open"}
    server.answer = lambda asked: (200, state)
    github(server).close(ticket(ends=ENDS_MS), "12")
    assert only(server) == [
        ("GET", "/repos/acme/shop/issues/12", {}, {}, ""),
        (
            "POST",
            "/repos/acme/shop/issues/12/comments",
            {},
            {},
            {"body": "The alert ended at 2026-11-30 11:30:00 UTC."},
        ),
        ("PATCH", "/repos/acme/shop/issues/12", {}, {}, {"state": "closed", "state_reason": "completed"}),
    ]
    server.asked.clear()
    state["state"] = "closed"
    github(server).close(ticket(ends=ENDS_MS), "12")
    assert [one.method for one in server.asked] == ["GET"]


def test_github_shows_labels_of_apps_as_they_are(server):
    server.answer = lambda asked: (201, {"number": 1})
    github(server).open(ticket(labels={"tool": "````\n@everyone ![x](http://x)"}))
    lines = server.asked[0].body["body"].splitlines()
    assert lines[3] == "`````text"  # longer than any in it
    assert lines[-1] == "`````"
    assert "@everyone ![x](http://x)" in server.asked[0].body["body"]


@pytest.mark.parametrize("answer", [None, [], {}, {"number": "1"}])
def test_github_that_does_not_name_the_issue_is_asked_again(server, answer):
    server.answer = lambda asked: (201, answer)
    with pytest.raises(AwayError, match="no number"):
        github(server).open(ticket())


# ------------------------------------------------------------------------------------------------------------- Jira

BASIC = "Basic " + base64.b64encode(b"bot@example.com:jira-token").decode()
DESCRIPTION = (
    f"[explanation|{PAGE}]\n[dashboard|{BOARD}]\n[prometheus|http://localhost:9090/graph]\n\n"
    f"{{noformat}}\n{TEXT}\n{{noformat}}"
)


def jira(server, user="bot@example.com", done=""):
    return JiraSink(server.url, "OPS", "Bug", (user, "jira-token"), done, HttpCaller(5))


def test_jira_opens_an_issue(server):
    server.answer = lambda asked: (201, {"id": "10000", "key": "OPS-7"})
    assert jira(server).open(ticket()) == "OPS-7"
    fields = {
        "project": {"key": "OPS"},
        "issuetype": {"name": "Bug"},
        "summary": TITLE,
        "description": DESCRIPTION,
        "labels": ["claudescope", f"claudescope-{KEY}"],
    }
    assert only(server, "authorization", "content-type") == [
        (
            "POST",
            "/rest/api/2/issue",
            {},
            {"authorization": BASIC, "content-type": "application/json"},
            {"fields": fields},
        )
    ]


@pytest.mark.parametrize(
    ("user", "path", "header"),
    [
        ("bot@example.com", "/rest/api/2/search/jql", BASIC),
        ("", "/rest/api/2/search", "Bearer jira-token"),
    ],
)
def test_jira_finds_what_a_lost_try_has_made(server, user, path, header):
    found = {"issues": [{"key": "OPS-7"}]}
    server.answer = lambda asked: (200, found)
    assert jira(server, user).find(ticket(), 0) == "OPS-7"
    found["issues"] = []
    assert jira(server, user).find(ticket(), 0) is None
    query = {"jql": [f'labels = "claudescope-{KEY}"'], "fields": ["key"], "maxResults": ["1"]}
    assert only(server, "authorization") == 2 * [("GET", path, query, {"authorization": header}, "")]


def test_jira_comments_and_takes_the_transition(server):
    comments = []
    transitions = [{"id": "11", "name": "In Progress"}, {"id": "31", "name": "done"}]

    def answer(asked):
        if asked.method == "POST":
            return (204, None) if asked.path.endswith("transitions") else (201, {})
        return 200, {"comments": comments, "transitions": transitions}

    server.answer = answer
    jira(server, done="Done").close(ticket(ends=ENDS_MS), "OPS-7")
    said = {"body": "The alert ended at 2026-11-30 11:30:00 UTC."}
    assert only(server) == [
        ("GET", "/rest/api/2/issue/OPS-7/comment", {}, {}, ""),
        ("POST", "/rest/api/2/issue/OPS-7/comment", {}, {}, said),
        ("GET", "/rest/api/2/issue/OPS-7/transitions", {}, {}, ""),
        ("POST", "/rest/api/2/issue/OPS-7/transitions", {}, {}, {"transition": {"id": "31"}}),
    ]
    server.asked.clear()
    comments.append(said)  # a kill came between comment and transition; the issue is closed by now
    transitions.pop()
    jira(server, done="Done").close(ticket(ends=ENDS_MS), "OPS-7")
    assert [one.method for one in server.asked] == ["GET", "GET"]
    server.asked.clear()
    jira(server).close(ticket(ends=ENDS_MS), "OPS-7")
    assert [one.path for one in server.asked] == ["/rest/api/2/issue/OPS-7/comment"]


def test_jira_shows_labels_of_apps_as_they_are(server):
    server.answer = lambda asked: (201, {"key": "OPS-1"})
    jira(server).open(ticket(labels={"tool": "{noformat}[x|http://x]"}))
    assert server.asked[0].body["fields"]["description"].count("{noformat}") == 2


@pytest.mark.parametrize("answer", [None, [], {}, {"key": 7}])
def test_jira_that_does_not_name_the_issue_is_asked_again(server, answer):
    server.answer = lambda asked: (201, answer)
    with pytest.raises(AwayError, match="no key"):
        jira(server).open(ticket())


# ------------------------------------------------------------------------------------------------- files, and failures


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        FolderSink(tmp_path / "file")
    sink = FolderSink(tmp_path / "tickets")
    (tmp_path / "tickets").rmdir()
    with pytest.raises(AwayError, match="cannot be written: No such file"):
        sink.open(ticket())


def test_a_file_is_whole_or_not_there(tmp_path):
    sink = FolderSink(tmp_path / "tickets")
    assert sink.find(ticket(), 0) is None
    assert sink.open(ticket()) == f"{KEY}.json"
    sink.close(ticket(ends=ENDS_MS), f"{KEY}.json")
    (file,) = (tmp_path / "tickets").iterdir()
    assert orjson.loads(file.read_bytes()) == ticket(ends=ENDS_MS).json()
    file.unlink()
    file.mkdir()  # nothing can take its place
    with pytest.raises(AwayError, match="cannot be written: Is a directory"):
        sink.open(ticket())
    assert list((tmp_path / "tickets").iterdir()) == [file]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_refused_for_good_is_not_tried_again(server, status):
    server.answer = lambda asked: (status, {"message": "no\nsuch project"})
    with pytest.raises(RefusedError, match=rf"it answers {status}: .*no.*such project"):
        jira(server).open(ticket())


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (401, {}, 0),
        (403, {"Retry-After": "60"}, 60),
        (404, {}, 0),
        (429, {"Retry-After": "7"}, 7),
        (503, {"Retry-After": "Mon, 30 Nov 2026 10:00:30 GMT"}, 30),
        (500, {"Retry-After": "soon"}, 0),
        (302, {"Location": "http://127.0.0.1:9/elsewhere"}, 0),
    ],
)
def test_what_may_work_later_says_when(server, status, headers, wait):
    server.answer = lambda asked: (status, {}, headers)
    call = HttpCaller(5, lambda: STARTS_MS / 1000)
    with pytest.raises(AwayError, match=f"it answers {status}") as caught:
        WebhookSink(server.url, "secret-token", call).open(ticket())
    assert caught.value.wait == wait
    assert "secret-token" not in str(caught.value)
    assert len(server.asked) == 1  # no redirect is followed: it would carry the token


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/", "nothing listens there"),
        ("http://name.invalid/", "Name or service|resolution|nodename"),
    ],
)
def test_who_does_not_answer_is_tried_again(url, why):
    with pytest.raises(AwayError, match=why):
        HttpCaller(5)("GET", url)


def test_answers_that_are_too_long_late_or_no_json(server):
    server.answer = lambda asked: (200, b"x" * (8 * 2**20 + 1))
    with pytest.raises(AwayError, match="over 8 MiB"):
        HttpCaller(5)("GET", server.url)
    server.answer = lambda asked: (200, b"<html>")
    with pytest.raises(AwayError, match="no JSON"):
        HttpCaller(5)("GET", server.url)
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(AwayError, match=r"no answer within 0\.2 s"):
        HttpCaller(0.2)("GET", f"http://127.0.0.1:{mute.getsockname()[1]}")
