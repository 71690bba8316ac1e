"""``claudescope explainer`` as a process: killed at the worst moments nothing is lost and nothing is done twice."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from explainer_kit import (
    ENDS_MS,
    STARTS_MS,
    TOKEN,
    FakePrometheus,
    Recorder,
    alert,
    ask,
    environment,
    eventually,
    process,
    webhook,
)

KEY = f"{1:016x}-{STARTS_MS}"


@pytest.fixture
def prometheus():
    answers = FakePrometheus()
    with Recorder(answers) as server:
        server.answers = answers
        yield server


class GitHub:
    """Issues as GitHub keeps them; ``hold`` makes one and then does not answer until it is released."""

    def __init__(self):
        self.issues, self.comments, self.hold = [], [], None
        self.made = threading.Event()

    def __call__(self, asked):
        if asked.method == "POST" and asked.path.endswith("/issues"):
            self.issues.append({"number": len(self.issues) + 1, "state": "open", **asked.body})
            self.made.set()
            if self.hold is not None:
                self.hold.wait(60)
            return 201, self.issues[-1]
        if asked.method == "POST":
            self.comments.append(asked.body["body"])
            return 201, {}
        if asked.path.endswith("/issues"):
            return 200, self.issues
        issue = self.issues[int(asked.path.rsplit("/", 1)[1]) - 1]
        if asked.method == "PATCH":
            issue.update(asked.body)
        return 200, issue


@pytest.fixture
def github():
    answers = GitHub()
    with Recorder(answers) as server:
        server.answers = answers
        yield server


def to_github(prometheus, github):
    return {
        "PROMETHEUS": prometheus.url,
        "GITHUB": github.url,
        "GITHUB_REPO": "acme/shop",
        "GITHUB_TOKEN": "ghp_secret",
    }


def idle(url):
    return ask(f"{url}/healthz")[1]["waiting"] == 0


def test_killed_between_the_answer_and_the_work_nothing_is_lost(tmp_path, prometheus, github):
    prometheus.answers.status = 503  # nothing is explained yet
    variables = to_github(prometheus, github)
    with process(tmp_path, **variables) as first:
        body = webhook(*(alert(number) for number in range(1, 6)))
        assert ask(f"{first.url}/alerts", body)[1]["new"] == 5
        first.kill()
    prometheus.answers.status = 200
    with process(tmp_path, **variables) as second:
        assert ask(f"{second.url}/alerts", body)[1] == {"new": 0, "ended": 0, "known": 5, "ignored": 0, "malformed": 0}
        assert eventually(lambda: idle(second.url))
        assert sorted(issue["body"].split()[2] for issue in github.answers.issues) == [
            f"{number:016x}-{STARTS_MS}" for number in range(1, 6)
        ]
        code, said = second.end()
    assert code == 0
    assert "ghp_secret" not in said
    assert TOKEN not in said
    assert "ticket of" in said


def test_killed_while_an_issue_is_made_it_is_found_and_not_made_again(tmp_path, prometheus, github):
    variables = to_github(prometheus, github)
    github.answers.hold = threading.Event()
    with process(tmp_path, **variables) as first:
        ask(f"{first.url}/alerts", webhook(alert()))
        assert github.answers.made.wait(60)
        first.kill()  # GitHub has it; who asked does not know
    github.answers.hold.set()
    with process(tmp_path, **variables) as second:
        assert eventually(lambda: idle(second.url))
        found = ask(f"{second.url}/explanations/{1:016x}?format=json")[1]
        assert found["explained"]
        ask(f"{second.url}/alerts", webhook(alert(ended=True)))
        assert eventually(lambda: github.answers.issues[0]["state"] == "closed" and idle(second.url))
    assert len(github.answers.issues) == 1
    assert github.answers.comments == ["The alert ended at 2026-11-30 11:30:00 UTC."]


def test_an_answer_that_comes_too_late_makes_no_second_issue(tmp_path, prometheus, github):
    github.answers.hold = threading.Event()
    with process(tmp_path, **to_github(prometheus, github), TIMEOUT="2") as it:
        ask(f"{it.url}/alerts", webhook(alert()))
        assert github.answers.made.wait(60)
        assert eventually(lambda: github.of("GET", "/repos/acme/shop/issues"))
        assert eventually(lambda: idle(it.url))
        github.answers.hold.set()
    assert len(github.answers.issues) == 1


def test_it_ends_at_a_signal_in_the_middle_of_work_and_goes_on_later(tmp_path, prometheus):
    held, asked = threading.Event(), threading.Event()
    keys = []

    def answer(one):
        asked.set()
        held.wait(30)
        keys.append(one.headers["idempotency-key"])
        return 200, {}

    with Recorder(answer) as hook:
        variables = {"PROMETHEUS": prometheus.url, "WEBHOOK": hook.url, "TIMEOUT": "30"}
        with process(tmp_path, **variables) as first:
            ask(f"{first.url}/alerts", webhook(alert(1), alert(2)))
            assert asked.wait(60)
            threading.Timer(0.5, held.set).start()
            code, _ = first.end()  # what is under way is finished, the rest stays
            assert code == 0
        with process(tmp_path, **variables) as second:
            assert eventually(lambda: idle(second.url))
    assert sorted(keys) == [f"{number:016x}-{STARTS_MS}" for number in (1, 2)]


def test_dead_letters_are_seen_and_tried_again_when_asked(tmp_path, prometheus):
    refuse = [True]
    with Recorder(lambda one: (422, {"message": "no"}) if refuse[0] else (200, {})) as hook:
        variables = {"PROMETHEUS": prometheus.url, "WEBHOOK": hook.url}
        with process(tmp_path, **variables) as first:
            ask(f"{first.url}/alerts", webhook(alert()))
            assert eventually(lambda: ask(f"{first.url}/healthz")[1]["dead"] == 1)
            (dead,) = ask(f"{first.url}/healthz")[1]["dead_letters"]
            assert dead == {
                "key": KEY,
                "place": "webhook",
                "phase": "open",
                "problem": 'it answers 422: {"message": "no"}',
            }
            assert "dead letter" in first.end()[1]
        refuse[0] = False
        with process(tmp_path, **variables) as second:
            assert ask(f"{second.url}/healthz")[1]["dead"] == 1
        with process(tmp_path, "--revive", **variables) as third:
            assert eventually(lambda: len(hook.asked) == 2)
            assert eventually(lambda: idle(third.url))
            assert ask(f"{third.url}/healthz")[1]["dead"] == 0


def run(tmp_path, *flags, **variables):
    env = {**environment(tmp_path), **variables}
    env = {name: value for name, value in env.items() if value is not None}
    command = [sys.executable, "-m", "claudescope", "explainer", *flags]
    return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("flags", "variables", "said"),
    [
        ([], {"CLAUDESCOPE_EXPLAINER_TOKEN": ""}, "The explainer has no token. Set CLAUDESCOPE_EXPLAINER_TOKEN"),
        ([], {"CLAUDESCOPE_EXPLAINER_SLO": ""}, "The explainer knows no objectives."),
        (["--slo", "none.yml"], {}, "none.yml"),
        (["--slo", "empty"], {}, "The folder has no *.yml"),
        (["--port", "many"], {}, "--port is 'many'. It takes a whole number"),
        (["--host", "no.such.host.invalid"], {}, "is not known here"),
        (["--prometheus", "http://a:b@c"], {}, "an address without a name and a password"),
        (["--tickets", "slo.yml"], {}, "cannot be written"),
        ([], {"CLAUDESCOPE_EXPLAINER_TOKNE": "x"}, "Did you mean CLAUDESCOPE_EXPLAINER_TOKEN?"),
        ([], {"CLAUDESCOPE_EXPLAINER_GRAFANA": "http://g"}, "Set CLAUDESCOPE_EXPLAINER_GRAFANA_TOKEN, too."),
        (
            [],
            {"CLAUDESCOPE_EXPLAINER_GRAFANA": "http://g", "CLAUDESCOPE_EXPLAINER_GRAFANA_TOKEN": "glsa_secret"},
            "the package grafana-client is not installed. Type pip install 'claudescope[grafana]'",
        ),
        ([], {"CLAUDESCOPE_EXPLAINER_TOKEN_FILE": "slo.yml"}, "Set only one of them."),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path, flags, variables, said):
    (tmp_path / "empty").mkdir()
    done = run(tmp_path, *flags, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_a_folder_and_a_port_that_are_taken_are_said(tmp_path, prometheus):
    with process(tmp_path, PROMETHEUS=prometheus.url) as first:
        assert first.line.endswith("(1 objectives; to its pages only)\n")
        assert "another explainer has it" in run(tmp_path).stderr
        port = first.url.rpartition(":")[2]
        (tmp_path / "other").mkdir()
        taken = run(tmp_path, "--data", "other/data", "--port", port).stderr
        assert f"The address 127.0.0.1:{port} cannot be listened on: Address already in use." in taken


def test_the_explainer_loads_no_sdk_of_the_api_and_no_grpc(tmp_path):
    code = (
        "import sys; import claudescope.cli.explainer, claudescope.explainer.service\n"
        "print(sorted({'anthropic', 'grpc', 'numpy', 'grafana_client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_ends_are_in_milliseconds_of_the_alert(tmp_path, prometheus):
    with Recorder() as hook, process(tmp_path, PROMETHEUS=prometheus.url, WEBHOOK=hook.url) as it:
        ask(f"{it.url}/alerts", webhook(alert()))
        ask(f"{it.url}/alerts", webhook(alert(ended=True)))
        assert eventually(lambda: hook.asked and hook.asked[-1].body["ends_ms"] == ENDS_MS)
