from __future__ import annotations

import http.client
import http.server
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from live_kit import SERVE, Client, Sender, ServerProcess, running

from claudescope.errors import UsageError
from claudescope.live.probe import probe
from claudescope.live.server import LiveServer
from claudescope.live.store.schema import FILE_NAME
from claudescope.settings import Settings


def test_it_starts_light_and_ends_with_0(tmp_path: Path) -> None:
    code = SERVE.replace("sys.exit(", "code = (") + (
        "\nrooms = ('capture', 'steps', 'assess', 'emit', 'cli', 'testing')"
        "\nheavy = ['anthropic', 'grpc', 'requests', *(f'claudescope.{room}' for room in rooms)]"
        "\nprint([name for name in heavy if name in sys.modules], code)"
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        live = Client(process.stdout.readline().strip())
        sender = Sender()
        sender.step(0)
        live.send(sender)
        assert live.get("/").status == 200
        stream = http.client.HTTPConnection(live.address, timeout=20)
        stream.request("GET", "/api/stream")
        answer = stream.getresponse()
        process.send_signal(number)  # with a stream open
        out, errors = process.communicate(timeout=20)
        assert (out, errors, process.returncode) == ("[] 0\n", "", 0)
        answer.read()
        stream.close()


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(9)
    acknowledged: set[bytes] = set()
    for _ in range(20):
        server = ServerProcess(tmp_path)
        address = server.url.removeprefix("http://")
        assert address, server.process.stderr and server.process.stderr.read()
        enough = threading.Event()

        def push(address: str = address, enough: threading.Event = enough) -> None:
            connection = http.client.HTTPConnection(address, timeout=20)
            sent = 0
            try:
                while True:
                    sender = Sender()
                    ids = []
                    for index in range(64):
                        trace = os.urandom(16)
                        ids.append(trace + sender.step(index, trace=trace))
                    connection.request("POST", "/v1/traces", sender.body(), {"Content-Type": "application/x-protobuf"})
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status == 200
                    acknowledged.update(ids)
                    sent += 1
                    if sent == 3:
                        enough.set()
            except (OSError, http.client.HTTPException):
                pass  # killed
            finally:
                connection.close()

        threads = [threading.Thread(target=push) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert enough.wait(30)
        time.sleep(rng.random() * 0.15)
        server.end(signal.SIGKILL)
        for thread in threads:
            thread.join(20)
    server = ServerProcess(tmp_path)  # it opens, and the counts agree
    steps = Client(server.url).get("/api/steps?limit=1").status
    assert (steps, server.end()) == (200, 0)
    db = sqlite3.connect(tmp_path / FILE_NAME)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = [trace + ids for trace, ids in db.execute("SELECT trace_id, span_ids FROM spans")]
    rows = db.execute("SELECT count(*), (SELECT sum(steps) FROM runs) FROM steps").fetchone()
    db.close()
    assert len(acknowledged) >= 20 * 3 * 64
    assert acknowledged <= set(stored)
    assert rows == (len(stored), len(stored))
    assert len(set(stored)) == len(stored)


def test_two_servers_on_one_folder(tmp_path: Path) -> None:
    with running(tmp_path) as live, pytest.raises(UsageError, match=f"in use by process {os.getpid()} at {live.url}"):
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path}))


@pytest.mark.parametrize("flag", ["--port", "--grpc-port"])
def test_a_busy_port_is_named_and_nothing_stays_taken(tmp_path: Path, flag: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        values = {"port": 0, "grpc_port": 0, "data": tmp_path, flag[2:].replace("-", "_"): port}
        with pytest.raises(UsageError) as caught:
            LiveServer(Settings(values))
        assert f"127.0.0.1:{port} cannot be listened on" in caught.value.message
        assert flag in caught.value.fix
    with running(tmp_path):
        pass


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"host": "0.0.0.0"}, "no token"),
        ({"port": 70_000}, "over 65535"),
        ({"host": "no such host", "token": "t"}, "not known"),
    ],
)
def test_wrong_addresses(tmp_path: Path, values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path, **values}))


def test_beyond_loopback_any_host_name_with_the_token(tmp_path: Path) -> None:
    with running(tmp_path, host="0.0.0.0", token="t") as live:
        assert live.get("/api/runs", Host="collector:4318").status == 401
        assert live.get("/api/runs", Host="collector:4318", Authorization="Bearer t").status == 200


def test_probe(live: Client) -> None:
    found = probe(live.url, 5)
    assert found is not None
    assert found["service"] == "claudescope"
    assert probe(live.url + "/", 5) == found


def test_probe_of_nobody_and_of_somebody_else() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert probe(f"http://127.0.0.1:{port}", 1) is None
    assert probe("http://[", 1) is None
    for body in (b"<html>", json.dumps([1]).encode(), b"{}"):

        class Handler(http.server.BaseHTTPRequestHandler):
            answer = body

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.answer)

            def log_message(self, *args: object) -> None:
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as other:
            thread = threading.Thread(target=other.serve_forever)
            thread.start()
            assert probe(f"http://127.0.0.1:{other.server_port}", 5) == {}
            other.shutdown()
            thread.join()
