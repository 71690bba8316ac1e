"""Several ``claudescope run`` at one server: it ends after the last of them, whoever started it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

from claudescope.cli import locks
from claudescope.cli.locks import Users
from claudescope.live.probe import probe
from claudescope.settings import Settings
from claudescope.testing.script import say
from claudescope.testing.standin import StandIn

ASKS = """
import pathlib, time, anthropic
def ask():
    client.messages.create(model='claude-sonnet-5-5', max_tokens=50, messages=[{'role': 'user', 'content': 'Hello'}])
client = anthropic.Anthropic()
ask()
pathlib.Path('second-asked').touch()
while not pathlib.Path('first-ended').exists():
    time.sleep(0.05)
for _ in range(3):
    ask()
"""
WAITS = "while [ ! -e second-asked ]; do sleep 0.05; done"


def start(folder: Path, standin: StandIn, *argv: str, data: str = "data", port: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", "--port", str(port), "--grpc-port", "0", "--data", str(folder / data), "--", *argv),
        env=plain_environment(ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="any"),
        cwd=folder,
        stdin=subprocess.PIPE,  # so that a command can wait for its end
        stderr=subprocess.PIPE,
        text=True,
    )


def stored_texts(folder: Path) -> int:
    """How many text steps the store has: asked at once, also while the server of before is ending."""
    flags = ["--port", "0", "--grpc-port", "0", "--data", str(folder / "data")]
    with subprocess.Popen(command("up", *flags), env=plain_environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            url = re.search(r"http://\S+", server.stdout.readline()).group()
            with urllib.request.urlopen(f"{url}/api/steps?kind=text", timeout=30) as answer:
                return len(json.load(answer)["items"])
        finally:
            server.terminate()


@pytest.mark.parametrize("killed", [False, True], ids=["ends", "killed"])
def test_the_server_outlives_the_run_that_started_it_while_another_uses_it(tmp_path, killed):
    with StandIn(say("Hello from Claude.")) as standin:
        first = start(tmp_path, standin, "sh", "-c", f"{WAITS}; read line" if killed else WAITS)
        url = first.stderr.readline().split()[1]
        second = start(tmp_path, standin, sys.executable, "-c", ASKS)
        assert second.stderr.readline() == f"claudescope: {url} (already running)\n"
        if killed:
            until = time.monotonic() + 60
            while not (tmp_path / "second-asked").exists():
                assert time.monotonic() < until
                time.sleep(0.02)
            first.kill()
        said = first.communicate(timeout=60)[1]  # to the end: the server holds its standard error no longer
        assert probe(url)["service"] == "claudescope"
        (tmp_path / "first-ended").touch()
        assert second.communicate(timeout=60)[1] == ""
    assert second.returncode == 0
    if killed:
        assert (first.returncode, said) == (-signal.SIGKILL, "")
    else:
        assert first.returncode == 0
        assert said == "claudescope: the server stays until the other commands that use it have ended.\n"
    assert len(standin.requests) == 4
    assert stored_texts(tmp_path) == 4
    assert probe(url) is None


def test_a_run_with_another_folder_counts_as_user_of_the_server_that_it_finds_by_its_port(tmp_path):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    with StandIn(say("Hello from Claude.")) as standin:
        first = start(tmp_path, standin, "sh", "-c", WAITS, port=port)
        url = first.stderr.readline().split()[1]
        assert url == f"http://127.0.0.1:{port}"
        second = start(tmp_path, standin, sys.executable, "-c", ASKS, data="elsewhere", port=port)
        assert second.stderr.readline() == f"claudescope: {url} (already running)\n"
        said = first.communicate(timeout=60)[1]
        assert said == "claudescope: the server stays until the other commands that use it have ended.\n"
        assert probe(url)["service"] == "claudescope"
        (tmp_path / "first-ended").touch()
        assert second.communicate(timeout=60)[1] == ""
    assert (first.returncode, second.returncode) == (0, 0)
    assert stored_texts(tmp_path) == 4
    assert not (tmp_path / "elsewhere" / "store.sqlite").exists()
    until = time.monotonic() + 60
    while probe(url) is not None:  # and it does not stay for ever
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_server_elsewhere_that_has_just_ended_is_not_used(tmp_path):
    """We are counted there too late: then we look again, and are counted at home."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settings = Settings({"data": tmp_path / "data"})
    ending, user = Users(Settings({"data": elsewhere})), Users(settings)
    user.join()
    user.move(elsewhere)
    assert ending.shut_out(wait=False) is False
    user.move(None)
    assert ending.shut_out(wait=False) is True
    assert Users(settings).shut_out(wait=False) is False
    user.move(tmp_path / "nowhere")  # cannot be locked: nobody waits for us, and we for nobody
    assert not (tmp_path / "nowhere").exists()
    assert user.leave() is False


def test_who_is_last_sees_nobody_left(tmp_path):
    one, two = Users(Settings({"data": tmp_path})), Users(Settings({"data": tmp_path}))
    one.join()
    two.join()
    assert one.leave() is True
    assert two.leave() is False
    assert two.leave() is False
    assert (tmp_path / "users").stat().st_mode & 0o777 == 0o600


def test_a_server_that_is_ending_is_waited_for(tmp_path):
    ending, user = Users(Settings({"data": tmp_path})), Users(Settings({"data": tmp_path}))
    user.join()
    assert ending.shut_out(wait=False) is False
    assert user.leave() is False
    assert ending.shut_out(wait=True) is True
    joining = threading.Thread(target=user.join)
    joining.start()
    joining.join(0.1)
    assert joining.is_alive()
    ending.leave()
    joining.join(60)
    assert ending.shut_out(wait=False) is False


def test_nobody_waits_where_there_are_no_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    one, two = Users(Settings({"data": tmp_path})), Users(Settings({"data": tmp_path}))
    one.join()
    two.join()
    assert one.leave() is False
    assert one.shut_out(wait=True) is True


def test_nobody_waits_where_the_folder_cannot_be_had(tmp_path):
    (tmp_path / "file").write_text("")
    users = Users(Settings({"data": tmp_path / "file"}))
    users.join()
    assert users.leave() is False
    assert users.shut_out(wait=True) is True
