"""The stand-in as a server: determinism, parallel requests, raw HTTP, clean stop, a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import anthropic
import pytest

from claudescope.testing.clock import Clock
from claudescope.testing.script import Pace, Stall, say, thinking, tool_use
from claudescope.testing.standin import StandIn, main

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}'


def ask(text: str) -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": [{"role": "user", "content": text}]}


def exchange(standin: StandIn, raw: bytes) -> bytes:
    """Sends bytes on a connection of its own; what comes back until the server closes it."""
    with socket.create_connection(("127.0.0.1", standin.port), timeout=30) as sock:
        sock.sendall(raw)
        parts = []
        while part := sock.recv(65536):
            parts.append(part)
        return b"".join(parts)


def post(body: bytes, headers: str = "") -> bytes:
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def test_the_same_seed_gives_the_same_bytes():
    script = say(thinking("hm" * 40), "abc" * 40, tool_use("f", {"a": "b" * 50}), pace=Pace(chunk=9, jitter=0.9))

    def run(seed: int) -> list[bytes]:
        with StandIn(script, seed=seed) as standin:
            return [exchange(standin, post(BODY)) for _ in range(2)]

    first, second = run(7), run(7)
    assert first == second
    assert first[0] != first[1]  # equal requests differ in ids and in how the text is cut
    assert run(8)[0] != first[0]


def test_parallel_requests_get_the_same_bytes_in_any_order():
    bodies = [BODY.replace(b"hi", b"hi %d" % number) for number in range(6)]

    def run(order: list[bytes]) -> dict[bytes, bytes]:
        with StandIn(say("abc"), seed=3) as standin:
            return {body: exchange(standin, post(body)) for body in order}

    assert run(bodies) == run(bodies[::-1])


async def test_a_hundred_calls_at_once():
    with StandIn(lambda request: say("re: " + request["messages"][0]["content"])) as standin:
        arrived = asyncio.Event()
        async with anthropic.AsyncAnthropic(base_url=standin.url, api_key="k", max_retries=0) as client:

            async def call(number: int) -> str:
                await arrived.wait()
                async with client.messages.stream(**ask(str(number))) as stream:
                    return await stream.get_final_text()

            tasks = [asyncio.create_task(call(number)) for number in range(100)]
            arrived.set()
            assert await asyncio.gather(*tasks) == [f"re: {number}" for number in range(100)]
        assert len(standin.requests) == 100


def test_requests_are_noted_as_they_came():
    body = BODY.replace(b'"stream":true', b'"stream":false')
    with StandIn() as standin:
        exchange(standin, post(body, "Traceparent: 00-a\r\ntraceparent: 00-b\r\n"))
        (request,) = standin.requests
    assert (request.method, request.target, request.body) == ("POST", "/v1/messages", body)
    assert request.header("TRACEPARENT") == ["00-a", "00-b"]
    assert request.headers[0] == ("host", "x")
    assert request.json["model"] == "m"


def test_only_the_latest_requests_are_kept():
    with StandIn(keep=2) as standin:
        for number in range(3):
            exchange(standin, post(BODY.replace(b"hi", b"%d" % number)))
        assert [request.json["messages"][0]["content"] for request in standin.requests] == ["1", "2"]


def test_connections_are_kept_and_chunked_bodies_are_read():
    chunked = b"POST /v1/messages?a=b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
    chunked += b"%x\r\n%b\r\n%x;ext=1\r\n%b\r\n0\r\ntrailer: t\r\n\r\n" % (40, BODY[:40], len(BODY) - 40, BODY[40:])
    with StandIn(say("hi")) as standin:
        answer = exchange(standin, chunked + post(BODY))
        assert [(request.body, request.query) for request in standin.requests] == [(BODY, "a=b"), (BODY, "")]
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert answer.count(b"event: message_stop\n") == 2
    assert answer.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\na: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_ends_the_connection(raw):
    with StandIn() as standin:
        with contextlib.suppress(ConnectionResetError):  # it may close with bytes of ours unread
            assert exchange(standin, raw) == b""
        assert exchange(standin, post(b"{}")).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert len(standin.requests) == 1


def test_an_event_is_sent_at_once():
    # With Nagle's algorithm each stream after the first on a connection waits 40 ms for a delayed ACK: 50 of them 2 s.
    request = post(BODY).replace(b"connection: close\r\n", b"")
    with (
        StandIn(say("a" * 400)) as standin,
        socket.create_connection(("127.0.0.1", standin.port), timeout=30) as sock,
    ):
        took = []
        for _ in range(50):
            began = time.perf_counter()
            sock.sendall(request)
            received = b""
            while not received.endswith(b"\r\n0\r\n\r\n"):
                received += sock.recv(65536)
            took.append(time.perf_counter() - began)
    assert statistics.median(took) < 0.035  # under 1 ms on an idle machine


def test_dates_follow_the_clock():
    clock = Clock()
    clock.advance(3661)
    with StandIn(clock=clock) as standin:
        assert b"anthropic-ratelimit-requests-reset: 2026-01-01T01:01:01Z\r\n" in exchange(standin, post(BODY))


def test_start_stop_and_start_again():
    standin = StandIn(say("hi"))
    with pytest.raises(RuntimeError, match="not started"):
        _ = standin.url
    standin.stop()  # nothing happens
    with standin:
        port = standin.port
        with pytest.raises(RuntimeError, match="running already"):
            standin.start()
        with pytest.raises(OSError):
            StandIn(port=port).start()
    with pytest.raises(ConnectionRefusedError):
        exchange(standin, b"")
    with standin:
        assert standin.port == port
        assert exchange(standin, post(BODY)).startswith(b"HTTP/1.1 200 OK")
    assert "claudescope-standin" not in [thread.name for thread in threading.enumerate()]


def test_several_things_to_use_must_be_replies():
    with pytest.raises(TypeError, match="function is not a Reply"):
        StandIn().use(say("a"), lambda request: say("b"))


LEAKS = """
import os, socket, threading
from claudescope.testing.script import Stall, say
from claudescope.testing.standin import StandIn
REQUEST = %r
def fds(): return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
before = None
for round in range(3):
    with StandIn([say("hi").failing(Stall("delta 0")), say("hi").failing(Stall("request")), say("hi")]) as standin:
        clients = [socket.create_connection(("127.0.0.1", standin.port)) for _ in range(4)]
        for client in clients[:3]:
            client.sendall(REQUEST)
            client.recv(1) if client is not clients[1] else None
        late = socket.create_connection(("127.0.0.1", standin.port))  # accepted or not when the server stops
    for client in (*clients, late):
        client.close()
    before = fds() if before is None else before
    assert fds() == before, (fds(), before)
