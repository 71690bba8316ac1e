"""Ingest of the embedded server: spans a second, acknowledged after the commit, and each of them found again.

    python bench/ingest.py [--rows N] [--spans N] [--page] [--fail-below N]

Server and sender are one process each. A span has 12 attributes and about 600 B, a trace has 8 spans, ids are random,
a request has 512 spans, one client reads the event stream all the time; with ``--page`` that client is the page itself
in a headless Chromium. ``--rows`` fills the store first. At the end the store is opened by itself: every acknowledged
span id must be there, and the steps counted by trace and by number.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE = 8
BATCH = 512
SERVE = """
import sys
from claudescope.live.server import serve
from claudescope.settings import Settings
from pathlib import Path
values = {"port": 0, "grpc_port": 0, "data": Path(sys.argv[1]), "retain": 366 * 86_400.0, "max_size": 10**12}
values["slo"] = tuple(map(Path, sys.argv[2:]))
sys.exit(serve(Settings(values), open_browser=False, on_ready=lambda url: print(url, flush=True)))
"""


def start_server(folder: Path, *objectives: str) -> tuple[subprocess.Popen, str]:
    command = [sys.executable, "-c", SERVE, str(folder), *objectives]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    if not url:
        raise SystemExit("the server did not start")
    return server, url


def template() -> bytes:
    """One serialized request whose ids are replaced by position: making it again costs the sender nothing."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    attribute = resource_spans.resource.attributes.add()
    attribute.key, attribute.value.string_value = "service.name", "bench"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "claudescope"
    for number in range(BATCH):
        span = scope_spans.spans.add()
        span.trace_id = b"T" * 12 + (number // TRACE).to_bytes(4, "big")
        span.span_id = b"S" * 4 + number.to_bytes(4, "big")
        span.parent_span_id = b"P" * 4 + (number // TRACE).to_bytes(4, "big")
        span.name = "reasoning_step thinking"
        span.kind = 1
        now = time.time_ns()
        span.start_time_unix_nano = now - random.Random(number).randrange(10**7, 10**9)
        span.end_time_unix_nano = now
        for key, value in {
            "claudescope.step.index": number % TRACE,
            "claudescope.step.kind": "thinking",
            "claudescope.step.latency.source": "measured",
            "claudescope.step.confidence": 0.83,
            "claudescope.step.confidence.method": "verbalised",
            "claudescope.step.confidence.calibrated": False,
            "claudescope.step.valid": number % 7 != 0,
            "claudescope.chain.id": f"C{number // TRACE:031d}",
            "claudescope.chain.confidence": 0.41,
            "gen_ai.request.model": "claude-sonnet-4-5",
            "gen_ai.provider.name": "anthropic",
            "claudescope.request.sha256": "sha256:" + "ab" * 32,
        }.items():
            attribute = span.attributes.add()
            attribute.key = key
            field = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}[type(value)]
            setattr(attribute.value, field, value)
    return request.SerializeToString()


class Bodies:
    """Requests with fresh random ids."""

    def __init__(self) -> None:
        self._body = bytearray(template())
        self._spots: list[tuple[int, int, str]] = []
        for number in range(BATCH):
            for mark, size in (
                (b"T" * 12 + (number // TRACE).to_bytes(4, "big"), "trace"),
                (b"S" * 4 + number.to_bytes(4, "big"), "span"),
                (f"C{number // TRACE:031d}".encode(), "chain"),
            ):
                at = -1
                while (at := self._body.find(mark, at + 1)) >= 0:
                    spot = (at, number // TRACE if size != "span" else number, size)
                    if spot not in self._spots[-40:]:
                        self._spots.append(spot)
        self._spots = list(dict.fromkeys(self._spots))
        self.span_bytes = len(self._body) / BATCH

    def make(self) -> tuple[bytes, bytes, bytes]:
        """Body, its 64 trace ids, its 512 span ids."""
        traces, spans, chains = os.urandom(16 * BATCH // TRACE), os.urandom(8 * BATCH), os.urandom(16 * BATCH // TRACE)
        names = chains.hex().encode()
        body = self._body
        for at, number, kind in self._spots:
            if kind == "span":
                body[at : at + 8] = spans[number * 8 : number * 8 + 8]
            elif kind == "trace":
                body[at : at + 16] = traces[number * 16 : number * 16 + 16]
            else:
                body[at : at + 32] = names[number * 32 : number * 32 + 32]
        return bytes(body), traces, spans


def listen(url: str, seen: Counter) -> None:
    """The one client of the event stream: reads all, counts events."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/api/stream")
    answer = connection.getresponse()
    rest = b""
    try:
        while data := answer.read1(262_144):
            seen["bytes"] += len(data)
            whole, _, rest = (rest + data).rpartition(b"\n")
            seen["steps"] += (whole + b"\n").count(b"event: step\n")
            seen["lag"] += (whole + b"\n").count(b"event: lag\n")
    except (OSError, http.client.HTTPException, ValueError):
        pass


def send(url: str, bodies: list[bytes]) -> tuple[list[int], int]:
    """Sends each body until it is acknowledged. Returns the numbers of those acknowledged, and of retries."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    done, retries = [], 0
    for number, body in enumerate(bodies):
        while True:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                done.append(number)
                break
            retries += 1
            time.sleep(float(answer.headers.get("Retry-After", "0.1")) / 10)
    return done, retries


def push(url: str, total: int, senders: int = 4) -> tuple[float, list[tuple[bytes, bytes]], int]:
    """Sends ``total`` spans; returns seconds, (trace ids, span ids) of each acknowledged body, retries."""
    source = Bodies()
    seconds, acknowledged, retries = 0.0, [], 0
    left = total // BATCH
    with concurrent.futures.ThreadPoolExecutor(senders) as pool:
        while left:
            part = [source.make() for _ in range(min(left, 64))]  # made outside of the measured time
            left -= len(part)
            began = time.perf_counter()
            for at, (done, again) in enumerate(
                pool.map(
                    lambda lot: send(url, [body for body, _, _ in lot]), [part[i::senders] for i in range(senders)]
                )
            ):
                acknowledged += [part[at::senders][number][1:] for number in done]
                retries += again
            seconds += time.perf_counter() - began
    return seconds, acknowledged, retries


def verify(folder: Path, acknowledged: list[tuple[bytes, bytes]]) -> None:
    """Every acknowledged span is in the store, once, counted by trace and by step number."""
    db = sqlite3.connect(f"file:{folder / 'store.sqlite'}?mode=ro", uri=True)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = Counter()
    for trace, ids in db.execute("SELECT trace_id, span_ids FROM spans"):
        for at in range(0, len(ids), 8):
            stored[trace + ids[at : at + 8]] += 1
    expected = set()
    for traces, spans in acknowledged:
        for number in range(BATCH):
            trace = number // TRACE
            expected.add(traces[trace * 16 : trace * 16 + 16] + spans[number * 8 : number * 8 + 8])
    missing = expected - stored.keys()
    assert not missing, f"{len(missing)} acknowledged spans are missing"
    assert max(stored.values()) == 1, "a span is stored twice"
    by_trace = dict(db.execute("SELECT trace_id, count(*) FROM steps GROUP BY trace_id"))
    assert all(by_trace[trace[:16]] == TRACE for trace in expected), "a trace has another number of steps"
    by_step = dict(db.execute("SELECT step_index, count(*) FROM steps GROUP BY step_index"))
    each = len(stored) // TRACE
    assert by_step == dict.fromkeys(range(TRACE), each), by_step
    runs = db.execute("SELECT count(*), sum(steps) FROM runs").fetchone()
    assert runs == (each, each * TRACE), runs
    print(f"  found again: {len(expected)} acknowledged spans, {len(by_trace)} traces of {TRACE}, {each} of each step")


def rss(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=0, help="spans to store first")
    parser.add_argument("--spans", type=int, default=200_000, help="spans to measure with")
    parser.add_argument("--page", action="store_true", help="the page in a browser, not a plain client of the stream")
    parser.add_argument("--slo", metavar="FILE", action="append", default=[], help="objectives that the server counts")
    parser.add_argument("--fail-below", type=float, default=0, help="exit with 1 below so many spans a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="claudescope-bench-") as name, contextlib.ExitStack() as undo:
        folder = Path(name)
        server, url = start_server(folder, *arguments.slo)
        try:
            acknowledged = []
            if arguments.rows:
                seconds, acknowledged, _ = push(url, arguments.rows)
                print(f"prefilled {len(acknowledged) * BATCH} spans at {len(acknowledged) * BATCH / seconds:,.0f}/s")
            seen: Counter = Counter()
            if arguments.page:
                from live import browser_cpu, chromium

                browser = undo.enter_context(chromium())
                browser.new_page(viewport={"width": 1280, "height": 900}).goto(url)
                time.sleep(2)
                browser_before = browser_cpu()
            else:
                threading.Thread(target=listen, args=(url, seen), daemon=True).start()
            time.sleep(0.3)
            before, own = cpu(server.pid), sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            seconds, measured, retries = push(url, arguments.spans)
            spans = len(measured) * BATCH
            rate = spans / seconds
            used = cpu(server.pid) - before
            print(
                f"{rate:,.0f} spans/s into a store of {arguments.rows:,} spans"
                f" ({spans:,} spans of {Bodies().span_bytes:.0f} B, {seconds:.2f} s, {retries} retries)"
            )
            print(
                f"  server: {used / spans * 1e6:.1f} us CPU a span, {rss(server.pid):.0f} MB RSS; sender and stream"
                f" client: {(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - own) / spans * 1e6:.1f} us CPU a span"
            )
            time.sleep(0.5)
            if arguments.page:
                print(f"  browser with the page: {(browser_cpu() - browser_before) / seconds:.0%} of a core")
                undo.close()
            else:
                print(f"  stream client: {seen['steps']} steps, {seen['lag']} lag events, {seen['bytes'] / 1e6:.0f} MB")
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0
            size = sum(file.stat().st_size for file in folder.iterdir())
            print(f"  disk: {size / (len(acknowledged) * BATCH + spans):.0f} B a span")
            verify(folder, acknowledged + measured)
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
    if rate < arguments.fail_below:
        print(f"below {arguments.fail_below:,.0f} spans/s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
