"""What claudescope adds to an app, beside OpenTelemetry's own instrumentation, OpenInference and traceloop.

    python bench/overhead.py                      # everything, 7 rounds
    python bench/overhead.py --only claudescope --rounds 3 --parts calls

Three parts, each a difference inside one process, so that a noisy machine hits both sides alike; reported is the
median over the rounds with the range. The order of the variants is shuffled in each round.

calls    Microseconds of the calling thread's CPU per ``create()`` and per streamed chunk: the real ``anthropic`` client
         on a mock transport (canned JSON; an SSE body, one event a read). Every variant is measured with the SDK's
         native tracing on before and after (``native``: off before, on after). A chunk is the slope between a short and
         a long stream. ``create_big`` sends 50 KB and 20 tools. Between calls claudescope's worker is let finish, with
         and without capture (``Hop``): its work is in ``steps``. In ``create_busy`` it is not: calls follow each other
         without any wait, and the worker, behind by ever more of them, competes for the interpreter and the caches.
steps    Microseconds of whole-process CPU per step, all defaults: private providers, export over real HTTP to an
         embedded server in another process. A call here is 6 steps (thinking in 3 parts, text, 2 tool uses).
lag      Milliseconds by which the p99 of an asyncio app's loop lag grows at 100 steps a second, against the same app
         without claudescope; export as in ``steps``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

TURN = 50  # calls without capture, then as many with it
SHORT, LONG = 20, 420  # text deltas in the two streams; their difference gives the slope per chunk
WORDS = [
    "the",
    "answer",
    "follows",
    "because",
    "each",
    "step",
    "keeps",
    "the",
    "invariant",
    "and",
    "closes",
    "the",
    "case",
]
MODEL = "claude-sonnet-5-5"
VARIANTS = ("none", "native", "claudescope", "claudescope-own-span", "genai", "openinference", "traceloop")
BARS = {"create": 50.0, "create_big": 50.0, "raw/chunk": 1.5, "araw/chunk": 1.5, "step": 350.0, "lag": 2.0}

TOOL = {
    "name": "calculator",
    "description": "Evaluate an arithmetic expression.",
    "input_schema": {"type": "object", "properties": {"expr": {"type": "string"}}, "required": ["expr"]},
}
REQUEST = {
    "model": MODEL,
    "max_tokens": 2048,
    "system": "You are a careful reasoner. Think step by step and number every step.",
    "messages": [{"role": "user", "content": "A train covers 174 km at 58 km/h. When does it arrive? " * 10}],
    "tools": [TOOL],
}
BIG = dict(
    REQUEST,
    messages=[{"role": "user", "content": "x" * 2048}, {"role": "assistant", "content": "y" * 2048}] * 12
    + [{"role": "user", "content": "go on"}],
    tools=[dict(TOOL, name=f"tool_{n}") for n in range(20)],
)
THOUGHT = "\n\n".join(f"Step {n}: {' '.join(WORDS)} {' '.join(WORDS)}" for n in (1, 2, 3))


# ------------------------------------------------------------------------------------------ a server without a network


def message() -> bytes:
    """A whole response of six steps."""
    content = [
        {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln" * 20},
        {"type": "text", "text": " ".join(WORDS * 4)},
        *({"type": "tool_use", "id": f"toolu_{n}", "name": "calculator", "input": {"expr": "174/58"}} for n in (1, 2)),
    ]
    return json.dumps(
        {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 412, "output_tokens": 377, "cache_read_input_tokens": 128},
        }
    ).encode()


def events(deltas: int) -> list[bytes]:
    """The server-sent events of one text block in ``deltas`` pieces."""

    def event(kind: str, **data: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    head = json.loads(message()) | {"content": [], "stop_reason": None}
    return [
        event("message_start", message=head),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": WORDS[n % len(WORDS)] + " "})
            for n in range(deltas)
        ),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 9}),
        event("message_stop"),
    ]


def clients(native: bool):
    """A sync and an async client whose transport answers at once."""
    import anthropic
    import httpx2 as httpx

    body, streams = message(), {n: events(n) for n in (SHORT, LONG)}

    class Sse(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __init__(self, parts: list[bytes]) -> None:
            self.parts = parts

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.parts)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in self.parts:
                yield part

    def handler(request):
        payload = json.loads(request.content)
        if payload.get("stream"):
            parts = streams[LONG if payload["max_tokens"] == LONG else SHORT]
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Sse(parts))
        return httpx.Response(200, headers={"content-type": "application/json"}, content=body)

    options = {"open_telemetry": {"traces": native}, "api_key": "x", "max_retries": 0}
    transport = httpx.MockTransport(handler)
    return (
        anthropic.Anthropic(http_client=httpx.Client(transport=transport), **options),
        anthropic.AsyncAnthropic(http_client=httpx.AsyncClient(transport=transport), **options),
    )


# ------------------------------------------------------------------------------------------ instrumentations


def turn_on(variant: str) -> None:
    """Instruments this process as ``variant``."""
    if variant.startswith("claudescope"):
        import claudescope

        claudescope.instrument()
    elif variant == "genai":
        from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

        AnthropicInstrumentor().instrument(skip_dep_check=True)
    elif variant == "openinference":
        from openinference.instrumentation.anthropic import AnthropicInstrumentor

        AnthropicInstrumentor().instrument(skip_dep_check=True)
    elif variant == "traceloop":
        from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

        AnthropicInstrumentor().instrument(skip_dep_check=True)


def providers():
    """The same for every variant: a batch processor that drops nothing, and exporters to memory."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=1 << 18))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
    return exporter, provider


