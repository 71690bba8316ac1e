"""``claudescope stack check``: what does not answer, why, and what to change."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from compose_model import ROOT
from hypothesis import given
from hypothesis import strategies as st
from stack_stubs import RULES, TARGETS, TOKEN, Stub, data, grpc_stub, healthy

from claudescope.cli.main import main
from claudescope.semconv import KEEP, SERVICE_NAME
from claudescope.stack.checks import alertmanager, collector, grafana, jaeger, prometheus
from claudescope.stack.parts import Stack

PORTS = {
    "collector": "CS_OTLP_HTTP_PORT",
    "jaeger": "CS_JAEGER_PORT",
    "prometheus": "CS_PROMETHEUS_PORT",
    "alertmanager": "CS_ALERTMANAGER_PORT",
    "grafana": "CS_GRAFANA_PORT",
}
NOBODY = "9"
"""A port where nothing listens."""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """The stubs of a healthy stack, and a folder with the ``.env`` that leads to them; tests change either."""
    for name in ("GRAFANA_TOKEN", *PORTS.values()):
        monkeypatch.delenv(name, raising=False)
    with contextlib.ExitStack() as closing:
        stubs = {name: Stub(replies) for name, replies in healthy().items()}
        for stub in stubs.values():
            closing.callback(stub.close)
        env = {PORTS[name]: str(stub.port) for name, stub in stubs.items()}
        env["CS_OTLP_GRPC_PORT"] = str(closing.enter_context(grpc_stub()))
        env |= {"CS_OTLP_TOKEN": TOKEN, "CS_GRAFANA_PASSWORD": "a-password"}
        write(tmp_path, env)
        yield stubs, env


def write(folder: Path, env: dict[str, str]) -> None:
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    (folder / ".env").chmod(0o600)


def check(capsys: Any, folder: Path, *arguments: str) -> list[dict[str, str]]:
    assert main(["stack", "check", str(folder), "--json", "--wait", "0", *arguments]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def said(found: list[dict[str, str]], level: str) -> list[tuple[str, str]]:
    return [(one["topic"], one["text"]) for one in found if one["level"] == level]


def test_all_is_well(parts, capsys, tmp_path):
    stubs, env = parts
    found = check(capsys, tmp_path, "--fail")
    assert said(found, "fix") == said(found, "note") == []
    texts = [text for _, text in said(found, "ok")]
    at = {name: f"http://127.0.0.1:{stub.port}" for name, stub in stubs.items()}
    assert texts[0].startswith(f"A test span was taken at {at['collector']} in ")
    assert texts[1:-2] == [
        f"OTLP/gRPC answers at 127.0.0.1:{env['CS_OTLP_GRPC_PORT']}.",
        f"Jaeger answers at {at['jaeger']}; it has traces of 1 services.",
        f"Prometheus 3.16.0 answers at {at['prometheus']}.",
        "2 rules are loaded, 1 of them alerts.",
        "All 2 targets are up.",
        f"Alertmanager 0.31.1 answers at {at['alertmanager']}.",
        f"Grafana 13.2.3 answers at {at['grafana']}.",
        "Grafana reaches Prometheus.",
        "Grafana reaches Jaeger.",
        "Grafana reaches Alertmanager.",
        "2 dashboards of claudescope are there.",
    ]
    assert texts[-2].startswith("The test span is in Jaeger, ")
    assert texts[-1].startswith("What the collector counts is in Prometheus, ")


def test_the_test_span_is_one_of_its_own_service_that_is_kept(parts, capsys, tmp_path):
    stubs, _ = parts
    check(capsys, tmp_path)
    path, body = stubs["collector"].asked[0]
    assert path == "/v1/traces"
    resource = json.loads(body)["resourceSpans"][0]
    assert resource["resource"]["attributes"] == [
        {"key": SERVICE_NAME, "value": {"stringValue": "claudescope-stack-check"}}
    ]
    (span,) = resource["scopeSpans"][0]["spans"]
    assert span["attributes"] == [{"key": KEEP, "value": {"boolValue": True}}]
    assert (span["name"], len(span["traceId"]), len(span["spanId"])) == ("claudescope stack check", 32, 16)
    assert (f"/api/v3/traces/{span['traceId']}", b"") in stubs["jaeger"].asked


def test_what_a_person_reads(parts, capsys, tmp_path):
    stubs, _ = parts
    stubs["alertmanager"].replies["/api/v2/status"] = (500, {})
    assert main(["stack", "check", str(tmp_path), "--wait", "0", "--fail"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 to change."
    at = lines.index(
        f"FIX   alerts      No Alertmanager at http://127.0.0.1:{stubs['alertmanager'].port}: what has that port"
        " answers 500 to Alertmanager's API."
    )
    assert lines[at + 1] == "                  -> See what has that port, or set CS_ALERTMANAGER_PORT to another one."


def test_where_nothing_listens_it_says_how_to_start_it(parts, capsys, tmp_path):
    _, env = parts
    write(tmp_path, {name: NOBODY if name.endswith("_PORT") else value for name, value in env.items()})
    found = check(capsys, tmp_path)
    assert said(found, "ok") == []
    assert [(one["topic"], one["text"], one["fix"]) for one in found] == [
        (topic, f"No {name} at {address}: nothing listens there.", f"Type `docker compose up -d`, then `{log}`.")
        for topic, name, address, log in (
            ("collector", "OTLP/HTTP", "http://127.0.0.1:9", "docker compose logs collector"),
            ("collector", "OTLP/gRPC", "127.0.0.1:9", "docker compose logs collector"),
            ("jaeger", "Jaeger", "http://127.0.0.1:9", "docker compose logs jaeger"),
            ("prometheus", "Prometheus", "http://127.0.0.1:9", "docker compose logs prometheus"),
            ("alerts", "Alertmanager", "http://127.0.0.1:9", "docker compose logs alertmanager"),
            ("grafana", "Grafana", "http://127.0.0.1:9", "docker compose logs grafana"),
        )
    ]


def test_a_wrong_and_a_missing_token(parts, capsys, tmp_path):
    stubs, env = parts
    at = f"http://127.0.0.1:{stubs['collector'].port}"
    write(tmp_path, {**env, "CS_OTLP_TOKEN": "another"})
    wrong = f"does not take the CS_OTLP_TOKEN of {tmp_path / '.env'}."
    assert said(check(capsys, tmp_path), "fix") == [
        ("collector", f"{at} {wrong}"),
        ("collector", f"127.0.0.1:{env['CS_OTLP_GRPC_PORT']} {wrong}"),
    ]
    write(tmp_path, {**env, "CS_OTLP_TOKEN": ""})
    found = check(capsys, tmp_path)
    assert len(said(found, "fix")) == 2
    assert said(found, "fix")[0] == (
        "collector",
        f"{at} wants a token, and there is no CS_OTLP_TOKEN in {tmp_path / '.env'} or the environment.",
    )


@pytest.mark.parametrize(
    ("part", "path", "reply", "expected"),
    [
        ("collector", "/v1/traces", (200, {}), ("collector", "takes spans without the token.")),
        ("collector", "/v1/traces", (503, {}), ("collector", "its memory limit is reached, or its queues are full.")),
        ("collector", "/v1/traces", (404, {}), ("collector", "answers 404 to a span: it is not an OTLP receiver.")),
        ("jaeger", "/api/v3/services", (200, "a page"), ("jaeger", "what has that port answers 200 to Jaeger's API.")),
        ("jaeger", "/api/metrics/minstep", (501, {}), ("jaeger", "Jaeger's Monitor tab is off.")),
        ("jaeger", "/api/v3/traces/", (404, {}), ("traces", "after 0 s Jaeger does not have it.")),
        ("prometheus", "/api/v1/status/flags", data(), ("prometheus", "takes no OTLP, so it gets no metrics.")),
        ("prometheus", "/api/v1/rules", data(groups=[]), ("rules", "has no rules, so it alerts of nothing.")),
        (
            "prometheus",
            "/api/v1/rules",
            data(groups=[{"rules": [*RULES, {"name": "bad", "health": "err", "lastError": "why"}]}]),
            ("rules", "Rule bad fails: why."),
        ),
        (
            "prometheus",
            "/api/v1/targets",
            data(activeTargets=[TARGETS[0], {**TARGETS[1], "health": "down", "lastError": "no such host"}]),
            ("targets", "Prometheus cannot scrape jaeger at u: no such host."),
        ),
        ("prometheus", "/api/v1/targets", data(activeTargets=[]), ("targets", "Prometheus scrapes nothing.")),
        ("prometheus", "/api/v1/alertmanagers", data(), ("prometheus", "knows no Alertmanager, so nobody is told of")),
        ("prometheus", "/api/v1/query", data(result=[]), ("metrics", "has nothing of what the collector counts")),
        ("grafana", "/api/health", (503, {"database": "failing"}), ("grafana", "Grafana's database fails.")),
        ("grafana", "/api/datasources/uid/jaeger", (404, {}), ("grafana", "Grafana has no data source jaeger.")),
        (
            "grafana",
            "/api/datasources/uid/prometheus",
            (400, {"status": "ERROR", "message": "dial tcp: lookup prometheus"}),
            ("grafana", "Grafana's data source prometheus fails: dial tcp: lookup prometheus."),
        ),
        (
            "grafana",
            "/api/datasources/proxy/uid/alertmanager",
            (502, {"message": ""}),
            ("grafana", "Grafana's data source alertmanager fails: it answers 502."),
        ),
        ("grafana", "/api/search", (200, []), ("grafana", "Grafana has none of claudescope's dashboards.")),
    ],
)  # fmt: skip
def test_one_thing_is_wrong(parts, capsys, tmp_path, part, path, reply, expected):
    stubs, _ = parts
    replies = stubs[part].replies
    for key in [key for key in replies if key.startswith(path)]:
        del replies[key]
    replies[path] = reply
    fixes = said(check(capsys, tmp_path), "fix")
    topic, text = expected
    found = [one for one in fixes if one[0] == topic and text in one[1]]
    assert len(found) == 1, fixes
    more = path == "/api/v1/status/flags"  # that takes the exemplars too
    assert len(fixes) == 1 + more, fixes


def test_what_is_no_fault_is_a_note(parts, capsys, tmp_path):
    stubs, env = parts
    firing = [{**RULES[0], "state": "firing"}, RULES[1]]
    stubs["prometheus"].replies["/api/v1/rules"] = data(groups=[{"rules": firing}])
    stubs["prometheus"].replies["/api/v1/targets"] = data(activeTargets=[{**TARGETS[0], "health": "unknown"}])
    status = stubs["alertmanager"].replies["/api/v2/status"][1]
    status["config"]["original"] = "receivers:\n- name: default\n"
    write(tmp_path, {name: value for name, value in env.items() if name != "CS_GRAFANA_PASSWORD"})
    found = check(capsys, tmp_path, "--fail")
    assert said(found, "fix") == []
    assert [text for _, text in said(found, "note")] == [
        "Firing now: CollectorDown.",
        "Not scraped yet: collector. Ask again in 15 s.",
        "No receiver leads out of Alertmanager: alerts are seen on its page only.",
        "Data sources are not looked at: that takes GRAFANA_TOKEN or the password.",
    ]


def test_targets_that_are_not_found_yet_are_no_fault(parts, capsys, tmp_path):
    stubs, _ = parts
    stubs["prometheus"].replies["/api/v1/targets"] = data(activeTargets=[])
    configured = "scrape_configs:\n- job_name: jaeger\n  honor_timestamps: true\n- job_name: collector\n"
    stubs["prometheus"].replies["/api/v1/status/config"] = data(yaml=configured)
    found = check(capsys, tmp_path)
    assert said(found, "fix") == []
    assert said(found, "note") == [("targets", "Not scraped yet: collector, jaeger. Ask again in 15 s.")]


def test_links_of_jaegers_page_that_lead_elsewhere(parts, capsys, tmp_path):
    _, env = parts
    (tmp_path / "collector").mkdir()
    shutil.copy(ROOT / "collector" / "jaeger-ui.json", tmp_path / "collector")
    here = f"http://localhost:{env['CS_GRAFANA_PORT']}"
    elsewhere = f"Links of Jaeger's page lead to http://localhost:3000, and Grafana is at {here}."
    assert said(check(capsys, tmp_path), "fix") == [("jaeger", elsewhere)]
    assert said(check(capsys, tmp_path, "--no-grafana"), "fix") == []
    main(["stack", "init", str(tmp_path)])
    capsys.readouterr()
    assert said(check(capsys, tmp_path), "fix") == []


def test_grafana_takes_a_token_or_is_left_out(parts, capsys, tmp_path, monkeypatch):
    stubs, _ = parts
    monkeypatch.setenv("GRAFANA_TOKEN", "wrong")
    fixes = said(check(capsys, tmp_path), "fix")
    assert fixes == [("grafana", "Grafana does not let us in with GRAFANA_TOKEN, or else the password of .env.")]
    asked = len(stubs["grafana"].asked)
    assert said(check(capsys, tmp_path, "--no-grafana"), "fix") == []
    assert len(stubs["grafana"].asked) == asked


def test_the_environment_wins_over_the_file(parts, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CS_JAEGER_PORT", NOBODY)
    assert said(check(capsys, tmp_path), "fix") == [
        ("jaeger", "No Jaeger at http://127.0.0.1:9: nothing listens there.")
    ]


def test_secrets_that_others_can_read_or_that_are_not_there(parts, capsys, tmp_path, monkeypatch):
    _, env = parts
    (tmp_path / ".env").chmod(0o640)
    assert check(capsys, tmp_path)[0] == {
        "topic": "settings",
        "level": "fix",
        "text": f"{tmp_path / '.env'} holds secrets and others can read it.",
        "fix": f"Type: chmod 600 {tmp_path / '.env'}",
    }
    (tmp_path / ".env").unlink()
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert said(check(capsys, tmp_path), "fix") == []  # all of it in the environment is as good
    monkeypatch.delenv("CS_OTLP_TOKEN")
    assert said(check(capsys, tmp_path), "fix")[0] == (
        "settings",
        f"There is no {tmp_path / '.env'}: addresses are the defaults, and there is no token.",
    )


def test_it_waits_until_the_span_has_arrived(parts, capsys, tmp_path):
    stubs, _ = parts
    asked: list[None] = []

    def late(_):
        asked.append(None)
        return (200, {}) if len(asked) > 2 else (404, {})

    stubs["jaeger"].replies["/api/v3/traces/"] = late
    found = check(capsys, tmp_path, "--wait", "20")
    assert said(found, "fix") == []
    assert len(asked) == 3


def test_somebody_who_says_nothing_is_no_reason_to_hang(parts, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("claudescope.stack.ask._TIMEOUT", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("CS_ALERTMANAGER_PORT", str(mute.getsockname()[1]))
        (fix,) = said(check(capsys, tmp_path), "fix")
    assert fix[1].endswith(": no answer within 2 s.")


KEYS = (
    *("data", "result", "values", "groups", "rules", "activeTargets", "labels", "health"),
    *("versionInfo", "version", "config", "database", "services", "status", "uid"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=12,
)


@given(answer=JSON, status=st.sampled_from([200, 204, 400, 401, 404, 500]))
def test_whatever_answers_there_it_says_something(answer, status):
    stack = Stack(Path(), *["http://127.0.0.1:9"] * 6, "a-token", "Basic eDp5")
    body = json.dumps(answer).encode()
    with mock.patch("urllib.request.OpenerDirector.open") as opened:
        opened.return_value.__enter__.return_value = mock.Mock(status=status, read=lambda _: body)
        span = collector.TestSpan()
        for look in (
            collector.over_http(stack, span),
            jaeger.api(stack),
            jaeger.arrival(stack, span, 0),
            prometheus.api(stack),
            prometheus.arrival(stack, prometheus.counted(stack), 0),
            alertmanager.api(stack),
            grafana.api(stack),
        ):
            assert all(finding.text.endswith(".") for finding in look)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """A folder with the key and the certificate, for 127.0.0.1, of an authority of its own."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on PATH")
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-nodes"]
    files = ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", *subject, *files], check=True, capture_output=True)
    return folder


