"""`claudescope run` around real programs that start the app's Python processes themselves."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

from claudescope.testing.script import say
from claudescope.testing.standin import StandIn

CLIENT = "import os\nimport anthropic\n"
ASK = "messages.create(model='claude-sonnet-5-5', max_tokens=50, messages=[{'role': 'user', 'content': 'Hello'}])"
ASGI = f"""
{CLIENT}
client = anthropic.AsyncAnthropic()
async def app(scope, receive, send):
    if scope['type'] != 'http':
        return
    if scope['path'] == '/ask':
        await client.{ASK}
    await send({{'type': 'http.response.start', 'status': 200, 'headers': []}})
    await send({{'type': 'http.response.body', 'body': str(os.getpid()).encode()}})
"""
WSGI = f"""
{CLIENT}
client = anthropic.Anthropic()
def app(environ, start_response):
    if environ['PATH_INFO'] == '/ask':
        client.{ASK}
    start_response('200 OK', [])
    return [str(os.getpid()).encode()]
"""
QUEUE = """
import os
from celery import Celery
folder = os.path.dirname(os.path.abspath(__file__))
app = Celery('tasks', broker='filesystem://')
app.conf.broker_transport_options = {'data_folder_in': folder + '/q', 'data_folder_out': folder + '/q',
                                     'control_folder': folder + '/control', 'polling_interval': 0.1}
app.conf.worker_prefetch_multiplier = 1
"""
TASKS = f"""
{CLIENT}
from queue_app import app
client = anthropic.Anthropic()
@app.task(name='ask')
def ask():
    client.{ASK}
"""


@pytest.fixture
def standin():
    with StandIn(say("Hello from Claude.")) as running:
        yield running


def program(name: str) -> str:
    """The program of that name in the tests' own environment; it must be there."""
    path = Path(sys.executable).parent / name
    assert path.exists(), f"{name} is missing: install the extra [dev]"
    return str(path)


@contextlib.contextmanager
def under_run(tmp_path: Path, standin: StandIn, *argv: str, end: signal.Signals = signal.SIGTERM):
    """The command under ``claudescope run``; gives its process and the server's address."""
    with (tmp_path / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command("run", "--port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data"), "--", *argv),
            env=plain_environment(ANTHROPIC_BASE_URL=standin.url, ANTHROPIC_API_KEY="any", PYTHONPATH=str(tmp_path)),
            stdout=output,
            stderr=output,
            cwd=tmp_path,
        )
        try:
            yield process, wait_for(lambda: (tmp_path / "output.txt").read_text().partition("\n")[0].split()[1])
        finally:
            process.send_signal(end)
            try:
                process.wait(30)
            finally:
                process.kill()
                process.wait()


def wait_for(look, seconds: float = 60):
    """What ``look`` gives once it gives something and does not fail."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, IndexError):
            if found := look():
                return found
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def texts(server: str) -> int:
    """How many text steps the server has."""
    return len(json.loads(get(f"{server}/api/steps?kind=text&limit=1000"))["items"])


def test_uvicorn_with_reload(tmp_path, standin):
    (tmp_path / "web.py").write_text(ASGI)
    port = free_port()
    argv = [program("uvicorn"), "web:app", "--reload", "--reload-dir", str(tmp_path), "--port", str(port)]
    with under_run(tmp_path, standin, *argv, end=signal.SIGINT) as (_, server):
        first = wait_for(lambda: get(f"http://127.0.0.1:{port}/"))
        for _ in range(3):
            get(f"http://127.0.0.1:{port}/ask")
        assert wait_for(lambda: texts(server) == 3)
        (tmp_path / "web.py").write_text(ASGI + "\n# changed\n")
        wait_for(lambda: get(f"http://127.0.0.1:{port}/") != first)
        for _ in range(2):
            get(f"http://127.0.0.1:{port}/ask")
        assert wait_for(lambda: texts(server) == 5)
    assert len(standin.requests) == 5


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["each", "preload"])
def test_gunicorn_prefork(tmp_path, standin, preload):
    (tmp_path / "web.py").write_text(WSGI)
    port = free_port()
    argv = [program("gunicorn"), "web:app", "--workers", "2", "--bind", f"127.0.0.1:{port}", *preload]
    workers = set()
    with under_run(tmp_path, standin, *argv) as (process, server):
        wait_for(lambda: get(f"http://127.0.0.1:{port}/"))
        asked = 0
        while len(workers) < 2:
            workers.add(get(f"http://127.0.0.1:{port}/ask"))
            asked += 1
            assert asked < 500
        assert wait_for(lambda: texts(server) == asked)
    assert process.returncode == 0
    assert len(standin.requests) == asked


@pytest.mark.slow  # celery's own warm shutdown takes seven seconds
def test_celery_prefork(tmp_path, standin):
    (tmp_path / "queue_app.py").write_text(QUEUE)
    (tmp_path / "tasks.py").write_text(TASKS)
    for folder in ("q", "control"):
        (tmp_path / folder).mkdir()
    argv = [program("celery"), "-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "2", "--without-gossip"]
    with under_run(tmp_path, standin, *argv) as (process, server):
        subprocess.run(
            [sys.executable, "-c", "import queue_app\nfor _ in range(6): queue_app.app.send_task('ask')"],
            env=plain_environment(),
            cwd=tmp_path,
            check=True,
            timeout=60,
        )
        assert wait_for(lambda: texts(server) == 6)
    assert process.returncode == 0
    assert len(standin.requests) == 6