# ------------------------------------------------------------------------------------------ part "calls", one worker


def scenarios(sync, aio, loop) -> dict[str, tuple[Callable[[], object], int]]:
    """Name -> (one call, how many of them make a block)."""

    def raw(n: int):
        request = dict(REQUEST, max_tokens=n)

        def run():
            assert sum(1 for _ in sync.messages.create(stream=True, **request)) == n + 5

        return run

    def helper(n: int):
        request = dict(REQUEST, max_tokens=n)

        def run():
            with sync.messages.stream(**request) as stream:
                for _ in stream:
                    pass

        return run

    async def araw(n: int):
        async for _ in await aio.messages.create(stream=True, **dict(REQUEST, max_tokens=n)):
            pass

    async def acreate():
        await aio.messages.create(**REQUEST)

    return {
        "create": (lambda: sync.messages.create(**REQUEST), 200),
        "create_big": (lambda: sync.messages.create(**BIG), 100),
        "acreate": (lambda: loop.run_until_complete(acreate()), 100),
        "raw_short": (raw(SHORT), 40),
        "raw_long": (raw(LONG), 16),
        "araw_short": (lambda: loop.run_until_complete(araw(SHORT)), 40),
        "araw_long": (lambda: loop.run_until_complete(araw(LONG)), 12),
        "helper_short": (helper(SHORT), 40),
        "helper_long": (helper(LONG), 12),
    }