def test_tls(parts, capsys, tmp_path, certificate):
    _, env = parts
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    crt, key = certificate / "tls.crt", certificate / "tls.key"
    context.load_cert_chain(crt, key)
    stub = Stub(healthy()["collector"], context)
    with contextlib.closing(stub), grpc_stub(tls=(key.read_bytes(), crt.read_bytes())) as grpc_port:
        env |= {"CS_OTLP_HTTP_PORT": str(stub.port), "CS_OTLP_GRPC_PORT": str(grpc_port)}
        write(tmp_path, {**env, "CS_RECEIVER": "otlp/tls"})
        assert said(check(capsys, tmp_path, "--ca", str(crt)), "fix") == []
        untrusted = check(capsys, tmp_path)
        assert said(untrusted, "fix")[0] == (
            "collector",
            f"No OTLP/HTTP at https://127.0.0.1:{stub.port}: its certificate is not trusted: self-signed certificate.",
        )
        assert len(said(untrusted, "fix")) == 2
        assert said(untrusted, "fix")[1][1].endswith(": the TLS handshake fails.")
        assert all("--ca FILE" in one["fix"] for one in untrusted[:2])
        write(tmp_path, env)  # asked without TLS
        for text, fix in ((one["text"], one["fix"]) for one in check(capsys, tmp_path)[:2]):
            assert text.endswith("it closes the connection, as a port with TLS does when it is asked without.")
            assert fix == "If it is the collector's, set CS_RECEIVER=otlp/tls here, too."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-folder"], "There is no folder no-such-folder. Name that of the stack's docker-compose.yml."),
        (["--wait", "long"], "--wait is 'long'. It takes a number of at least 0."),
        (["--ca", "no-such-file"], "--ca, --cert or --key: [Errno 2] No such file or directory."),
    ],
)
def test_wrong_use(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["stack", "check", *arguments]) == 2
    assert message in capsys.readouterr().err