assert [thread.name for thread in threading.enumerate()] == ["MainThread"], threading.enumerate()
"""


def test_nothing_is_left_behind():
    # In development mode an unclosed socket, transport or loop writes a ResourceWarning to standard error.
    code = LEAKS % post(BODY).replace(b"connection: close\r\n", b"")
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_of_its_own(number, tmp_path):
    (tmp_path / "myscript.py").write_text("from claudescope.testing.script import say\nreplies = say('scripted')\n")
    command = [sys.executable, "-X", "dev", "-m", "claudescope.testing.standin", "--script", "myscript:replies"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ}
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with anthropic.Anthropic(base_url=url, api_key="k") as client:
            assert client.messages.create(**ask("hi")).content[0].text == "scripted"
            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.communicate()


def test_a_script_that_is_not_there(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--script", "nowhere:replies"])
    assert caught.value.code == 2
    assert "nowhere:replies: No module named 'nowhere'" in capsys.readouterr().err


def test_a_stalled_reply_does_not_hold_the_others():
    with (
        StandIn([say("never").failing(Stall("headers")), say("now")]) as standin,
        socket.create_connection(("127.0.0.1", standin.port)) as stalled,
    ):
        stalled.sendall(post(BODY))
        assert stalled.recv(17) == b"HTTP/1.1 200 OK\r\n"
        assert b"message_stop" in exchange(standin, post(BODY.replace(b"hi", b"ho")))


def test_it_imports_neither_the_sdk_nor_opentelemetry():
    code = "import sys, claudescope.testing.standin; print([m for m in ('anthropic', 'opentelemetry.sdk', 'pydantic') "
    code += "if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