def costs(call: Callable[[], object], n: int, settle: Callable[[], object]) -> list[float]:
    """CPU of the calling thread of each of ``n`` calls, in microseconds; ``settle`` is not timed."""
    for _ in range(max(10, n // 10)):
        call()
        settle()
    gc.collect()
    found = []
    for _ in range(n):
        start = time.thread_time_ns()
        call()
        found.append((time.thread_time_ns() - start) / 1e3)
        settle()
    return found


class Hop:
    """claudescope's worker between the calls, on both sides of the difference.

    A real app waits for the network while the worker works, and comes back to cold caches whether its calls are
    captured or not; a transport that answers at once hides that. So the worker also does the work of a call that nobody
    captured, and is waited for on both sides. Neither is timed. The sides take turns, so that a drift of the machine
    hits both alike.
    """

    def __init__(self) -> None:
        from claudescope import control

        self.worker, self.seam = control.worker(), control._seam

    def sample(self, call: Callable[[], object]) -> None:
        """Takes one call as the pattern of those that nobody captures."""
        put, items = self.worker.put, []
        self.worker.put = lambda item: (items.append(item), put(item))
        call()
        self.worker.put = put
        self.call, self.body = items[-1].call, items[-1].body or message()
        self.worker.drain(5)

    def uncaptured(self) -> None:
        """The worker's work for one call like the sample."""
        from opentelemetry.trace import NonRecordingSpan

        from claudescope.steps.items import CallEnded

        span = NonRecordingSpan(self.call.context)
        self.worker.put(CallEnded(replace(self.call, span=span, owned=False, usage={}, blocks=[]), self.body))
        self.worker.drain(5)

    def captured(self) -> None:
        """Waits for the worker's work on what the capture has put."""
        self.worker.drain(5)

    def added(self, call: Callable[[], object], n: int) -> float:
        """What capture adds to the median CPU of the calling thread per call, in microseconds."""
        self.sample(call)
        without, with_ = [], []
        for _ in range(-(-n // TURN)):
            self.seam.remove()
            without += costs(call, TURN, self.uncaptured)
            self.seam.install()
            with_ += costs(call, TURN, self.captured)
        return statistics.median(with_) - statistics.median(without)


def nothing() -> None:
    """Between calls that follow each other at once."""


def measure_calls(variant: str) -> dict[str, float]:
    """Added microseconds by scenario."""
    loop = asyncio.new_event_loop()
    exporter, provider = providers()
    native_before = variant not in ("none", "native", "claudescope-own-span")
    native_after = native_before or variant == "native"
    table = scenarios(*clients(native_before), loop)

    def measure() -> dict[str, float]:
        found = {}
        for name, (call, n) in table.items():
            provider.force_flush()
            exporter.clear()
            found[name] = statistics.median(costs(call, n, nothing))
        return found

    if variant.startswith("claudescope"):
        turn_on(variant)
        hop = Hop()
        found = {}
        for name, (call, n) in table.items():
            provider.force_flush()
            exporter.clear()
            found[name] = hop.added(call, n)
        hop.seam.remove()
        busy = statistics.median(costs(table["create"][0], 150, nothing))
        hop.seam.install()
        found["create_busy"] = statistics.median(costs(table["create"][0], 150, nothing)) - busy
    else:
        before = measure()
        if native_after != native_before:
            table = scenarios(*clients(native_after), loop)
        turn_on(variant)
        after = measure()
        found = {name: after[name] - before[name] for name in table}
    for prefix in ("raw", "araw", "helper"):
        long, short = found.pop(f"{prefix}_long"), found.pop(f"{prefix}_short")
        found[f"{prefix}/chunk"] = (long - short) / (LONG - SHORT)
    loop.close()
    return found


# ------------------------------------------------------------------------------------------ parts "steps" and "lag"


def measure_steps(calls: int = 400) -> dict[str, float]:
    """Whole-process CPU that a step costs, in microseconds; the server is the one that the environment names."""
    import claudescope

    sync, _ = clients(native=True)

    def run(n: int) -> float:
        start = time.process_time_ns()
        for _ in range(n):
            sync.messages.create(**REQUEST)
        claudescope.flush(60)
        return (time.process_time_ns() - start) / n / 1e3

    run(50)
    before = run(calls)
    claudescope.instrument()
    run(50)
    after = run(calls)
    return {"step": (after - before) / 6}


def measure_lag(seconds: float = 6.0) -> dict[str, float]:
    """p99 of the loop's lag in milliseconds with claudescope minus without, at 100 steps/s (16.7 calls/s of 6)."""
    import claudescope

    _, aio = clients(native=True)

    async def app() -> list[float]:
        lags: list[float] = []
        end = time.perf_counter() + seconds

        async def caller() -> None:
            while time.perf_counter() < end:
                await asyncio.gather(aio.messages.create(**REQUEST), asyncio.sleep(0.06))

        async def watch() -> None:
            while time.perf_counter() < end:
                due = time.perf_counter() + 0.005
                await asyncio.sleep(0.005)
                lags.append((time.perf_counter() - due) * 1e3)

        await asyncio.gather(caller(), watch())
        return lags

    def p99(values: list[float]) -> float:
        return sorted(values)[int(len(values) * 0.99)]

    async def both() -> float:
        without = p99(await app())
        claudescope.instrument()
        return p99(await app()) - without

    return {"lag": asyncio.run(both())}


# ------------------------------------------------------------------------------------------ parent


def child(*arguments: str, env: dict[str, str] | None = None) -> dict[str, float]:
    """Runs one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--worker", *arguments],
        env={**os.environ, "PYTHONHASHSEED": "0", **(env or {})},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def spread(values: list[float]) -> str:
    """Median with the range."""
    return f"{statistics.median(values):9.2f} [{min(values):.2f}, {max(values):.2f}]"


def line(name: str, unit: str, values: list[float], bar: float | None) -> None:
    """Prints one figure, beside its bar where it has one."""
    verdict = ""
    if bar is not None:
        verdict = f"   bar {bar:g}: {'met' if statistics.median(values) <= bar else 'MISSED'}"
    print(f"    {name:14s} {spread(values)} {unit}{verdict}")


def main() -> None:
    """Runs the parts that are asked for and prints their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="variants of part `calls`, separated by commas")
    parser.add_argument("--parts", default="calls,steps,lag")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        part, *rest = options.worker
        measure = {"calls": measure_calls, "steps": measure_steps, "lag": measure_lag}[part]
        print(json.dumps(measure(*rest)))
        return
    names = options.only.split(",") if options.only else list(VARIANTS)
    parts = options.parts.split(",")
    calls: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    whole: dict[str, list[float]] = {part: [] for part in ("steps", "lag") if part in parts}
    shuffle = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(folder) if whole else nullcontext("") as endpoint:
        for number in range(options.rounds):
            if "calls" in parts:
                for name in shuffle.sample(names, len(names)):
                    calls[name].append(child("calls", name))
            for part, values in whole.items():
                values.extend(child(part, env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}).values())
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    print(f"\nmedian [range] over {options.rounds} rounds")
    for name in names if "calls" in parts else ():
        print(f"\n  {name}: microseconds of the calling thread's CPU, added")
        for key in calls[name][0]:
            line(key, "us", [found[key] for found in calls[name]], BARS.get(key) if name == "claudescope" else None)
    if "steps" in whole:
        print("\n  claudescope, all defaults: microseconds of whole-process CPU, added")
        line("a step", "us", whole["steps"], BARS["step"])
    if "lag" in whole:
        print("\n  claudescope, all defaults: p99 of the loop's lag at 100 steps/s, added")
        line("loop lag", "ms", whole["lag"], BARS["lag"])


class EmbeddedServer:
    """An embedded server in a process of its own, on a free port, for the ``with`` block."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        command = ["-m", "claudescope", "up", "--port", "0", "--grpc-port", "0", "--data", self.folder, "--no-open"]
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for text in self.process.stdout:
            if "http://" in text:
                return text[text.index("http://") :].split()[0].rstrip("/.,")
        sys.exit("the embedded server did not start")

    def __exit__(self, *exc: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


if __name__ == "__main__":
    main()
