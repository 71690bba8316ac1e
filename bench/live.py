"""From the end of a step to the pixels that show it: a sender, the embedded server and a page, a process each.

    python bench/live.py [--rates 100,1000] [--seconds S] [--streamed N] [--fail]

The sender's clock says when a step ended (``step_stream.py``). One page is open in a headless Chromium. After each
frame was painted, a script reads the pixels of the heat strip's last column, where steps of rows that are else empty
appear and change their colour (``strip``); or, in a run's page, finds that run's new steps (``run``). The CPU of each
process is in percent of one core. What scripts took in each sixtieth of a second is from Chromium's own tracing,
without that observer. ``--streamed N`` measures N real streamed calls besides: an app with ``claudescope.instrument()``
reads answers of over ten seconds from a stand-in of the API; from the event that ends a block's step to the pixels.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest import cpu, rss, start_server
from playwright.sync_api import Browser, Page, sync_playwright
from script_time import script_times
from start import answer
from step_stream import BUCKET, LEVELS_MS, PROBED, Exporter, step_template

HERE = Path(__file__).parent
OBSERVER = (HERE / "observer.js").read_text()
RUN = "b" * 32
ROWS = 17
BARS_MS = {100: 100, 1000: 120}
SCRIPT_BAR_MS = 8
WARM_UP = 3.0
ADDRESSES = {"strip": "/", "run": f"/?run={RUN}"}
PROBES = {"strip": "cells", "run": "nodes"}


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("There is no chromium on PATH.")
    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def descendants(pid: int) -> list[int]:
    """Processes below a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def browser_cpu() -> float:
    """Seconds of CPU of all Chromium processes below this one."""
    total = 0.0
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"chrom" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
                total += cpu(pid)
    return total


def share(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def figures(values: list[float]) -> str:
    if not values:
        return "nothing was seen"
    return f"p50 {share(values, 0.5):.0f}, p99 {share(values, 0.99):.0f}, max {max(values):.0f} ms of {len(values)}"


# ------------------------------------------------------------------------------------------ the heat strip's places


def burst(exporter: Exporter, rows: range | list[int], age: float = 0.0) -> None:
    """A step of each number, of the latency of the level that is the number modulo seven."""
    end_ns = int((time.time() - age) * 1e9)
    spans = []
    for row in rows:
        start_ns = end_ns - LEVELS_MS[row % len(LEVELS_MS)] * 1_000_000
        template = step_template(row, True, 0.9)
        spans.append(template.make(os.urandom(16), os.urandom(8), bytes(8), start_ns, end_ns, os.urandom(16).hex()))
    exporter.send(spans)


def calibrate(page: Page, url: str, watched: range = PROBED) -> dict[str, Any]:
    """Where the last column's rows are on the canvas and which colour each level of latency has: found by sending."""
    exporter = Exporter(url)
    burst(exporter, range(ROWS), age=60)  # so that the strip is there with all its rows
    until = time.monotonic() + 20
    while not page.evaluate("(canvas => canvas !== null && canvas.clientWidth > 0)(observer.strip())"):
        if time.monotonic() > until:
            raise SystemExit("The page shows no heat strip.")
        time.sleep(0.1)
    time.sleep(BUCKET - time.time() % BUCKET + 2.5)  # a fresh column, and a second for the page to begin it
    page.evaluate("observer.picture()")
    burst(exporter, range(ROWS))
    time.sleep(2.5)
    places = page.evaluate(f"observer.places({ROWS})")
    if places is None:
        raise SystemExit("The heat strip did not change when steps came.")
    colours = places["colours"]
    palette: dict[int, int] = {}
    for level in range(len(LEVELS_MS)):
        same = {colours[row] for row in range(level, ROWS, len(LEVELS_MS))}
        if len(same) == 1:
            palette.setdefault(same.pop(), level)
    if len(palette) < 4:
        raise SystemExit(f"The heat strip's colours are not those of its latency scale: {places}")
    return {"x": places["x"], "rows": [places["rows"][row] for row in watched], "palette": list(palette.items())}


# ------------------------------------------------------------------------------------------ measuring


class Stage:
    """A server with an empty store and a page of it, until ``close``."""

    def __init__(self, browser: Browser, folder: Path, where: str = "strip", observed: bool = True) -> None:
        self.server, self.url = start_server(folder)
        height = (
            900 if where == "strip" else 2800
        )  # what is below the window is not painted, and cannot be seen to come
        self.page = browser.new_page(viewport={"width": 1280, "height": height})
        if observed:
            self.page.add_init_script(OBSERVER)
        self.page.goto(self.url + ADDRESSES[where])
        self._before = (0.0, 0.0, 0.0)

    def begin(self) -> None:
        """CPU counts from now on."""
        self._before = (time.monotonic(), cpu(self.server.pid), browser_cpu())

    def used(self) -> str:
        passed, server, browser = time.monotonic(), cpu(self.server.pid), browser_cpu()
        passed -= self._before[0]
        return (
            f"server {(server - self._before[1]) / passed:.0%}, browser {(browser - self._before[2]) / passed:.0%}"
            f" of a core; server {rss(self.server.pid):.0f} MB"
        )

    def close(self) -> None:
        self.page.close()
        self.server.terminate()
        self.server.wait()


def sender(url: str, rate: float, seconds: float, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(HERE / "step_stream.py"), url, f"--rate={rate}", f"--seconds={seconds}", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def pixels(browser: Browser, where: str, rate: int, seconds: float, folder: Path) -> list[float]:
    """Milliseconds from the end of each probe to its pixels."""
    stage = Stage(browser, folder / f"{where}-{rate}", where)
    try:
        places = calibrate(stage.page, stage.url) if where == "strip" else None
        if places:
            stage.page.evaluate("p => observer.start(p.x, p.rows, p.palette)", places)
        out = folder / "probes.json"
        stage.begin()
        sending = sender(stage.url, rate, seconds, f"--probes={out}", f"--of={PROBES[where]}", f"--run={RUN}")
        report = json.loads(sending.communicate()[0])
        used = stage.used()
        time.sleep(1.5)
        found = stage.page.evaluate("observer.found")
        probes = json.loads(out.read_text())
        if places:  # what has no colour of its own cannot be seen to come
            told = {level for _, level in places["palette"]}
            probes = [probe for probe in probes if probe["level"] in told]
        seen = cells_seen(probes, found["cells"]) if places else nodes_seen(probes, found["nodes"])
        begun = probes[0]["end_ms"] + WARM_UP * 1000
        values = [
            seen[at] - probe["end_ms"] for at, probe in enumerate(probes) if at in seen and probe["end_ms"] > begun
        ]
        missed = f", {len(probes) - len(seen)} of {len(probes)} NOT SEEN" if len(seen) < len(probes) else ""
        print(f"  {where}: end to pixels {figures(values)}{missed}", flush=True)
        print(
            f"    {report['steps']} steps in {report['requests']} requests, answered in {report['answered_p50_ms']} ms"
            f" (p99 {report['answered_p99_ms']}); sender {report['cpu_s'] / seconds:.0%}, {used}",
            flush=True,
        )
        return values
    finally:
        stage.close()


def cells_seen(probes: list[dict[str, Any]], cells: list[list[float]]) -> dict[int, float]:
    """When each probe's row had its colour, or that of a slower one, in the column of its time."""
    seen = {}
    for at, probe in enumerate(probes):
        end = probe["end_ms"]
        until = end - end % (BUCKET * 1000) + BUCKET * 1000
        row = probe["index"] - PROBED[0]
        for at_row, level, shown in cells:
            if at_row == row and level >= probe["level"] and end <= shown < until:
                seen[at] = shown
                break
    return seen


def nodes_seen(probes: list[dict[str, Any]], nodes: dict[str, float]) -> dict[int, float]:
    return {at: nodes[probe["name"]] for at, probe in enumerate(probes) if probe["name"] in nodes}


def scripts(browser: Browser, where: str, rate: int, seconds: float, folder: Path) -> float:
    """The 99th percentile of the milliseconds of script in each sixtieth of a second; prints more."""
    stage = Stage(browser, folder / f"scripts-{where}-{rate}", where, observed=False)
    try:
        probes = (f"--probes={folder / 'unused'}", f"--of={PROBES[where]}", f"--run={RUN}")
        sending = sender(stage.url, rate, WARM_UP + seconds + 1, *probes)
        time.sleep(WARM_UP)
        trace = folder / "trace.json"
        browser.start_tracing(page=stage.page, path=trace, categories=["devtools.timeline", "v8.execute", "toplevel"])
        time.sleep(seconds)
        browser.stop_tracing()
        sending.communicate()
        times, busy = script_times(trace)
        worst = share(times, 0.99)
        print(
            f"    script a frame: p50 {share(times, 0.5):.1f}, p99 {worst:.1f}, max {max(times):.1f} ms;"
            f" the page's thread takes {busy:.0%} of a core",
            flush=True,
        )
        return worst
    finally:
        stage.close()


def streamed(browser: Browser, calls: int, folder: Path) -> list[float]:
    """Milliseconds from the end of a block in a real app to its pixels in the heat strip."""
    from claudescope.testing import StandIn, say
    from claudescope.testing.blocks import text, thinking
    from claudescope.testing.script import REALISTIC

    words = "so the next thing to look at follows from the one before it and "
    reply = say(*(block((words * 12)[:740]) for _ in range(3) for block in (thinking, text)))
    stage = Stage(browser, folder / "streamed")
    try:
        places = calibrate(stage.page, stage.url, range(ROWS))
        time.sleep(BUCKET - time.time() % BUCKET)  # the column of the calibration is over
        stage.page.evaluate("p => observer.start(p.x, p.rows, p.palette)", places)
        stage.begin()
        with StandIn(reply, seed=1, pace=REALISTIC) as standin:
            environment = {
                **{key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "CLAUDESCOPE_"))},
                "ANTHROPIC_BASE_URL": standin.url,
                "ANTHROPIC_API_KEY": "none",
                "OTEL_EXPORTER_OTLP_ENDPOINT": stage.url,
                "NO_PROXY": "127.0.0.1,localhost",
            }
            command = [sys.executable, str(HERE / "streamed_app.py"), str(calls)]
            began = time.time()
            said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
            lasted = time.time() - began
        used = stage.used()
        time.sleep(1)
        ends = [[float(word) * 1000 for word in line.split()] for line in said.splitlines()]
        cells = stage.page.evaluate("observer.found.cells")
        steps = answer(stage.url, f"/api/steps?from={int(began * 1000)}&limit=1000&order=asc")["items"]
        shown = [(end, known, at) for end, known in ends if (at := first_shown(end, steps, cells)) is not None]
        values = [at - known for _, known, at in shown]
        whole = figures([at - end for end, _, at in shown])
        print(
            f"  streamed calls (bar: p99 < {BARS_MS[100]} ms): from the event after a block, which says whether it was"
            f" the last, to pixels {figures(values)}; from the block's own end {whole}",
            flush=True,
        )
        print(
            f"    {calls} calls of {lasted / calls:.1f} s, {len(ends)} blocks, {len(steps)} steps; {used}", flush=True
        )
        return values
    finally:
        stage.close()


