"""Senders and servers for the tests of the embedded server."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from claudescope import semconv
from claudescope.live.server import LiveServer
from claudescope.settings import Settings

PROTOBUF = "application/x-protobuf"
SERVE = """
import sys
from pathlib import Path
from claudescope.live.server import serve
from claudescope.settings import Settings
values = {"port": 0, "grpc_port": 0, "data": Path(sys.argv[1])}
sys.exit(serve(Settings(values), open_browser=False, on_ready=lambda url: print(url, flush=True)))
"""


def any_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        made = AnyValue()
        made.array_value.values.extend([any_value(item) for item in value])
        return made
    return AnyValue(string_value=value)


class Sender:
    """Builds one request, span by span. Times are in milliseconds."""

    def __init__(self, service: str = "app") -> None:
        self.request = ExportTraceServiceRequest()
        resource_spans = self.request.resource_spans.add()
        self._set(resource_spans.resource.attributes, {semconv.SERVICE_NAME: service})
        self.spans = resource_spans.scope_spans.add().spans

    @staticmethod
    def _set(target: Any, attributes: dict[str, Any]) -> None:
        for key, value in attributes.items():
            target.add(key=key, value=any_value(value))

    def span(
        self,
        attributes: dict[str, Any],
        trace: bytes = b"\1" * 16,
        span: bytes | None = None,
        parent: bytes = b"",
        end_ms: int = 0,
        latency_ms: int = 100,
        name: str = "span",
    ) -> bytes:
        span = span or os.urandom(8)
        end_ms = end_ms or int(time.time() * 1000)
        made = self.spans.add(trace_id=trace, span_id=span, parent_span_id=parent, name=name, kind=1)
        made.end_time_unix_nano = end_ms * 1_000_000
        made.start_time_unix_nano = (end_ms - latency_ms) * 1_000_000
        self._set(made.attributes, attributes)
        return span

    def step(self, index: int, attributes: dict[str, Any] | None = None, **more: Any) -> bytes:
        return self.span({semconv.STEP_INDEX: index, semconv.STEP_KIND: "thinking", **(attributes or {})}, **more)

    def body(self) -> bytes:
        return self.request.SerializeToString()


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Plain HTTP to one server; a connection for each request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.address = url.removeprefix("http://")

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, body: bytes, path: str = "/v1/traces", content_type: str = PROTOBUF, **headers: str) -> Answer:
        return self.ask("POST", path, body, Content_Type=content_type, **headers)

    def send(self, sender: Sender) -> None:
        answer = self.post(sender.body())
        assert answer.status == 200, answer.body

    def items(self, path: str) -> list[dict[str, Any]]:
        answer = self.get(path)
        assert answer.status == 200, answer.body
        return answer.json["items"]


class Stream:
    """One client of the event stream."""

    def __init__(self, url: str, last_event_id: str = "") -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        self._connection.request(
            "GET", "/api/stream", headers={"Last-Event-ID": last_event_id} if last_event_id else {}
        )
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.headers["content-type"].startswith("text/event-stream")
        assert self._answer.readline().startswith(b": claudescope")

    def next(self, *kinds: str) -> tuple[str, Any, str]:
        """The next event of one of these kinds: kind, data, id."""
        event, data, number = "", "", ""
        while line := self._answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data = value
            elif name == "id":
                number = value
            elif not name and event:
                if event in kinds:
                    return event, json.loads(data), number
                event = ""
        raise AssertionError("the stream ended")

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


@contextlib.contextmanager
def running(data: Path, **values: Any) -> Iterator[Client]:
    """A server on a thread of this process."""
    server = LiveServer(Settings({"port": 0, "grpc_port": 0, "data": data, **values}))
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(lambda url: ready.set(),))
    thread.start()
    try:
        assert ready.wait(20)
        yield Client(server.url)
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


class ServerProcess:
    """A server as a process of its own."""

    def __init__(self, data: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        if number != signal.SIGKILL:
            assert errors == ""
        return self.process.returncode
