from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

from claudescope.settings import SETTINGS


def findings(done, level: str | None = None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        if level in (None, finding["level"]):
            found.setdefault(finding["topic"], []).append(f"{finding['text']} {finding['fix']}".strip())
    return found


NOBODY = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


def test_nobody_answers_and_what_to_do(claudescope):
    done = claudescope("doctor", "--fast", "--json", environment=NOBODY)
    assert done.returncode == 0
    said = (
        "Nothing answers at http://127.0.0.1:9, where the spans go. Start `claudescope up`, use"
        " `claudescope run -- CMD`, or set OTEL_EXPORTER_OTLP_ENDPOINT."
    )
    assert findings(done, "fix") == {"server": [said]}


def test_exit_code_is_1_only_with_fail(claudescope):
    assert claudescope("doctor", "--fast", "--fail", environment=NOBODY).returncode == 1
    done = claudescope("doctor", "--fast", environment=NOBODY)
    assert done.returncode == 0
    assert done.stdout.endswith("\n1 to change.\n")


def test_settings_in_force_and_their_source(claudescope, tmp_path):
    (tmp_path / "claudescope.toml").write_text('steps = "block"\n')
    environment = {**NOBODY, "CLAUDESCOPE_QUEUE": "99", "CLAUDESCOPE_TOKEN": "s3cret"}
    environment["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    done = claudescope("doctor", "--fast", "--json", environment=environment)
    assert findings(done)["settings"] == [
        f"The file {tmp_path / 'claudescope.toml'} is read.",
        f"steps = 'block', from {tmp_path / 'claudescope.toml'}.",
        "content = 'full', from OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.",
        "queue = 99, from CLAUDESCOPE_QUEUE.",
        "token = (not shown), from CLAUDESCOPE_TOKEN.",
    ]
    assert "s3cret" not in done.stdout
    values = json.loads(done.stdout)["settings"]
    assert list(values) == list(SETTINGS)
    assert (values["queue"], values["steps"], values["token"]) == (99, "block", "(not shown)")


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "none", "OTEL_TRACES_EXPORTER=none sends no spans"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not honoured"),
        ("CLAUDESCOPE_DISABLED", "true", "claudescope is switched off."),
        ("OTEL_SDK_DISABLED", "true", "claudescope is switched off."),
    ],
)
def test_what_keeps_spans_away_is_named(claudescope, variable, value, said):
    done = claudescope("doctor", "--fast", "--json", environment={**NOBODY, variable: value})
    assert [text for text in findings(done, "fix")["settings"] if said in text]


def fake_distribution(folder: Path, name: str, entry: str) -> None:
    info = folder / f"{name.replace('-', '_')}-9.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    (info / "entry_points.txt").write_text(f"[opentelemetry_instrumentor]\n{entry} = nowhere:Nothing\n")


def test_two_makers_of_call_spans_and_how_to_turn_one_off(claudescope, tmp_path):
    fake_distribution(tmp_path / "packages", "openinference-instrumentation-anthropic", "anthropic")
    environment = {**NOBODY, "PYTHONPATH": str(tmp_path / "packages")}
    said = (
        "The SDK's own tracing and OpenInference's instrumentation each make a span for the same call, with or without"
        " claudescope. Keep one: set ANTHROPIC_OPEN_TELEMETRY=false or OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=anthropic."
    )
    done = claudescope("doctor", "--fast", "--json", environment=environment)
    assert findings(done, "fix")["call spans"] == [said]
    for variable, value, left in (
        ("ANTHROPIC_OPEN_TELEMETRY", "false", "OpenInference's instrumentation"),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "flask, anthropic", "the SDK's own tracing"),
    ):
        done = claudescope("doctor", "--fast", "--json", environment={**environment, variable: value})
        assert findings(done, "ok")["call spans"] == [f"Call spans are made by {left}; claudescope adds its steps."]


def test_a_test_span_goes_there_and_back(claudescope, tmp_path):
    server = subprocess.Popen(
        command("up", "--port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data"), "--token", "s3cret"),
        env=plain_environment(),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with server:
        url = server.stdout.readline().split()[1]
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret",
            "CLAUDESCOPE_TOKEN": "s3cret",
        }
        found = findings(claudescope("doctor", "--json", environment=environment))
        del environment["OTEL_EXPORTER_OTLP_HEADERS"]
        refused = findings(claudescope("doctor", "--json", environment=environment), "fix")
        server.terminate()
    assert len(found["test span"]) == 1
    assert found["test span"][0].startswith("A test span was taken in ")
    assert found["test span"][0].endswith(" ms and read back.")
    assert found["server"][0].endswith(f" answers at {url}.")
    assert found["SDK"] == ["All 8 names that claudescope stands on are there."]
    assert refused["test span"][0].startswith(f"A test span could not be delivered to {url} by http/protobuf.")


def test_a_check_that_cannot_be_loaded_is_named(claudescope, tmp_path):
    info = tmp_path / "packages" / "broken_check-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-check\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[claudescope.validators]\nbroken = no_such_module:Check\n")
    environment = {**NOBODY, "PYTHONPATH": str(tmp_path / "packages")}
    found = findings(claudescope("doctor", "--json", environment=environment), "fix")
    assert found["checks"] == [
        "broken cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'. Correct or uninstall it."
    ]


def test_output_that_nobody_reads_is_no_error(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "claudescope", "doctor", "--fast"],
        env=plain_environment(**NOBODY),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 141
