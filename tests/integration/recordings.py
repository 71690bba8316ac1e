"""The recorded `POST .../v1/messages` exchanges and SSE fixtures of ``../shared/cassettes``, and a server of them.

Read from the files in each recorder's own form: VCR (YAML, body as a string, as parsed JSON or as gzip bytes), the
SDK's snapshots (JSON lists of exchanges) and bare event streams, which have no request.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2].parent / "shared" / "cassettes"
HEADER = "x-recorded-exchange"
_DROPPED_HEADERS = {"content-length", "transfer-encoding", "connection", "content-encoding", "retry-after", "date"}


@dataclass
class Exchange:
    """One request and its answer as recorded. ``events`` are those of a stream, else None."""

    file: str
    request: dict[str, Any]
    beta: bool
    betas: list[str]
    status: int
    headers: dict[str, str]
    body: bytes
    encoded: bytes
    """The body as it goes over the wire: gzip where it was recorded so."""
    events: list[dict[str, Any]] | None = None
    message: dict[str, Any] = field(default_factory=dict)
    """The message of the answer, for a stream put together from its events; empty for an error."""

    @property
    def kinds(self) -> list[str]:
        return [block["type"] for block in self.message.get("content", ())]

    @property
    def texts(self) -> list[str]:
        """The text of each text and thinking block."""
        return [block[block["type"]] for block in self.message.get("content", ()) if block["type"] in PROSE]


PROSE = ("text", "thinking")


def folder() -> Path:
    if not ROOT.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("../shared/cassettes is missing")
        pytest.skip("no recorded exchanges beside the repository")
    return ROOT


def load() -> tuple[list[Exchange], Counter[str]]:
    """All exchanges in the order of their files, and how many files and requests were left out, by reason."""
    root, exchanges, left_out = folder(), [], Counter[str]()
    for path in sorted(root.rglob("*")):
        if path.is_dir():
            continue
        if path.suffix in (".sse", ".txt"):
            # the files end with the last event's data, and an event ends with an empty line
            body = path.read_bytes().rstrip() + b"\n\n"
            exchanges.append(_fixture(path.relative_to(root).as_posix(), body))
        elif path.suffix in (".yaml", ".json"):
            interactions = _interactions(path)
            found = [made for part in interactions if (made := _exchange(path.relative_to(root).as_posix(), part))]
            if not found:
                left_out["file without a POST to /v1/messages"] += 1
            left_out["request to another path or host"] += len(interactions) - len(found)
            exchanges += found
        else:
            left_out[f"{path.suffix} file"] += 1
    return exchanges, left_out


def _interactions(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    import yaml

    return (yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {})["interactions"]


def _exchange(file: str, recorded: dict[str, Any]) -> Exchange | None:
    request, response = recorded["request"], recorded["response"]
    url = request.get("uri") or request["url"]
    path, _, query = url.partition("?")
    if request["method"] != "POST" or not path.endswith("/v1/messages"):
        return None
    sent = _headers(request["headers"])
    headers = _headers(response["headers"])
    raw = _bytes(response)
    plain = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    status = response.get("status_code") or response["status"]
    made = Exchange(
        file,
        json.loads(_bytes(request)),
        "beta=true" in query,
        [name.strip() for name in sent.get("anthropic-beta", "").split(",") if name.strip()],
        status["code"] if isinstance(status, dict) else status,
        {name: value for name, value in headers.items() if name not in _DROPPED_HEADERS},
        plain,
        raw,
    )
    if plain is not raw:
        made.headers["content-encoding"] = "gzip"
    return _understood(made)


def _fixture(file: str, body: bytes) -> Exchange:
    made = Exchange(file, {}, False, [], 200, {"content-type": "text/event-stream; charset=utf-8"}, body, body)
    _understood(made)
    question = [{"role": "user", "content": "?"}]
    made.request = {"model": made.message["model"], "max_tokens": 1024, "messages": question, "stream": True}
    return made


def _headers(recorded: Any) -> dict[str, str]:
    pairs = recorded.items() if isinstance(recorded, dict) else recorded
    return {name.lower(): ", ".join(value) if isinstance(value, list) else str(value) for name, value in pairs}


def _bytes(part: dict[str, Any]) -> bytes:
    body = part.get("parsed_body")
    if body is None:
        body = part.get("body", part.get("content"))
        if isinstance(body, dict) and "string" in body:
            body = body["string"]
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _understood(exchange: Exchange) -> Exchange:
    """Fills in what the answer holds, by reading the wire format here: the SDK's reading is what is compared."""
    if not exchange.headers.get("content-type", "").startswith("text/event-stream"):
        if exchange.status == 200:
            exchange.message = json.loads(exchange.body)
        return exchange
    data = [line[5:] for line in exchange.body.decode().splitlines() if line.startswith("data:")]
    exchange.events = [json.loads(line) for line in data]
    message: dict[str, Any] = {}
    for event in exchange.events:
        kind = event["type"]
        if kind == "message_start":
            message = {**event["message"], "content": [], "usage": dict(event["message"]["usage"])}
        elif kind == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            for name in PROSE:
                if delta["type"] == f"{name}_delta":
                    block[name] += delta[name]
        elif kind == "message_delta":
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["usage"].update({key: value for key, value in event["usage"].items() if value is not None})
    exchange.message = message
    return exchange


class ReplayServer:
    """Answers the request whose header names exchange n with what was recorded for it."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self.received: list[tuple[int, dict[str, str], bytes]] = []
        """Exchange, headers and body of each request."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                number = int(self.headers[HEADER])
                server.received.append((number, {k.lower(): v for k, v in self.headers.items()}, body))
                exchange = exchanges[number]
                self.send_response_only(exchange.status)
                for name, value in exchange.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(exchange.encoded)))
                self.end_headers()
                self.wfile.write(exchange.encoded)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> ReplayServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
