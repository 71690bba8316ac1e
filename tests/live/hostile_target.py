"""A server process that hostile requests are fired at, and the rules that each of its answers must keep."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.rpc.status_pb2 import Status
from hostile_otlp import Shot
from live_kit import Sender
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from claudescope.live.receiver.otlp import JSON, PROTOBUF, OtlpError, decode
from claudescope.live.records import Batch, read_spans

SERVE = """
import sys
from pathlib import Path
from claudescope.live.server import serve
from claudescope.settings import Settings
values = {"port": 0, "grpc_port": int(sys.argv[2]), "data": Path(sys.argv[1]), "retain": 200 * 366 * 86_400.0}
sys.exit(serve(Settings(values), open_browser=False, on_ready=lambda url: print(url, flush=True)))
"""
MAX_RSS, MAX_PEAK = 400, 900
"""MB. One body of 16 MiB of empty messages takes over half a GiB while it is decoded; only one is at a time."""
METHODS = {
    signal: f"/opentelemetry.proto.collector.{package}.v1.{service}/Export"
    for signal, package, service in (
        ("traces", "trace", "TraceService"),
        ("metrics", "metrics", "MetricsService"),
        ("logs", "logs", "LogsService"),
    )
}


def documented_codes() -> frozenset[str]:
    """The error codes of the documentation."""
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8").partition("\n## Errors")[2]
    return frozenset(re.findall(r"`(\w+)`", text))


def _no_constant(name: str) -> Any:
    raise AssertionError(f"the answer has {name}, which is no JSON")


@dataclass(repr=False)
class Target:
    """A server process, what it took, and the rules that each of its answers must keep."""

    data: Path
    taken: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Span ids by trace id."""
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Answers by status."""

    def __post_init__(self) -> None:
        import socket

        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            grpc_port = bound.getsockname()[1]
        self.stderr = (self.data.parent / f"{self.data.name}.stderr").open("w+b")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(self.data), str(grpc_port)], stdout=subprocess.PIPE, stderr=self.stderr
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip().removeprefix("http://")
        if not self.address:
            said = self._said()
            self.kill()
            raise AssertionError(f"the server did not start: {said}")
        self._http = http.client.HTTPConnection(self.address, timeout=60)
        self._grpc = grpc.insecure_channel(
            f"127.0.0.1:{grpc_port}", options=(("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0))
        )
        self._codes = documented_codes()
        self._stream_faults: list[str] = []
        self._stream = threading.Thread(target=self._follow, daemon=True)
        self._stream.start()

    # ------------------------------------------------------------------------------------------ asking

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes, str]:
        for last in (False, True):
            try:
                self._http.request(method, path, body, headers)
                answer = self._http.getresponse()
                return answer.status, answer.read(), answer.headers.get("content-type", "")
            except (http.client.HTTPException, OSError):
                self._http.close()  # a refused request may close the connection; it must not stay so
                self.assert_alive()
                if last:
                    raise
        raise AssertionError

    def _follow(self) -> None:
        connection = http.client.HTTPConnection(self.address, timeout=600)
        try:
            connection.request("GET", "/api/stream")
            answer = connection.getresponse()
            while line := answer.readline():  # to its end, which closes it
                if line.startswith(b"data: "):
                    json.loads(line[6:].decode("utf-8"), parse_constant=_no_constant)
        except (OSError, http.client.HTTPException):
            pass  # the server ended
        except Exception as error:
            self._stream_faults.append(repr(error))
        finally:
            connection.close()

    def assert_alive(self) -> None:
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}: {self._said()}"
        assert not self._stream_faults, self._stream_faults

    def _said(self) -> str:
        self.stderr.flush()
        self.stderr.seek(0)
        return self.stderr.read().decode("utf-8", "replace")

    # ------------------------------------------------------------------------------------------ rules

    def fire(self, shot: Shot) -> int:
        """Sends a shot; what was not a success must be a named 4xx, or a 503 that says to come again."""
        status = self._fire_grpc(shot) if shot.over_grpc else self._fire_http(shot)
        self.counts[f"{shot.signal} {'grpc' if shot.over_grpc else 'http'} {status}"] += 1
        if status == 200 and shot.signal == "traces":
            self._note(shot)
        return status

    def _fire_http(self, shot: Shot) -> int:
        headers = {"Content-Type": shot.content_type} if shot.content_type else {}
        if shot.content_encoding:
            headers["Content-Encoding"] = shot.content_encoding
        status, body, media = self._ask("POST", f"/v1/{shot.signal}", shot.body, headers)
        assert status == 200 or 400 <= status < 500 or status == 503, (status, body)
        if status == 200:
            assert media in (PROTOBUF, JSON)
        elif media == JSON:
            self._check_envelope(status, body)
        else:
            assert media == PROTOBUF
            assert Status.FromString(body).message, body
            assert b"failed to answer" not in body
        return status

    def _check_envelope(self, status: int, body: bytes) -> None:
        error = json.loads(body, parse_constant=_no_constant)["error"]
        assert error.keys() == {"code", "message", "fix"}
        assert all(isinstance(text, str) and text for text in error.values())
        assert error["code"] in self._codes, error
        assert error["code"] != "internal_error", (status, error)

    def _fire_grpc(self, shot: Shot) -> int:
        call = self._grpc.unary_unary(METHODS[shot.signal])
        packing = grpc.Compression.Gzip if shot.content_encoding == "gzip" else None
        try:
            call(shot.body, timeout=60, compression=packing)
            return 200
        except grpc.RpcError as caught:
            code, details = caught.code(), caught.details()
        statuses = {
            grpc.StatusCode.INVALID_ARGUMENT: 400,
            grpc.StatusCode.RESOURCE_EXHAUSTED: 413,
            grpc.StatusCode.UNAVAILABLE: 503,
        }
        assert code in statuses, (code, details)
        assert details
        return statuses[code]

    def _note(self, shot: Shot) -> None:
        try:
            batch = Batch()
            list(read_spans(decode(ExportTraceServiceRequest, *shot.plain()), batch))
        except OtlpError as error:
            raise AssertionError(f"taken, though it is {error}") from error
        for chunk in batch.chunks.values():
            self.taken[chunk.trace_id.hex()].update(span.span_id.hex() for span in chunk.spans)

    def volley(self, shot: Shot, paths: list[str]) -> None:
        """A shot, then all that the API must be able to say afterwards."""
        before = set(self.taken)
        self.fire(shot)
        for trace in set(self.taken) - before:
            self.check_trace(trace)
        for path in paths:
            self.ask(path)
        self.prove()

    def ask(self, path: str) -> int:
        """Asks a question; the answer must be good JSON (or metrics), or an error with a name."""
        status, body, media = self._ask("GET", path, None, {})
        self.counts[f"ask {status}"] += 1
        assert status == 200 or 400 <= status < 500, (path, status, body)
        if status != 200:
            self._check_envelope(status, body)
        elif media == JSON:
            json.loads(body.decode("utf-8"), parse_constant=_no_constant)
        return status

    def get(self, path: str) -> Any:
        status, body, _ = self._ask("GET", path, None, {})
        assert status == 200, (path, status, body)
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)

    def prove(self) -> None:
        """A good batch is taken and found again, each step of it, and so is every span of one trace taken before."""
        sender = Sender(service="good")
        trace = os.urandom(16)
        ids = [sender.step(index, trace=trace).hex() for index in range(3)]
        status, body, _ = self._ask("POST", "/v1/traces", sender.body(), {"Content-Type": PROTOBUF})
        assert status == 200, body
        found = self.get(f"/api/steps?trace={trace.hex()}&order=asc")["items"]
        assert {step["span_id"] for step in found} == set(ids)
        assert self.get("/healthz")["service"] == "claudescope"

    def check_trace(self, trace: str) -> None:
        """Every span that was taken of a trace is in the API's answer, and nothing else."""
        found = self.get(f"/api/traces/{trace}")
        assert {span["span_id"] for span in found["spans"]} == self.taken[trace]

    def rss(self, which: str = "VmRSS") -> float:
        """Resident memory in MB, or with ``VmHWM`` the most that it ever was."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split(f"{which}:")[1].split()[0]) / 1024

    def check_memory(self) -> None:
        """Neither too much memory now, nor at any time."""
        assert self.rss() < MAX_RSS, f"{self.rss():.0f} MB"
        assert self.rss("VmHWM") < MAX_PEAK, f"{self.rss('VmHWM'):.0f} MB at the most"

    def stop(self) -> None:
        """Ends the server, which must say nothing and end well."""
        self.assert_alive()
        self._grpc.close()
        self._http.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self._stream.join(30)
        said = self._said()
        assert said == "", said

    def kill(self) -> None:
        """Ends the process if it is still there, and lets go of its pipes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.stderr.close()
