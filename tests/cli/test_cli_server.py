from __future__ import annotations

import contextlib
import http.server
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

from claudescope.live.probe import probe

LOOK = (
    "import json, os, sys, urllib.request;"
    " base = os.environ['CLAUDESCOPE_RUN'];"
    " health = json.load(urllib.request.urlopen(base + '/healthz'));"
    " print(json.dumps({'base': base, 'service': health['service'],"
    " 'token': os.environ.get('CLAUDESCOPE_TOKEN')}))"
)


@pytest.fixture
def other_program():
    """An HTTP server that is not claudescope; gives its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def flags(tmp_path: Path, port: int = 0) -> list[str]:
    return ["--port", str(port), "--grpc-port", "0", "--data", str(tmp_path / "data")]


@contextlib.contextmanager
def up(tmp_path: Path, *more: str):
    """A server of ``claudescope up``: its process and address."""
    process = subprocess.Popen(
        command("up", *flags(tmp_path), *more), env=plain_environment(), stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    with process:
        try:
            line = process.stdout.readline()
            yield process, re.match(r"claudescope: (http://127\.0\.0\.1:\d+) \(Ctrl-C ends it\)\n$", line).group(1)
        finally:
            process.terminate()


def wait_until_gone(url: str) -> None:
    for _ in range(500):
        if probe(url, 1.0) is None:
            return
        time.sleep(0.02)
    pytest.fail(f"{url} still answers")


def test_up_says_where_it_is_and_ends_in_order(tmp_path):
    with up(tmp_path) as (process, url):
        health = probe(url)
        assert health["service"] == "claudescope"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_up_at_a_taken_port_names_the_flag(claudescope, tmp_path, other_program):
    done = claudescope("up", *flags(tmp_path, other_program))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"claudescope: The address 127.0.0.1:{other_program} cannot be listened on: Address already in use."
        " Choose another port with --port.\n"
    )


def test_run_starts_a_server_and_ends_it_after_the_command(claudescope, tmp_path):
    done = claudescope("run", *flags(tmp_path), "--", sys.executable, "-c", LOOK)
    seen = json.loads(done.stdout)
    assert done.returncode == 0
    assert (seen["service"], seen["token"]) == ("claudescope", None)
    assert done.stderr == f"claudescope: {seen['base']}\n"
    assert probe(seen["base"]) is None


def test_run_gives_the_command_the_token(claudescope, tmp_path):
    done = claudescope("run", *flags(tmp_path), "--token", "s3cret", "--", sys.executable, "-c", LOOK)
    assert json.loads(done.stdout)["token"] == "s3cret"


def test_run_uses_the_claudescope_that_is_there_and_leaves_it(claudescope, tmp_path):
    with up(tmp_path) as (_, url):
        port = int(url.rpartition(":")[2])
        done = claudescope("run", *flags(tmp_path, port), "--", sys.executable, "-c", LOOK)
        assert json.loads(done.stdout)["base"] == url
        assert done.stderr == f"claudescope: {url} (already running)\n"
        assert probe(url)["service"] == "claudescope"


def test_run_finds_the_server_that_has_its_data_folder(claudescope, tmp_path, other_program):
    with up(tmp_path) as (_, url):
        done = claudescope("run", *flags(tmp_path, other_program), "--", sys.executable, "-c", LOOK)
        assert json.loads(done.stdout)["base"] == url
        assert done.stderr == f"claudescope: {url} (already running)\n"


def test_run_takes_a_free_port_when_something_else_has_its_own(claudescope, tmp_path, other_program):
    done = claudescope("run", *flags(tmp_path, other_program), "--", sys.executable, "-c", LOOK)
    base = json.loads(done.stdout)["base"]
    assert base != f"http://127.0.0.1:{other_program}"
    assert done.stderr == f"claudescope: {base} (something else has port {other_program})\n"


def test_run_starts_none_where_the_environment_names_an_endpoint(claudescope, tmp_path):
    code = "import os; print(os.environ.get('OTEL_EXPORTER_OTLP_ENDPOINT'))"
    variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    done = claudescope(
        "run",
        *flags(tmp_path),
        "--",
        sys.executable,
        "-c",
        code,
        environment={variable: "http://127.0.0.1:9/v1/traces"},
    )
    assert done.stdout == "None\n"
    assert (
        done.stderr
        == f"claudescope: sends to http://127.0.0.1:9/v1/traces, as {variable} says; no server is started.\n"
    )


def test_run_without_server_sends_to_where_one_is_expected(claudescope, tmp_path):
    code = "import os; print(os.environ['CLAUDESCOPE_RUN'])"
    done = claudescope("run", "--no-server", "--port", "4999", "--", sys.executable, "-c", code)
    assert done.stdout == "http://127.0.0.1:4999\n"
    assert done.stderr == "claudescope: sends to http://127.0.0.1:4999; no server is started.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_cannot_start_ends_run_before_the_command(claudescope, tmp_path):
    (tmp_path / "data").write_text("a file")
    done = claudescope("run", *flags(tmp_path), "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_modules_in_the_working_directory_are_not_for_the_server(tmp_path):
    for name in ("queue", "signal", "claudescope"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n")
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; from claudescope.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "run", *flags(tmp_path), "--", "echo", "ran"],
        env=plain_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "ran\n"
    assert re.match(r"claudescope: http://127\.0\.0\.1:\d+\n$", done.stderr)


def test_the_server_is_kept_until_ctrl_c_and_the_exit_code_is_the_commands(tmp_path):
    process = subprocess.Popen(
        command("run", *flags(tmp_path), "--keep", "--", "sh", "-c", "exit 5"),
        env=plain_environment(),
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with process:
        url = process.stderr.readline().split()[1]
        assert process.stderr.readline() == f"claudescope: sh ended with 5; {url} stays until Ctrl-C.\n"
        assert probe(url)["service"] == "claudescope"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 5
    assert probe(url) is None


def test_the_server_is_kept_when_standard_error_is_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("run", *flags(tmp_path), "--", "true"), env=plain_environment(), stderr=theirs, text=True, cwd=tmp_path
    )
    os.close(theirs)
    with process, os.fdopen(ours, "r") as terminal:
        url = terminal.readline().split()[1]
        assert terminal.readline() == f"claudescope: true ended with 0; {url} stays until Ctrl-C.\n"
        assert probe(url)["service"] == "claudescope"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_the_server_is_not_kept_after_we_were_told_to_end(tmp_path):
    process = subprocess.Popen(
        command("run", *flags(tmp_path), "--keep", "--", "sh", "-c", "echo ready; exec sleep 60"),
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM


def test_the_server_ends_with_a_run_that_is_killed(tmp_path):
    process = subprocess.Popen(
        command("run", *flags(tmp_path), "--", "sh", "-c", "echo ready; read line"),
        env=plain_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    with process:
        url = process.stderr.readline().split()[1]
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.stdin.close()  # ends the command
        wait_until_gone(url)


def test_ports_of_ipv6_and_any_address():
    from claudescope.cli.server import base_url

    assert base_url("::1", 4318) == "http://[::1]:4318"
    assert base_url("0.0.0.0", 4318) == "http://127.0.0.1:4318"
    assert base_url("localhost", 1) == "http://localhost:1"


def test_address_that_is_not_ours_is_wrong_use(claudescope, tmp_path):
    done = claudescope("run", *flags(tmp_path), "--host", "192.0.2.1", "--token", "t", "--", "true")
    assert done.returncode == 2
    assert done.stderr.endswith("Change --host.\n")


def test_port_beyond_the_last_is_wrong_use(claudescope):
    done = claudescope("run", "--port", "70000", "--", "true")
    assert (done.returncode, done.stderr) == (
        2,
        "claudescope: --port is '70000'. It takes a whole number from 0 to 65535.\n",
    )


def test_is_free_knows_a_listener():
    from claudescope.cli.server import is_free

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert not is_free("127.0.0.1", listener.getsockname()[1])
