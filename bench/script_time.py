"""How long scripts ran on a page's main thread, from a trace of Chromium: in CPU time, which others do not add to."""

import json
from collections import defaultdict
from pathlib import Path

FRAME_US = 1e6 / 60
_SCRIPT = {
    "FunctionCall",
    "EvaluateScript",
    "v8.callFunction",
    "RunMicrotasks",
    "FireAnimationFrame",
    "TimerFire",
    "v8.run",
}
_TASKS = {"RunTask", "ThreadControllerImpl::RunTask", "ThreadPool_RunTask"}


Span = tuple[float, float, float]
"""Start, duration and CPU time in microseconds."""


def _outermost(spans: list[Span]) -> list[Span]:
    """Those that are in no other."""
    found: list[Span] = []
    end = -1.0
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if span[0] >= end:
            found.append(span)
            end = span[0] + span[1]
    return found


def script_times(path: Path) -> tuple[list[float], float]:
    """Milliseconds of script in each sixtieth of a second, of the page's thread; and the share of a core it took.

    A script counts whole where it began, so one that takes longer than a frame is seen as such.
    """
    events = json.loads(path.read_text())["traceEvents"]
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    scripts: dict[tuple[int, int], list[Span]] = defaultdict(list)
    tasks: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            thread = (event["pid"], event["tid"])
            span = (event["ts"], event.get("dur", 0), event.get("tdur", event.get("dur", 0)))
            if event["name"] in _SCRIPT:
                scripts[thread].append(span)
            elif event["name"] in _TASKS:
                tasks[thread].append(span)
    mains = [thread for thread in scripts if names.get(thread) == "CrRendererMain"]
    main = max(mains, key=lambda thread: sum(span[2] for span in scripts[thread]))
    outer = _outermost(scripts[main])
    first, last = outer[0][0], outer[-1][0]
    frames = [0.0] * (int((last - first) / FRAME_US) + 1)
    for start, _, used in outer:
        frames[int((start - first) / FRAME_US)] += used / 1000
    busy = sum(span[2] for span in _outermost(tasks[main])) / (last - first)
    return frames, busy
