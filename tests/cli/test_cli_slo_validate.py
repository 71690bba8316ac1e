from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_harness import plain_environment

from claudescope.cli.main import main
from claudescope.slo.spec.schema import schema

GOOD = """\
version: prometheus/v1
service: bot
slos:
  - name: answers
    objective: 80
    indicator: {step_validity: {}}
    group_by: [model]
    alerting: {ticket_alert: {disable: true}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_for_each_objective_and_what_is_capped(folder, capsys):
    (folder / "a.yml").write_text(GOOD)
    assert main(["slo", "validate", "a.yml"]) == 0
    shown, few = capsys.readouterr(), "only adds something where there are too few events"
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "ok  bot-answers  80 % over 30d by gen_ai_request_model  (page-fast 4.5x, page-slow 4.5x)",
        "  line 4: page-fast: 14.4 times the budget would be 288 % failures; capped to 4.5 times, 90 %.",
        "  line 4: page-slow: 6 times the budget would be 120 % failures; capped to 4.5 times, 90 %.",
        f"  line 4: page-slow fires at the same share as page-fast: it {few} in 1h.",
    ]


def test_json_has_objectives_warnings_and_errors(folder, capsys):
    (folder / "a.yml").write_text(GOOD)
    (folder / "b.yml").write_text(GOOD.replace("80", "80%"))
    assert main(["slo", "validate", "--json", "a.yml", "b.yml"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["errors"] == [
        {"path": "b.yml", "line": 5, "what": "slos[0].objective is 80%.", "fix": "It is a percentage anyway: write 80."}
    ]
    (objective,) = shown["objectives"]
    tiers, warnings = objective.pop("tiers"), objective.pop("warnings")
    assert objective == {
        "id": "bot-answers",
        "service": "bot",
        "name": "answers",
        "target": 0.8,
        "period": "30d",
        "group_by": ["gen_ai_request_model"],
        "path": "a.yml",
        "line": 4,
    }
    assert tiers[0] == {
        "name": "page-fast",
        "severity": "page",
        "short": "5m",
        "long": "1h",
        "factor": 4.5,
        "asked": 14.4,
        "for": "1m",
    }
    assert [(warning["path"], warning["line"]) for warning in warnings] == [("a.yml", 4)] * 3


def test_every_error_of_every_file_in_one_go(folder, capsys):
    (folder / "a.yml").write_text(
        "version: prometheus/v1\nservice: a b\nslos:\n"
        "  - name: x\n    objectve: 99\n    sli: {plugin: {id: x}}\n"
        "  - name: y\n    objective: .99\n    indicator: {step_latency: {over: 800}}\n"
        "  - name: z\n    objective: 80\n    indicator: {step_validty: {}}\n"
        "    windows:\n      - {severity: page, short: 5m, long: 1h, factor: 14.4}\n"
    )
    (folder / "b.yml").write_text("a: [\n")
    (folder / "d.yml").write_text("---\n" + GOOD.replace("answers", "an swers") + "---\na: 'b\n")
    assert main(["slo", "validate", "a.yml", "b.yml", "c.yml", "d.yml"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line.split(": ")[0] for line in shown.err.splitlines()] == [
        "a.yml:2",
        "a.yml:5",
        "a.yml:6",
        "a.yml:8",
        "a.yml:9",
        "a.yml:12",
        "a.yml:14",  # what the rest of an objective means is looked at although a key of it is misspelled
        "b.yml:1",
        "c.yml:1",
        "d.yml:5",
        "d.yml:11",
        "claudescope",
    ]
    assert shown.err.endswith("\nclaudescope: 11 errors.\n")


def test_an_objective_is_there_once_in_all_files(folder, capsys):
    (folder / "a.yml").write_text(GOOD)
    (folder / "b.yml").write_text(GOOD.replace("bot", "bot-a").replace("answers", "b") + GOOD[GOOD.index("  - name") :])
    (folder / "c.yml").write_text(GOOD.replace("answers", "a-answers"))
    assert main(["slo", "validate", "a.yml", "b.yml", "c.yml", "./a.yml"]) == 2
    assert capsys.readouterr().err == (
        "c.yml:4: The objective bot-a-answers is there twice, first at b.yml:9. Give one of them another name.\n"
        "claudescope: 1 error.\n"
    )


def test_standard_input_and_folders(folder):
    (folder / "slos").mkdir()
    (folder / "slos" / "a.yaml").write_text(GOOD)
    (folder / "slos" / "notes.txt").write_text("no")
    done = subprocess.run(
        [sys.executable, "-m", "claudescope", "slo", "validate", "-", "slos"],
        input=GOOD.replace("answers", "others"),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=plain_environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok")] == [
        "bot-others",
        "bot-answers",
    ]


def test_a_hidden_file_of_a_folder_is_not_read(folder, capsys):
    (folder / "slos").mkdir(exist_ok=True)
    (folder / "slos" / "a.yml").write_text(GOOD)
    (folder / "slos" / ".#a.yml").symlink_to("user@host.1")  # an editor's lock
    assert main(["slo", "validate", "slos"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize("command", ["validate", "rules"])
def test_no_space_where_the_output_goes(folder, command):
    (folder / "a.yml").write_text(GOOD)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "claudescope", "slo", command, "a.yml"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=folder, env=plain_environment(),
        )  # fmt: skip
    said = "claudescope: No space is left where the output goes. Make some, or write elsewhere.\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["empty"], "empty:1: The folder has no *.yml. Name a file.\nclaudescope: 1 error.\n"),
        (["no.yml"], "no.yml:1: The file cannot be read: no such file or directory. Name a file that is there."),
        (["a\0b"], "The file cannot be read: "),
        (["x" * 5000], "The file cannot be read: file name too long. "),
        ([], "claudescope: No file is named. Name the specifications: `claudescope slo validate slo.yml`.\n"),
    ],
)
def test_files_that_are_not_there(folder, capsys, arguments, said):
    (folder / "empty").mkdir()
    assert main(["slo", "validate", *arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_the_schema_is_printed(capsys):
    assert main(["slo", "validate", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


def test_it_loads_neither_the_sdk_nor_grpc(folder):
    (folder / "a.yml").write_text(GOOD)
    code = (
        "import sys; from claudescope.cli.main import main\n"
        "code = main(['slo', 'validate', 'a.yml'])\n"
        "print(code, sorted({'anthropic', 'grpc', 'starlette', 'grafana_foundation_sdk'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain_environment(), cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr
