"""Questions to the embedded server over a filled store: how long its answers take, and how much memory it has.

    python bench/query.py [--steps N] [--days N] [--folder F] [--rounds N] [--part heat|runs] [--fail-over]

The store is made by ``filled.py`` in a temporary folder, or taken from ``--folder`` where that has one. Each question
is asked ``--rounds`` times over one connection, as a page asks: the whole answer as it comes. The heat strip is asked
first of a server that was just started (``cold``: nothing is remembered), then again.
"""

import argparse
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from filled import fill
from ingest import rss, start_server

from claudescope.live.store.schema import FILE_NAME

LIVE = ("5m", "15m", "1h")
HISTORY = ("6h", "24h", "7d", "30d")
LIVE_MS, HISTORY_MS = 20, 300
FILTERS = {
    "everything": "",
    "one service": "service=search",
    "two models": "model=claude-sonnet-4-5&model=house-model-1",
    "one label": "label=tier:plus",
    "one kind": "kind=thinking",
    "one tool": "tool=tool_3",
    "invalid": "valid=false",
    "valid": "valid=true",
    "slow": "latency_min_us=800001",
    "unsure": "confidence_max=0.7",
    "slow, unsure, valid, of one service": "latency_min_us=500000&confidence_max=0.9&valid=true&service=billing-agent",
}


class Page:
    """One connection that asks."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)

    def ask(self, path: str) -> tuple[float, bytes]:
        """Milliseconds until the whole answer is there, and the answer."""
        began = time.perf_counter()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - began) * 1000
        assert answer.status == 200, body
        return took, body


def p95(times: list[float]) -> float:
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)]


def ask_all(page: Page, questions: Iterable[tuple[str, str, float]], rounds: int, cold_counts: bool) -> list[str]:
    """Asks (name, path, bar in ms) and prints a row each; returns those over their bar."""
    over = []
    for name, path, bar in questions:
        cold, body = page.ask(path)
        times = [page.ask(path)[0] for _ in range(rounds)]
        found = p95([cold, *times] if cold_counts else times)
        items = json.loads(body)["items"]
        steps = sum(item.get("count", 0) for item in items)
        print(
            f"  {name:58} {len(items):5} items {steps:9,} steps  cold {cold:6.1f}  p50 {statistics.median(times):6.1f}"
            f"  p95 {p95(times):6.1f} ms{'  OVER' if found > bar else ''}"
        )
        if found > bar:
            over.append(f"{name}: {found:.0f} ms, bar {bar:.0f} ms")
    return over


def heat(page: Page, rounds: int) -> list[str]:
    """The heat strip: live ranges when asked before, history also the first time."""
    live = [
        (f"heat {name}, {kind}", f"/api/heatmap?range={name}&{asked}", LIVE_MS)
        for name in LIVE
        for kind, asked in FILTERS.items()
    ]
    history = [
        (f"heat {name}, {kind}", f"/api/heatmap?range={name}&{asked}", HISTORY_MS)
        for name in HISTORY
        for kind, asked in FILTERS.items()
    ]
    return ask_all(page, live, rounds, cold_counts=False) + ask_all(page, history, rounds, cold_counts=True)


SORTS = ("steps", "duration", "tokens", "cost", "worst")
RARE = {
    "a rare label": "label=customer:c-7",
    "a label that nobody has": "label=customer:nobody",
    "one tool, invalid, very slow": "tool=tool_3&valid=false&latency_min_us=5000000",
    "a narrow confidence": "confidence_min=0.801&confidence_max=0.802",
}


def runs(page: Page, rounds: int) -> list[str]:
    """The table of runs: the first page as it stands open is live; every sort, search and later page is history."""
    live = [(f"runs, {kind}", f"/api/runs?{asked}", LIVE_MS) for kind, asked in FILTERS.items()]
    live += [(f"runs, {status}", f"/api/runs?status={status}", LIVE_MS) for status in ("ok", "failed", "running")]
    history = [(f"runs, {kind}", f"/api/runs?{asked}", HISTORY_MS) for kind, asked in RARE.items()]
    history += [
        (f"runs by {sort}, {kind}", f"/api/runs?sort={sort}&{asked}", HISTORY_MS)
        for sort in SORTS
        for kind, asked in {**FILTERS, **RARE}.items()
    ]
    listed = json.loads(page.ask("/api/runs?limit=1000")[1])
    run = listed["items"][500]
    for name, q in (
        ("a run's id", run["run_id"]),
        ("the beginning of a trace's id", run["trace_id"][:6]),
        ("a label", "tier:plus"),
        ("a text", "no such text"),
    ):
        history.append((f"runs, search for {name}", f"/api/runs?q={q.replace(' ', '+')}", HISTORY_MS))
    for sort in ("started", *SORTS):
        following = json.loads(page.ask(f"/api/runs?sort={sort}&limit=1000")[1])["next"]
        history.append((f"runs by {sort}, a later page", f"/api/runs?sort={sort}&cursor={following}", HISTORY_MS))
    history += [(f"steps, {kind}", f"/api/steps?{asked}", HISTORY_MS) for kind, asked in {**FILTERS, **RARE}.items()]
    history.append(("steps of a trace", f"/api/steps?trace={run['trace_id']}", LIVE_MS))
    over = ask_all(page, live, rounds, cold_counts=False) + ask_all(page, history, rounds, cold_counts=True)
    times = [page.ask(f"/api/runs/{item['run_id']}")[0] for item in listed["items"][:200]]
    print(f"  {'a run with all of it':58} p50 {statistics.median(times):6.1f}  p95 {p95(times):6.1f} ms")
    return [*over, f"a run: {p95(times):.0f} ms, bar {LIVE_MS} ms"] if p95(times) > LIVE_MS else over


PARTS = {"heat": heat, "runs": runs}


def wait_for(page: Page, steps: int) -> float:
    """Seconds until all stored steps are counted."""
    began = time.perf_counter()
    while json.loads(page.ask("/api/counters")[1])["stored"]["steps"] < steps:
        time.sleep(0.1)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--days", type=float, default=7, help="how far back the steps go")
    parser.add_argument("--folder", type=Path, help="where the store is, or is made and kept")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--part", choices=[*PARTS], action="append", help="only this; may be given again")
    parser.add_argument("--fail-over", action="store_true", help="exit with 1 when a bar is missed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="claudescope-bench-") as name:
        folder = arguments.folder or Path(name)
        if not (folder / FILE_NAME).exists():
            fill(folder, arguments.steps, arguments.days)
        server, url = start_server(folder)
        over: list[str] = []
        try:
            page = Page(url)
            seconds = wait_for(page, arguments.steps // 8 * 8)
            print(f"{arguments.steps:,} steps of {arguments.days:g} days, counted {seconds:.1f} s after the start")
            print(f"  {rss(server.pid):.0f} MB RSS")
            for part in arguments.part or PARTS:
                over += PARTS[part](page, arguments.rounds)
            print(f"  {rss(server.pid):.0f} MB RSS")
        finally:
            server.terminate()
            assert server.wait(30) == 0
    for line in over:
        print("over the bar:", line)
    return 1 if over and arguments.fail_over else 0


if __name__ == "__main__":
    raise SystemExit(main())
