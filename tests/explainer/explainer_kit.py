"""What the explainer's tests share: webhooks as Alertmanager sends them, servers that keep what they are asked, the
explainer itself as a thread or a process, and a Prometheus that answers from counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from claudescope.explainer.options import Options
from claudescope.explainer.service import Explainer

TOKEN = "a-token-of-the-explainer"
STARTS = "2026-11-30T10:00:00Z"
STARTS_MS = 1_796_032_800_000
ENDS = "2026-11-30T11:30:00.5Z"
ENDS_MS = 1_796_038_200_500
SPEC = """\
version: prometheus/v1
service: shop
slos:
  - name: validity
    objective: 99
    description: Steps are valid.
    indicator:
      step_validity: {service: "*"}
    group_by: [service]
"""


class Asked(NamedTuple):
    """One request that a server got."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


class Recorder:
    """A real HTTP server on loopback. ``answer(asked)`` gives status and JSON, and optionally headers."""

    def __init__(self, answer: Callable[[Asked], tuple[Any, ...]] = lambda asked: (200, {})) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                kind = self.headers.get("content-type", "")
                body: Any = json.loads(raw) if raw and "json" in kind else raw.decode()
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, parts.path, parse_qs(parts.query), headers, body)
                recorder.asked.append(asked)
                status, found, *more = recorder.answer(asked)
                data = b"" if found is None else found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def of(self, method: str, path: str = "") -> list[Asked]:
        """The requests with a method, and with a path where one is given."""
        return [one for one in self.asked if one.method == method and path in ("", one.path)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FakePrometheus:
    """Answers the explainer's queries: ``search`` fails now and did not before, everything else is as it was.

    Rates of events a second by tool, at each point of a range: the last one is now.
    """

    def __init__(self) -> None:
        self.status = 200
        self.queries: list[tuple[str, dict[str, list[str]]]] = []
        self.exemplars: list[dict[str, Any]] = []
        self.calls: dict[str, list[dict[str, Any]]] = {}

    def __call__(self, asked: Asked) -> tuple[int, Any]:
        given = {**asked.query, **(parse_qs(asked.body) if isinstance(asked.body, str) else {})}
        path = asked.path.removeprefix("/api/v1/")
        self.queries.append((path, given))
        if self.status != 200:
            return self.status, {"status": "error"}
        data: Any = []
        if path == "labels":
            data = ["__name__", "service_name", "gen_ai_tool_name", "claudescope_label_tier", "instance"]
        elif path.startswith("label/"):
            data = {"claudescope_label_tier": ["gold", "free"]}.get(path.split("/")[1], ["one", "two"])
        elif path == "query_range":
            data = {"resultType": "matrix", "result": self._matrix(given)}
        elif path == "query_exemplars":
            data = self.exemplars
        elif path == "query":
            found = [rows for part, rows in self.calls.items() if part in given["query"][0]]
            data = {"resultType": "vector", "result": found[0] if found else []}
        return 200, {"status": "success", "data": data}

    def _matrix(self, given: Mapping[str, list[str]]) -> list[dict[str, Any]]:
        start, end, step = (float(given[name][0]) for name in ("start", "end", "step"))
        count = round((end - start) / step) + 1
        failing = 'claudescope_step_valid="false"' in given["query"][0]
        rows = []
        for tool in ("search", "lookup", "pay"):
            values = []
            for point in range(count):
                now = point == count - 1
                rate = 0.1 if not failing else 0.05 if now and tool == "search" else 0.001
                values.append([start + point * step, str(rate)])
            rows.append({"metric": {"service_name": "shop", "gen_ai_tool_name": tool}, "values": values})
        return rows


def labels(**more: str) -> dict[str, str]:
    return {
        "alertname": "ShopValidityBudgetBurn",
        "severity": "page",
        "burnrate_tier": "page-fast",
        "long": "1h",
        "short": "5m",
        "claudescope_slo": "shop-validity",
        "claudescope_slo_name": "validity",
        "claudescope_slo_service": "shop",
        "service_name": "shop",
        **more,
    }


def alert(number: int = 1, *, ended: bool = False, starts: str = STARTS, **more: str) -> dict[str, Any]:
    """One alert as Alertmanager writes it."""
    return {
        "status": "resolved" if ended else "firing",
        "labels": labels(**more),
        "annotations": {
            "summary": "shop-validity burns",
            "description": "20 % of steps are invalid.",
            "dashboard": "http://localhost:3000/d/claudescope-slo?var-slo=shop-validity",
        },
        "startsAt": starts,
        "endsAt": ENDS if ended else "0001-01-01T00:00:00Z",
        "generatorURL": "http://localhost:9090/graph?g0.expr=x",
        "fingerprint": f"{number:016x}",
    }


def webhook(*alerts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body of version 4."""
    return {
        "version": "4",
        "groupKey": '{}:{alertname="ShopValidityBudgetBurn"}',
        "truncatedAlerts": 0,
        "status": "firing" if any(one["status"] == "firing" for one in alerts) else "resolved",
        "receiver": "explainer",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://localhost:9093",
        "alerts": list(alerts),
        **more,
    }


def ask(
    url: str, body: Any = None, *, token: str = TOKEN, method: str = "", **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Status, JSON (or text) and headers of an answer. ``body`` is JSON, or bytes as they are."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    given = {"Authorization": f"Bearer {token}"} if token else {}
    if data is not None:
        given["Content-Type"] = "application/json"
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, given, method=method or None)
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, _content(answer), _lower(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _content(error), _lower(error.headers)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _content(answer: Any) -> Any:
    text = answer.read().decode()
    try:
        return json.loads(text)
    except ValueError:
        return text


def eventually(found: Callable[[], Any], seconds: float = 30.0, every: float = 0.02) -> Any:
    """The first truthy answer, or the last one after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (answer := found()) and time.monotonic() < deadline:
        time.sleep(every)
    return answer


def options(folder: Path, **more: Any) -> Options:
    """Settings for a service in ``folder``."""
    spec = folder / "slo.yml"
    spec.write_text(SPEC)
    given = {"token": TOKEN, "slo": str(spec), "data": str(folder / "data"), "port": 0, "timeout": 5}
    return Options.load({**given, **more}, {})


@contextlib.contextmanager
def running(folder: Path, **more: Any) -> Iterator[Explainer]:
    """The explainer in this process, until the block ends."""
    explainer = Explainer(options(folder, **more))
    ready = threading.Event()
    thread = threading.Thread(target=explainer.run, args=(ready.set,), daemon=True)
    thread.start()
    try:
        assert ready.wait(30)
        yield explainer
    finally:
        explainer.stop()
        thread.join(30)
        assert not thread.is_alive()


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables for a process."""
    spec = folder / "slo.yml"
    spec.write_text(SPEC)
    given = {"TOKEN": TOKEN, "SLO": str(spec), "DATA": str(folder / "data"), "PORT": "0", "TIMEOUT": "5", **more}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLAUDESCOPE_")}
    return kept | {f"CLAUDESCOPE_EXPLAINER_{name}": value for name, value in given.items()}


class Process:
    """``claudescope explainer`` as a person starts it."""

    def __init__(self, folder: Path, *flags: str, extra_path: str = "", **variables: str) -> None:
        env = environment(folder, **variables)
        if extra_path:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, (extra_path, env.get("PYTHONPATH", ""))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "claudescope", "explainer", *flags],
            env=env,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self._ended())
        found = re.search(r"http://\S+", line)
        assert found is not None
        self.line, self.url = line, found[0]

    def kill(self) -> None:
        """As the kernel does it."""
        self.process.send_signal(signal.SIGKILL)
        self._ended()

    def end(self) -> tuple[int, str]:
        """Asks it to end: its exit code and what it said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        said = self._ended()
        return self.process.returncode, said

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said.extend(self.process.stderr)

    def _ended(self) -> str:
        self.process.wait(60)
        self._reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return "".join(self._said)


@contextlib.contextmanager
def process(folder: Path, *flags: str, **more: Any) -> Iterator[Process]:
    """The same; at the end it is asked to end if it is there still, and killed where it does not."""
    started = Process(folder, *flags, **more)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            try:
                started.end()
            except subprocess.TimeoutExpired:
                started.kill()