def first_shown(end: float, steps: list[dict[str, Any]], cells: list[list[float]]) -> float | None:
    """When the strip showed the step that ended with a block; None where its cell had a step before, or time is up."""
    step = max((s for s in steps if s["ts_ms"] <= end + 20), key=lambda s: (s["ts_ms"], s["step_index"]))
    row, column = step["step_index"], end - end % (BUCKET * 1000)
    same = [s["ts_ms"] for s in steps if s["step_index"] == row and s["ts_ms"] >= column]
    if row >= ROWS - 1 or min(same) < step["ts_ms"] or end > column + BUCKET * 1000 - 1000:
        return None
    return next((at for shown, _, at in cells if shown == row and at >= end), end + 1000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="100,1000", help="steps a second, one run each")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--where", default="strip,run", help="what is looked at")
    parser.add_argument("--streamed", type=int, default=0, metavar="N", help="measure N real streamed calls too")
    parser.add_argument("--fail", action="store_true", help="exit with 1 when a bar is missed")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="claudescope-bench-") as name, chromium() as browser:
        folder = Path(name)
        for rate in [int(rate) for rate in arguments.rates.split(",") if rate]:
            bar = BARS_MS.get(rate, 120)
            print(f"{rate} steps/s (bars: p99 of end to pixels < {bar} ms, of script < {SCRIPT_BAR_MS} ms)", flush=True)
            for where in arguments.where.split(","):
                values = pixels(browser, where, rate, arguments.seconds, folder)
                good &= bool(values) and share(values, 0.99) < bar
                good &= scripts(browser, where, rate, min(arguments.seconds, 10), folder) < SCRIPT_BAR_MS
        if arguments.streamed:
            good &= share(streamed(browser, arguments.streamed, folder), 0.99) < BARS_MS[100]
    return int(arguments.fail and not good)


if __name__ == "__main__":
    raise SystemExit(main())
