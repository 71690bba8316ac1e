"""Who may ask, and how much: cookies and redirects, origins and content types, limits of queries, over raw sockets."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Answer, Client, Sender, Stream, running

from claudescope import semconv
from claudescope.live import stream
from claudescope.live.receiver.ingest import SIGNALS
from claudescope.live.web import connection, endpoint, events
from claudescope.live.web.security import MAX_PARAMETERS, MAX_QUERY


@contextlib.contextmanager
def connected(live: Client, receive_buffer: int = 0) -> Iterator[socket.socket]:
    host, _, port = live.address.rpartition(":")
    with socket.socket() as opened:
        if receive_buffer:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        opened.settimeout(30)
        opened.connect((host, int(port)))
        yield opened


def raw(live: Client, request: bytes) -> Answer:
    """The answer to bytes that no client library would send."""
    with connected(live) as opened:
        opened.sendall(request)
        text = b""
        while part := opened.recv(65_536):
            text += part
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return Answer(int(lines[0].split()[1]), headers, body)


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]["code"]


# ---------------------------------------------------------------------------------------------- the page's cookie


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Client]:
    with running(tmp_path / "data", token="s3cret&=?") as live:
        yield live


SPELLED = "s3cret%26%3D%3F"


@pytest.mark.parametrize(
    ("query", "location"),
    [
        (f"token={SPELLED}", "/"),
        (f"run=ab&token={SPELLED}&label=team%3Aa%20b&label=k%3A%26&q=", "/?run=ab&label=team%3Aa+b&label=k%3A%26&q="),
        (f"token={SPELLED}&q=%0d%0aSet-Cookie:x%3D1", "/?q=%0D%0ASet-Cookie%3Ax%3D1"),
        (f"token={SPELLED}&next=//evil.example", "/?next=%2F%2Fevil.example"),
    ],
)
def test_a_shared_view_stays_when_the_token_leaves_the_address(guarded: Client, query: str, location: str) -> None:
    answer = guarded.get(f"/?{query}")
    assert (answer.status, answer.headers["location"]) == (303, location)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "s3cret" not in cookie
    page = guarded.get(location, Cookie=cookie.partition(";")[0])
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_the_token_leaves_the_address_also_for_who_is_known(guarded: Client) -> None:
    cookie = guarded.get(f"/?token={SPELLED}").headers["set-cookie"].partition(";")[0]
    assert guarded.get(f"/?token={SPELLED}", Cookie=cookie).status == 303
    assert guarded.get("/?token=old", Cookie=cookie).status == 200


def test_a_link_on_another_site_opens_the_page(guarded: Client) -> None:
    """The cookie is not sent along there; the small page asks for the same address again, and then it is."""
    navigation = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    answer = guarded.get("/?range=1h", **navigation)
    assert answer.status == 200
    assert answer.body == b'<!doctype html><meta http-equiv="refresh" content="0"><title>claudescope</title>'
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert guarded.get("/?range=1h", **navigation | {"Sec-Fetch-Site": "same-origin"}).status == 401
    assert guarded.get("/api/runs", **navigation).status == 401
    assert guarded.get(f"/?token={SPELLED}", **navigation).status == 303


@pytest.mark.parametrize(
    "others",
    [
        "{}",
        'theme={{"dark":true,"x":[1]}}; {}',  # a browser sends the cookies of all ports of this host
        "a[0]=1; {}; b=2",
        "=;;lone; {}",
        "claudescope=of-another-server; {}",
        "{}; claudescope=of-another-server",
        "x=\xff;{}",
    ],
)
def test_cookies_of_other_programs_do_not_hide_ours(guarded: Client, others: str) -> None:
    cookie = guarded.get(f"/?token={SPELLED}").headers["set-cookie"].partition(";")[0]
    assert guarded.get("/api/status", Cookie=others.format(cookie)).status == 200
    assert guarded.get("/api/status", Cookie=others.format("claudescope=" + "0" * 64)).status == 401


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Basic s3cret&=?",
        "Authorization: Bearer",
        "Authorization: s3cret&=?",
        "Authorization: Bearer \xff",
        "Cookie: claudescope=s3cret&=?",
        "Cookie: claudescope",
        "Cookie: =;;\x01",
    ],
)
def test_what_is_no_token(guarded: Client, header: str) -> None:
    request = f"GET /api/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n".encode("latin-1")
    answer = raw(guarded, request)
    assert answer.status in (400, 401)  # a header that HTTP does not allow is refused before
    assert answer.status == 400 or answer.headers["www-authenticate"] == "Bearer"


# ---------------------------------------------------------------------------------------------- changing state


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_of_a_page_cannot_write(live: Client, signal: str, media: str) -> None:
    """Those are the types that a page may send to another origin without asking."""
    assert code(live.post(b"", f"/v1/{signal}", media)) == (415, "unsupported_content_type")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_else_changes_anything(live: Client, method: str) -> None:
    for path in ("/", "/api/runs", "/api/steps", "/metrics", "/healthz", "/api/stream", "/api/openapi.json"):
        assert code(live.ask(method, path)) == (405, "wrong_method")


def test_every_answer_has_the_headers_that_keep_browsers_from_more(live: Client) -> None:
    for path in ("/", "/api/runs", "/metrics", "/nothing", "/api/steps?x=1"):
        headers = live.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        for directive in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert directive in policy
        assert "unsafe" not in policy


# ---------------------------------------------------------------------------------------------- limits


def test_a_query_is_limited(live: Client) -> None:
    assert live.get("/api/steps?" + "kind=abc&" * (MAX_PARAMETERS - 1) + "kind=a").status == 200
    assert code(live.get("/api/steps?" + "kind=abc&" * MAX_PARAMETERS)) == (414, "query_too_long")
    assert code(live.get("/api/steps?kind=" + "k" * (MAX_QUERY - len("kind=")))) == (400, "bad_parameter")
    assert code(live.get("/api/steps?kind=" + "k" * MAX_QUERY)) == (414, "query_too_long")


@pytest.mark.parametrize(
    "target",
    [
        b"/api/steps?kind=%00",
        b"/api/steps?kind=%ff%fe",
        b"/api/steps?kind=%F0%9F%98%80",
        b"/api/steps?kind=a%26b%3D'%22--",
        b"/api/steps?&&=&",
        b"/api/steps?=x",
        b"/api/steps?%6bind=text",
        b"/api/steps?kind=a;kind=b",
        b"//api/steps",
        b"/api/../api/steps",
        b"/api/traces/%2e%2e%2f",
        b"/api/runs/" + b"%00" * 20,
        b"http://localhost/api/steps",
        b"*",
    ],
)
def test_odd_targets_are_answered(live: Client, target: bytes) -> None:
    answer = raw(live, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.status in (200, 400, 404)
    if answer.status != 200:
        assert set(answer.json["error"]) == {"code", "message", "fix"}


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_server_goes_on(live: Client, request_: bytes) -> None:
    answer = raw(live, request_)
    assert answer.status in (400, 421)
    assert live.get("/healthz").status == 200


def test_endless_headers_are_given_up(live: Client) -> None:
    with connected(live) as opened, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 300_000)
        assert opened.recv(100).startswith(b"HTTP/1.1 400")
    assert live.get("/healthz").status == 200


def test_http_1_0_is_answered(live: Client) -> None:
    assert raw(live, b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").json["service"] == "claudescope"


def test_streams_of_one_address_are_limited(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_PER_ADDRESS", 2)
    streams = [Stream(live.url), Stream(live.url)]
    answer = live.get("/api/stream")
    assert (*code(answer), answer.headers["retry-after"]) == (429, "too_many_streams", "5")
    streams.pop().close()
    while live.get("/api/stream?x=1").status == 400:  # the server sees the end with its next write
        try:
            streams.append(Stream(live.url))
            break
        except AssertionError:
            continue
    assert len(streams) == 2
    for opened in streams:
        opened.close()


# ---------------------------------------------------------------------------------------------- slow readers


def _fill(live: Client, events_: int) -> None:
    for start in range(0, events_, 1000):
        sender = Sender()
        for index in range(start, start + 1000):
            sender.step(index, {semconv.STEP_NAME: "n" * 250})
        live.send(sender)


def test_a_client_that_does_not_read_gets_lag(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets hold some of the events and the ring 8192: of 16,000 it misses many, and is told how many."""
    monkeypatch.setattr(stream, "STEPS_PER_S", 1_000_000)  # else most are left out for all
    with connected(live, receive_buffer=4096) as opened:
        opened.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = opened.recv(100)
        assert first.startswith(b"HTTP/1.1 200")
        _fill(live, 16_000)
        steps = missed = 0
        event = b""
        with opened.makefile("rb") as lines:
            while steps + missed < 16_000:
                line = lines.readline()
                if line.startswith(b"event: "):
                    event = line[7:].strip()
                elif line.startswith(b"data: ") and event == b"step":
                    steps += 1
                elif line.startswith(b"data: ") and event == b"lag":
                    missed += json.loads(line[6:])["count"]
    assert missed > 1000
    assert steps > 4000


def test_a_client_that_never_reads_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_STUCK_TIME", 0.5)
    monkeypatch.setattr(stream, "STEPS_PER_S", 1_000_000)
    with running(tmp_path / "data") as live, connected(live, receive_buffer=4096) as opened:
        opened.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        opened.recv(100)
        _fill(live, 12_000)
        watcher = Stream(live.url)
        while watcher.next("stats")[1]["clients"] > 1:
            pass
        watcher.close()
        with contextlib.suppress(ConnectionResetError):
            while opened.recv(65_536):
                pass


# ---------------------------------------------------------------------------------------------- compression


def test_large_answers_are_compressed_for_other_machines_only(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    _fill(live, 1000)
    path = "/api/steps?limit=1000"
    plain = live.get(path, Accept_Encoding="gzip")
    assert "content-encoding" not in plain.headers
    monkeypatch.setattr(endpoint, "_is_far", lambda request: True)
    packed = live.get(path, Accept_Encoding="br, gzip")
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 5
    assert "content-encoding" not in live.get(path).headers
    assert "content-encoding" not in live.get("/healthz", Accept_Encoding="gzip").headers
