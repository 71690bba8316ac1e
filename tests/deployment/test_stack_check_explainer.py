"""``claudescope stack check`` asks the explainer where it is part of the stack, and nobody where it is not."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stack_stubs import Stub

from claudescope.stack.checks import explainer
from claudescope.stack.parts import Stack

TOKEN = "an-explainer-token"
ROUTED = "route:\n  routes:\n  - receiver: explainer\n    matchers:\n"


def health(**more):
    def reply(request):
        found = {"service": "claudescope explainer", "version": "0.1.0", "status": "ok", "waiting": 0, "dead": 0}
        if request.headers.get("Authorization") == f"Bearer {TOKEN}":
            found |= {"places": {}, "problems": {}}
        return 200, {**found, **more}

    return reply


def pages(request):
    known = request.headers.get("Authorization") == f"Bearer {TOKEN}"
    return (200, {}) if known else (401, {})


@pytest.fixture
def stubs():
    """The explainer and Alertmanager, well; tests change their answers."""
    with contextlib.ExitStack() as closing:
        made = Stub({"/healthz": health(), "/explanations": pages}), Stub({"/api/v2/status": (200, status(ROUTED))})
        for stub in made:
            closing.callback(stub.close)
        yield made


def status(configuration):
    return {"versionInfo": {"version": "0.31.1"}, "config": {"original": configuration}}


def look(stubs, token=TOKEN, profiles="demo,explainer"):
    explaining, alerting = stubs
    values = {
        "CS_EXPLAINER_PORT": str(explaining.port),
        "CS_ALERTMANAGER_PORT": str(alerting.port),
        "CS_EXPLAINER_TOKEN": token,
        "COMPOSE_PROFILES": profiles,
    }
    return [(one.level, one.text) for one in explainer.api(Stack.load(Path("no-such-folder"), values))]


def test_it_is_asked_only_where_its_profile_is_on(stubs):
    assert look(stubs) == [("ok", f"The explainer 0.1.0 answers at http://127.0.0.1:{stubs[0].port}.")]
    assert look(stubs, profiles="demo") == look(stubs, profiles="") == []


def test_the_profile_of_the_folders_env_counts(tmp_path):
    (tmp_path / ".env").write_text("COMPOSE_PROFILES=explainer\nCS_EXPLAINER_TOKEN=t\n")
    stack = Stack.load(tmp_path, {})
    assert (stack.explainer, stack.explainer_token) == ("http://127.0.0.1:9096", "t")
    (tmp_path / ".env").write_text("")
    assert Stack.load(tmp_path, {}).explainer == ""


def fixes(stubs, **more):
    return [text for level, text in look(stubs, **more) if level == "fix"]


def test_each_thing_that_is_wrong_is_said(stubs):
    explaining, alerting = stubs
    assert fixes(stubs, token="another") == ["The explainer does not know CS_EXPLAINER_TOKEN."]
    explaining.replies["/healthz"] = health(problems={"jira": "it answers 401"}, dead=3)
    assert fixes(stubs) == ["The explainer's jira does not work: it answers 401.", "The explainer has 3 dead letters."]
    explaining.replies["/healthz"] = health()
    explaining.replies["/explanations"] = (200, {})
    assert fixes(stubs) == ["The explainer shows its pages without its token."]
    explaining.replies["/explanations"] = pages
    alerting.replies["/api/v2/status"] = (200, status("route:\n  receiver: default\n"))
    assert fixes(stubs) == ["Alertmanager sends nothing to the explainer."]
    alerting.replies["/api/v2/status"] = (500, {})  # which another check says
    assert fixes(stubs) == []
    explaining.replies["/healthz"] = lambda request: (503, {"service": "claudescope explainer", "status": "fails"})
    assert fixes(stubs) == ["The explainer's queue fails."]
    explaining.replies["/healthz"] = (200, {"service": "other"})
    (text,) = fixes(stubs)
    assert text.endswith("what has that port answers 200 to its health check.")
    explaining.close()
    (text,) = fixes(stubs)
    assert text.endswith(": nothing listens there.")


KEYS = ("service", "version", "status", "places", "problems", "dead", "config", "original")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["claudescope explainer", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(JSON, st.sampled_from([200, 401, 404, 500, 503]))
def test_whatever_answers_there_it_says_something(answer, code):
    stack = Stack(Path(), *["http://127.0.0.1:9"] * 6, "t", explainer="http://127.0.0.1:9", explainer_token="t")
    with mock.patch("urllib.request.OpenerDirector.open") as opened:
        opened.return_value.__enter__.return_value = mock.Mock(status=code, read=lambda _: json.dumps(answer).encode())
        assert all(finding.text.endswith(".") for finding in explainer.api(stack))
