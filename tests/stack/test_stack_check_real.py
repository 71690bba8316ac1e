"""``claudescope stack check`` on the real programs: all is well, and what it says of each thing that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stack_certificates import certificates
from stack_native import Stack

pytestmark = [pytest.mark.stack]
COMMAND = (sys.executable, "-m", "claudescope", "stack", "check")
Findings = list[tuple[str, str, str]]


@pytest.fixture
def check(stack: Stack, tmp_path: Path) -> Callable[..., Findings]:
    """Runs the command in a folder whose ``.env`` leads to the stack; gives topic, level and text of each finding."""
    ports = {
        "CS_OTLP_HTTP_PORT": stack.ports["http"],
        "CS_OTLP_GRPC_PORT": stack.ports["grpc"],
        "CS_JAEGER_PORT": stack.ports["jaeger_ui"],
        "CS_PROMETHEUS_PORT": stack.ports["prometheus"],
        "CS_ALERTMANAGER_PORT": stack.ports["alertmanager"],
    }

    def run(*arguments: str, token: str = stack.token) -> Findings:
        values = {**ports, "CS_OTLP_TOKEN": token}
        (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        (tmp_path / ".env").chmod(0o600)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "claudescope",
                "stack",
                "check",
                str(tmp_path),
                "--no-grafana",
                "--json",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=110,
            check=True,
        )
        assert done.stderr == ""
        return [(one["topic"], one["level"], one["text"]) for one in json.loads(done.stdout)["findings"]]

    return run


def wrong(findings: Findings) -> list[tuple[str, str]]:
    return [(topic, text) for topic, level, text in findings if level == "fix"]


def test_all_is_well(check: Callable[..., Findings]) -> None:
    found = check("--wait", "60")
    assert wrong(found) == []
    assert [topic for topic, level, _ in found if level == "ok"] == [
        "collector",
        "collector",
        "jaeger",
        "prometheus",
        "rules",
        *(["targets"] if ("targets", "ok") in {one[:2] for one in found} else []),  # until the first scrape, a note
        "alerts",
        "traces",
        "metrics",
    ]
    assert ("alerts", "note", "No receiver leads out of Alertmanager: alerts are seen on its page only.") in found
    again = check("--wait", "60")  # the count of the first time does not pass for that of the second
    assert wrong(again) == []


def test_a_wrong_token_is_said_for_both_protocols(check: Callable[..., Findings], stack: Stack) -> None:
    found = wrong(check("--wait", "0", token="another"))
    assert [topic for topic, _ in found] == ["collector", "collector"]
    assert found[0][1].startswith(f"{stack.endpoint} does not take the CS_OTLP_TOKEN of ")
    assert found[1][1].startswith(f"127.0.0.1:{stack.ports['grpc']} does not take the CS_OTLP_TOKEN of ")


def test_jaeger_is_away(check: Callable[..., Findings], stack: Stack) -> None:
    stack["jaeger"].kill()
    try:
        found = wrong(check("--wait", "60"))
    finally:
        stack["jaeger"].start()
    assert ("jaeger", f"No Jaeger at {stack.jaeger.url}: nothing listens there.") in found
    assert {topic for topic, _ in found} <= {"jaeger", "targets"}  # the collector takes the span all the same


def test_prometheus_is_away_and_everything_else_is_not(check: Callable[..., Findings], stack: Stack) -> None:
    stack["prometheus"].kill()
    try:
        found = check("--wait", "20")
    finally:
        stack["prometheus"].start()
    assert ("prometheus", f"No Prometheus at {stack.prometheus.url}: nothing listens there.") in wrong(found)
    assert ("traces", "ok") in {one[:2] for one in found}


def test_tls_and_certificates_of_apps(new_stack: Callable[..., Stack], tmp_path: Path) -> None:
    files = certificates(tmp_path)
    tls = {
        "CS_RECEIVER": "otlp/tls",
        "CS_TLS_CERT": str(files / "server.crt"),
        "CS_TLS_KEY": str(files / "server.key"),
        "CS_TLS_CLIENT_CA": str(files / "ca.crt"),
    }
    stack = new_stack(environment=tls, names=("collector",))
    ports = {"CS_OTLP_HTTP_PORT": stack.ports["http"], "CS_OTLP_GRPC_PORT": stack.ports["grpc"]}
    values = {**ports, "CS_OTLP_TOKEN": stack.token, "CS_RECEIVER": "otlp/tls"}
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    (tmp_path / ".env").chmod(0o600)

    def collector(*arguments: str) -> list[str]:
        command = [*COMMAND, str(tmp_path), "--json", "--wait", "0", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == ""
        return [one["text"] for one in json.loads(done.stdout)["findings"] if one["topic"] == "collector"]

    http, grpc = f"https://127.0.0.1:{stack.ports['http']}", f"127.0.0.1:{stack.ports['grpc']}"
    assert collector() == [
        f"No OTLP/HTTP at {http}: its certificate is not trusted: unable to get local issuer certificate.",
        f"No OTLP/gRPC at {grpc}: the TLS handshake fails.",
    ]
    ours = ("--ca", str(files / "ca.crt"))
    assert collector(*ours) == [
        f"No OTLP/HTTP at {http}: it closes the connection, as a port does that wants a certificate to be shown.",
        f"No OTLP/gRPC at {grpc}: the TLS handshake fails.",
    ]
    taken = collector(*ours, "--cert", str(files / "client.crt"), "--key", str(files / "client.key"))
    assert taken[0].startswith(f"A test span was taken at {http} in ")
    assert taken[1:] == [f"OTLP/gRPC answers at {grpc}."]
