"""``claudescope dashboards build``, ``check`` and ``push`` as a person types them, against real HTTP servers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

import client_folder
from grafana_server import Grafana, serving
from grafana_server import Prometheus as Server

ROOT = Path(__file__).parents[2]
TITLES = {
    "claudescope-overview": "Overview",
    "claudescope-slo": "Objectives",
    "claudescope-steps": "Reasoning steps",
    "claudescope-quality": "Validity and confidence",
    "claudescope-tools": "Tools and agents",
    "claudescope-cost": "Tokens, cache and cost",
    "claudescope-pipeline": "Pipeline health",
}


def claudescope(*arguments, cwd, **environment):
    env = {key: value for key, value in os.environ.items() if not key.startswith("GRAFANA_")} | environment
    command = [sys.executable, "-m", "claudescope", "dashboards", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=100)


def test_build_writes_what_is_not_current_and_check_finds_nothing(tmp_path):
    first = claudescope("build", cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert [line.split()[0] for line in first.stdout.splitlines()] == ["written"] * 8
    again = claudescope("build", cwd=tmp_path)
    assert [line.split()[0] for line in again.stdout.splitlines()] == ["current"] * 8
    assert sorted(path.stem for path in (tmp_path / "dashboards" / "json").iterdir()) == sorted(TITLES)
    checked = claudescope("check", "--fail", cwd=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(checked.stdout.splitlines()) == 7
    assert all(line.endswith(" 0 faults") for line in checked.stdout.splitlines())


@pytest.mark.parametrize("arguments", [["build", "d", "--rules", "r"], ["check", str(ROOT / "dashboards")]])
def test_the_commands_load_no_sdk_of_the_api_and_no_grpc(tmp_path, arguments):
    heavy = ("anthropic", "grpc", "opentelemetry")
    code = (
        "import sys; from claudescope.cli.main import main\n"
        f"code = main(['dashboards', *{arguments!r}])\n"
        f"print(code, sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_prices_of_ones_own_are_in_the_rules_and_the_texts(tmp_path):
    model = {"match": "m", "input": 1, "output": 2, "cache_write_5m": 3, "cache_write_1h": 4, "cache_read": 5}
    table = {"date": "2031-02-03", "currency": "USD", "per": "million tokens", "models": [model]}
    (tmp_path / "own.json").write_text(json.dumps(table))
    assert claudescope("build", "d", "--rules", "r", "--prices", "own.json", cwd=tmp_path).returncode == 0
    rules = (tmp_path / "r" / "prices.yml").read_text()
    assert rules.count("record: ") == 5
    assert '"price_date": "2031-02-03"' in rules
    cost = json.loads((tmp_path / "d" / "json" / "claudescope-cost.json").read_text())
    assert cost["description"].endswith("List prices of 2031-02-03: no discounts, no batches, no server tools.")


def test_check_names_faults_and_exits_with_1_only_when_asked(tmp_path):
    panel = {"type": "stat", "title": "P", "targets": [{"refId": "A", "expr": "steps", "instant": True}], "glow": 1}
    (tmp_path / "mine.json").write_text(json.dumps({"title": "Mine", "panels": [panel]}))
    found = claudescope("check", ".", cwd=tmp_path)
    assert found.returncode == 0
    assert "1 queries, 2 faults" in found.stdout
    assert "lost key: panels[0].glow" in found.stdout
    assert "Mine / P / A: steps is no metric of semconv or the stack" in found.stdout
    assert claudescope("check", ".", "--fail", cwd=tmp_path).returncode == 1


def test_check_lists_queries_without_data(tmp_path):
    targets = [{"refId": "A", "expr": "up", "instant": True}, {"refId": "B", "expr": "up[$__range]", "instant": True}]
    (tmp_path / "mine.json").write_text(
        json.dumps({"title": "Mine", "panels": [{"type": "stat", "title": "P", "targets": targets}]})
    )
    server = Server({"up": [{"metric": {}, "value": [0, "1"]}]})
    with serving(server) as url:
        found = claudescope("check", ".", "--prometheus", url, "--range", "30m", "--fail", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stdout.splitlines()[1:] == ["  without data: 1", "    Mine / P / B", "      up[1800s]"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check"], "There are no dashboards in dashboards. Name their folder, or build them first."),
        (["check", "--range", "1y"], "--range is '1y'. It takes a time such as 30m, 1h or 7d."),
        (["build", "--prices", "none.json"], "The prices in none.json cannot be read"),
        (["build", "file/x"], "file/x/json/claudescope-overview.json cannot be written"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path, arguments, sentence):
    (tmp_path / "file").write_text("")
    found = claudescope(*arguments, cwd=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith(f"claudescope: {sentence}")
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"panels": 3}', '{"panels": [{"fieldConfig": 3}]}', "\udcff"])
def test_a_file_that_is_no_dashboard_is_named(tmp_path, text):
    (tmp_path / "mine.json").write_text(text, errors="surrogateescape")
    found = claudescope("check", ".", cwd=tmp_path)
    assert found.returncode == 2
    assert "mine.json" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.fixture(scope="module")
def with_client():
    return {"PYTHONPATH": str(client_folder.make())}


def push(url, *arguments, environment, token="glsa_secret"):
    return claudescope("push", "--url", url, *arguments, cwd=ROOT, GRAFANA_TOKEN=token, **environment)


@pytest.mark.slow
def test_push_writes_what_differs_into_one_folder(with_client):
    grafana = Grafana()
    with serving(grafana) as url:
        first = push(url, environment=with_client)
        assert (first.returncode, first.stderr) == (0, "")
        assert first.stdout.splitlines() == [f"new  {uid}  {title}" for uid, title in TITLES.items()]
        assert grafana.folders == {"claudescope": {"title": "claudescope", "uid": "claudescope"}}
        for uid, stored in grafana.dashboards.items():
            made = json.loads((ROOT / "dashboards" / "json" / f"{uid}.json").read_text("utf-8"))
            assert {key: value for key, value in stored.items() if key not in ("id", "version")} == made
        writes = len(grafana.writes)
        assert push(url, environment=with_client).stdout.splitlines() == [
            f"same  {uid}  {title}" for uid, title in TITLES.items()
        ]
        assert len(grafana.writes) == writes
        grafana.dashboards["claudescope-steps"]["title"] = "Steps of mine"
        changed = push(url, environment=with_client).stdout
        assert "changed  claudescope-steps  Reasoning steps" in changed
        assert len(grafana.writes) == writes + 1
        assert grafana.dashboards["claudescope-steps"]["title"] == "Reasoning steps"
    body = grafana.writes[-1][1]
    assert (body["overwrite"], body["folderUid"], body["dashboard"]["id"]) == (True, "claudescope", None)


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_shows_the_difference(with_client):
    grafana = Grafana()
    with serving(grafana) as url:
        push(url, environment=with_client)
        grafana.dashboards["claudescope-tools"]["refresh"] = "5m"
        del grafana.dashboards["claudescope-cost"]
        writes = len(grafana.writes)
        found = push(url, "--dry-run", environment=with_client)
    assert len(grafana.writes) == writes
    lines = found.stdout.splitlines()
    assert "would be new  claudescope-cost  Tokens, cache and cost" in lines
    assert "would be changed  claudescope-tools  Tools and agents" in lines
    assert '    - "refresh": "5m",' in lines
    assert '    + "refresh": "30s",' in lines


@pytest.mark.slow
def test_what_is_not_ours_is_not_overwritten(with_client):
    grafana = Grafana()
    theirs = {"uid": "claudescope-cost", "title": "Bills", "tags": ["finance"], "panels": []}
    grafana.dashboards["claudescope-cost"] = theirs
    grafana.dashboards["claudescope-tools"] = {"uid": "claudescope-tools", "title": "T", "tags": ["claudescope"]}
    grafana.provisioned.add("claudescope-tools")
    with serving(grafana) as url:
        found = push(url, environment=with_client)
    assert found.returncode == 2
    assert "refused  claudescope-cost  Tokens, cache and cost: the dashboard 'Bills' has this uid" in found.stdout
    assert "refused  claudescope-tools  Tools and agents: it is provisioned from a file" in found.stdout
    assert found.stderr.startswith("claudescope: Not written: 2 of 7.")
    assert grafana.dashboards["claudescope-cost"] == theirs
    assert len(grafana.writes) == 6  # the folder and the five others


@pytest.mark.slow
def test_push_says_what_to_change(with_client):
    with serving(Grafana()) as url:
        refused = push(url, environment=with_client, token="wrong")
    assert refused.returncode == 2
    assert "refuses: Unauthorized. Set GRAFANA_TOKEN to a token of a service account" in refused.stderr
    assert "wrong" not in refused.stderr
    gone = push("http://127.0.0.1:9", environment=with_client)
    assert gone.returncode == 2
    assert "Grafana at http://127.0.0.1:9 does not answer" in gone.stderr
    nowhere = push("grafana", environment=with_client)
    assert "grafana is no address of a Grafana. It takes one such as http://localhost:3000." in nowhere.stderr
    broken = {"dashboards": 0}

    def failing(*_):
        broken["dashboards"] += 1
        return 500, {"message": "database is locked"}

    with serving(failing) as url:
        found = push(url, environment=with_client)
    assert found.returncode == 2
    assert "answers: Server Error 500: database is locked." in found.stderr


def test_push_without_the_extra_says_what_to_install():
    found = push("http://127.0.0.1:9", environment={})
    assert found.returncode == 2
    assert "pip install 'claudescope[grafana]'" in found.stderr
