"""How fast the embedded server is there, and what it weighs.

    python bench/start.py [--steps N]

From the start of the process to the answer of ``/healthz``; from the first span sent to the first cell of the heat
strip, from the API and from the stream; resident memory when N steps (100,000) are stored, after they came in, again
after a restart, and after every question that the page asks of all ranges of time.
"""

import argparse
import http.client
import json
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from ingest import BATCH, listen, push, rss, start_server

RSS_BARS = {100_000: 100, 1_000_000: 150}
"""MB by steps stored."""
RANGES = ("5m", "15m", "1h", "6h", "24h", "7d", "30d")
QUESTIONS = (
    *(f"/api/heatmap?range={name}" for name in RANGES),
    "/api/heatmap?range=7d&kind=thinking&confidence_min=0.7",
    *(f"/api/{name}?from={{from}}" for name in ("distribution", "facets")),
    *(f"/api/runs?sort={name}" for name in ("started", "steps", "duration", "tokens", "cost", "worst")),
    "/api/runs?status=failed",
    "/api/steps?valid=false&limit=1000",
    "/api/status",
)


def answer(url: str, path: str) -> dict:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", path)
        found = connection.getresponse()
        body = found.read()
        assert found.status == 200, (path, body)
        return json.loads(body)
    finally:
        connection.close()


def timed_start(folder: Path) -> tuple[subprocess.Popen, str, float]:
    began = time.perf_counter()
    server, url = start_server(folder)
    assert answer(url, "/healthz")["service"] == "claudescope"
    return server, url, time.perf_counter() - began


def end(server: subprocess.Popen) -> None:
    server.send_signal(signal.SIGTERM)
    server.wait(20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    failed = False

    def report(what: str, value: float, unit: str, bar: float) -> None:
        nonlocal failed
        failed |= value >= bar
        print(f"{what}: {value:.2f} {unit} (bar {bar:g})")

    with tempfile.TemporaryDirectory(prefix="claudescope-bench-") as name:
        folder = Path(name)
        server, url, seconds = timed_start(folder)
        try:
            report("process start to /healthz", seconds, "s", 2)
            print(f"memory when empty: {rss(server.pid):.0f} MB")
            stream = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
            stream.request("GET", "/api/stream")
            events = stream.getresponse()
            began = time.perf_counter()
            push(url, BATCH)
            while not answer(url, "/api/heatmap")["items"]:
                time.sleep(0.01)
            report("first batch sent to first heat cell (API)", time.perf_counter() - began, "s", 5)
            while b'"cells":[{' not in events.readline():
                pass
            report("first batch sent to first heat cell (stream)", time.perf_counter() - began, "s", 5)
            stream.close()
            events.close()
            threading.Thread(target=listen, args=(url, Counter()), daemon=True).start()
            push(url, arguments.steps - BATCH)
            stored = answer(url, "/api/counters")["stored"]["steps"]
            bar = next((bar for steps, bar in RSS_BARS.items() if stored <= steps), max(RSS_BARS.values()))
            report(f"memory at {stored:,} steps, a stream open", rss(server.pid), "MB", bar)
            end(server)
            server, url, seconds = timed_start(folder)
            report(f"process start to /healthz with {stored:,} steps", seconds, "s", 2)
            began = time.perf_counter()
            while answer(url, "/api/counters")["stored"]["steps"] < stored:
                time.sleep(0.02)
            while sum(cell["count"] for cell in answer(url, "/api/heatmap")["items"]) < stored:
                time.sleep(0.02)
            print(f"heat strip filled again: {time.perf_counter() - began:.2f} s")
            report(f"memory at {stored:,} steps after a restart", rss(server.pid), "MB", bar)
            week_ago = int((time.time() - 7 * 86_400) * 1000)
            for _ in range(3):
                for path in QUESTIONS:
                    answer(url, path.format(**{"from": week_ago}))
            report(f"memory after {3 * len(QUESTIONS)} questions", rss(server.pid), "MB", bar)
        finally:
            if server.poll() is None:
                end(server)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
