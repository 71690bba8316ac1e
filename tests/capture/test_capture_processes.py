"""Threads, tasks, forks and the end of the process (21, 22), and taking claudescope out again (23)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anthropic import _base_client
from call_path_functions import ASK
from capture_kit import attribute, instrumented, let_go, new_client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import claudescope
from claudescope import control, semconv
from claudescope.testing.script import Pace, say, thinking
from claudescope.testing.standin import StandIn

SEAM = [
    ("SyncAPIClient", "request"),
    ("AsyncAPIClient", "request"),
    ("SyncAPIClient", "_process_response"),
    ("AsyncAPIClient", "_process_response"),
    ("BaseClient", "_make_status_error_from_response"),
]


def reply_to(request: dict[str, Any]) -> Any:
    return say(thinking("hm"), f"answer {request['max_tokens']}")


def check(scope: Any, number: int) -> None:
    """Every call has one span and its own two steps, in a trace of its own."""
    calls = scope.calls
    assert len(calls) == number
    assert len({call.context.trace_id for call in calls}) == number
    steps: dict[int, list[Any]] = {}
    for step in scope.steps:
        steps.setdefault(step.parent.span_id, []).append(step)
    assert len(steps) == number
    for call in calls:
        mine = steps[call.context.span_id]
        assert [attribute(step, semconv.STEP_KIND) for step in mine] == ["thinking", "text"]
        assert [attribute(step, semconv.STEP_INDEX) for step in mine] == [0, 1]
        assert attribute(mine[1], semconv.STEP_TEXT) == f"answer {attribute(call, semconv.REQUEST_MAX_TOKENS)}"


def test_21_threads(standin):
    standin.use(reply_to)
    with instrumented(content="full") as scope:
        client = new_client(standin.url)

        def ask(number: int) -> None:
            asked = {**ASK, "max_tokens": number}
            if number % 2:
                client.messages.create(**asked)
            else:
                list(client.messages.create(**asked, stream=True))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(1, 41)))
        client.close()
        check(scope, 40)


def test_21_a_stream_read_by_another_thread(standin):
    standin.use(reply_to)
    with instrumented(content="full") as scope:
        client = new_client(standin.url)
        stream = client.messages.create(**ASK, stream=True)
        thread = threading.Thread(target=lambda: list(stream))
        thread.start()
        thread.join()
        client.close()
        check(scope, 1)


async def test_21_a_hundred_asyncio_calls_at_once(standin):
    standin.use(reply_to)
    with instrumented(content="full") as scope:
        client = new_client(standin.url, asynchronous=True)

        async def ask(number: int) -> None:
            asked = {**ASK, "max_tokens": number}
            if number % 2:
                await client.messages.create(**asked)
            else:
                async for _ in await client.messages.create(**asked, stream=True):
                    pass

        await asyncio.gather(*(ask(number) for number in range(1, 101)))
        await client.close()
        check(scope, 100)


class Sink:
    """An OTLP/HTTP server that keeps the spans it gets."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/traces":
                    import gzip

                    data = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                    message = ExportTraceServiceRequest.FromString(data)
                    for resource in message.resource_spans:
                        for scope in resource.scope_spans:
                            sink.spans.extend(scope.spans)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


def run(script: str, standin: StandIn, sink: Sink, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with claudescope whose client is ``client`` and whose request is ``ASK``."""
    head = f"""
        import claudescope, anthropic, os, sys
        claudescope.instrument()
        client = anthropic.Anthropic(base_url={standin.url!r}, api_key="k", max_retries=0)
        ASK = {ASK!r}
    """
    program = textwrap.dedent(head) + textwrap.dedent(script)
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url, **env},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=Path(__file__).parent,
    )


def kinds(sink: Sink) -> list[str]:
    return sorted(span.name for span in sink.spans)


def test_21_a_fork(standin, sink):
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    standin.use(reply_to)
    done = run(
        """
        client.messages.create(**ASK)
        children = []
        for number in (7, 8):
            pid = os.fork()
            if pid == 0:
                own = anthropic.Anthropic(base_url=str(client.base_url), api_key="k", max_retries=0)
                own.messages.create(**{**ASK, "max_tokens": number})
                sys.exit(0)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        client.messages.create(**ASK)
        """,
        standin,
        sink,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert kinds(sink) == ["chat claude-a"] * 4 + ["reasoning_step text"] * 4 + ["reasoning_step thinking"] * 4
    assert len({span.span_id for span in sink.spans}) == 12


def test_22_the_interpreter_ends_with_work_in_the_queue(standin, sink):
    standin.use(reply_to)
    done = run(
        """
        for number in range(1, 31):
            client.messages.create(**{**ASK, "max_tokens": number})
        """,
        standin,
        sink,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(sink.spans) == 90
    assert kinds(sink).count("chat claude-a") == 30


def test_22_the_interpreter_ends_with_a_stream_open(standin, sink):
    standin.use(say(thinking("hm"), "half an answer", pace=Pace(chunk=4)))
    done = run(
        """
        stream = client.messages.create(**ASK, stream=True)
        for event in stream:
            if event.type == "content_block_delta" and event.index == 1:
                break
        """,
        standin,
        sink,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert kinds(sink) == ["chat claude-a", "reasoning_step text", "reasoning_step thinking"]
    ends = {
        item.value.string_value for span in sink.spans for item in span.attributes if item.key == semconv.STREAM_END
    }
    assert ends == {"dropped"}


BATCH = """
batch = client.messages.batches.create(requests=[{"custom_id": f"c{n}", "params": ASK} for n in range(2)])
while client.messages.batches.retrieve(batch.id).processing_status != "ended":
    pass
lines = client.messages.batches.results(batch.id)
"""
LEFT_OPEN = {
    "raw": "kept = client.messages.with_raw_response.create(**ASK, stream=True)",
    "streaming raw": "manager = client.messages.with_streaming_response.create(**ASK)\nkept = manager.__enter__()",
    "raw, parsed": "kept = client.messages.with_raw_response.create(**ASK, stream=True).parse()\nnext(iter(kept))",
    "batch": BATCH,
    "batch, begun": f"{BATCH}next(iter(lines))",
}


@pytest.mark.parametrize("case", LEFT_OPEN)
def test_22_the_interpreter_ends_with_a_response_open(standin, sink, case):
    """Its call goes out all the same, and once."""
    standin.use(say("an answer"))
    done = run(LEFT_OPEN[case], standin, sink)
    assert (done.returncode, done.stderr) == (0, "")
    assert kinds(sink).count("batch_results" if "batch" in case else "chat claude-a") == 1
    assert len({span.span_id for span in sink.spans}) == len(sink.spans)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_22_only_what_is_open_is_remembered(standin, asynchronous):
    standin.use(say("an answer"))
    with instrumented() as scope:
        client = new_client(standin.url, asynchronous=asynchronous)
        for how in ("read", "closed", "dropped"):
            made = client.messages.with_raw_response.create(**ASK, stream=True)
            raw = await made if asynchronous else made
            assert len(control.worker()._open) == 1
            response = raw.http_response
            if how != "dropped":
                ends = getattr(response, ("a" * asynchronous) + ("read" if how == "read" else "close"))()
                if asynchronous:
                    await ends
            del made, raw, response
            await let_go()
            assert not control.worker()._open, how
        assert len(scope.calls) == 3
        closing = client.close()
        if asynchronous:
            await closing


def test_22_the_app_ends_by_an_exception(standin, sink):
    standin.use(reply_to)
    done = run("client.messages.create(**ASK)\nraise SystemExit(3)", standin, sink)
    assert (done.returncode, done.stderr) == (3, "")
    assert len(sink.spans) == 3


def functions() -> list[Any]:
    return [getattr(_base_client, cls).__dict__.get(name) for cls, name in SEAM]


def test_23_uninstrument_gives_back_the_functions(standin):
    before = functions()
    with instrumented() as scope:
        assert all(new is not old for new, old in zip(functions(), before, strict=True))
        claudescope.instrument()  # a second time changes nothing
        now = functions()
        assert functions() == now
        client = new_client(standin.url)
        client.messages.create(**ASK)
        assert len(scope.calls) == 1
    assert all(new is old for new, old in zip(functions(), before, strict=True))
    client.messages.create(**ASK)
    client.close()
    assert len(scope.ours.calls) == 1
    claudescope.uninstrument()


def test_23_a_stream_that_outlives_uninstrument(standin):
    standin.use(reply_to)
    client = new_client(standin.url)
    with instrumented() as scope:
        stream = client.messages.create(**ASK, stream=True)
        first = next(stream)
    assert first.type == "message_start"
    assert list(stream)[-1].type == "message_stop"
    client.close()
    assert attribute(scope.call, semconv.STREAM_END) == "dropped"


def test_23_somebody_elses_wrapper_around_ours_stays(standin, monkeypatch):
    cls = _base_client.SyncAPIClient
    original = cls.request
    monkeypatch.setattr(cls, "request", original)  # undone at the end
    with instrumented() as scope:
        ours = cls.request

        def theirs(*arguments: Any, **keywords: Any) -> Any:
            return ours(*arguments, **keywords)

        cls.request = theirs  # type: ignore[method-assign]
    assert cls.request is theirs
    client = new_client(standin.url)
    client.messages.create(**ASK)
    client.close()
    assert scope.ours.spans == []


@pytest.mark.parametrize("variable", ["CLAUDESCOPE_DISABLED", "OTEL_SDK_DISABLED"])
def test_23_disabled_leaves_every_function(variable, monkeypatch):
    monkeypatch.setenv(variable, "true")
    before = functions()
    claudescope.instrument()
    try:
        assert all(new is old for new, old in zip(functions(), before, strict=True))
    finally:
        claudescope.uninstrument()


FORKED = """
import os, sys
import claudescope
from claudescope.control import worker

claudescope.instrument()
read, write = os.pipe()
child = os.fork()
if child == 0:
    providers = worker().providers
    os.write(write, f"{providers.resource.attributes['service.instance.id']} {os.getpid()} ".encode())
    os.write(write, f"{providers.resource.attributes['process.pid']}".encode())
    os._exit(0)
os.waitpid(child, 0)
print(worker().providers.resource.attributes["service.instance.id"], os.read(read, 200).decode())
"""


def test_21_a_forked_child_has_an_identity_of_its_own() -> None:
    """Two processes' cumulative counters under one identity would be taken for one counter that runs backwards."""
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "CLAUDESCOPE_EXIT_WAIT": "0"}
    done = subprocess.run([sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, timeout=60)
    parent, child, pid, told = done.stdout.split()
    assert parent != child, done.stderr
    assert pid == told


def test_an_instrumented_process_that_makes_no_call_has_no_thread_of_ours() -> None:
    code = "import claudescope, threading; claudescope.instrument(); print([t.name for t in threading.enumerate()])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "['MainThread']\n"


IN_THE_MIDDLE = {
    "stream": "held = client.messages.create(**ASK, stream=True); next(held)",
    "stream helper": "manager = client.messages.stream(**ASK); held = manager.__enter__(); next(iter(held))",
    "raw stream": "held = client.messages.with_raw_response.create(**ASK, stream=True)",
    "raw body": "manager = client.messages.with_streaming_response.create(**ASK); held = manager.__enter__()",
    "batch": """
made = client.messages.batches.create(requests=[{"custom_id": "a", "params": ASK}])
client.messages.batches.retrieve(made.id)
held = client.messages.batches.results(made.id)
""",
    "run and step": "held = contextlib.ExitStack(); held.enter_context(claudescope.run('r'));"
    " held.enter_context(claudescope.step('s'))",
}
LEFT = """
child = os.fork()
if child == 0:
    {child}
else:
    assert os.waitpid(child, 0)[1] == 0
    if what == "run and step":
        held.close()
held = manager = None
gc.collect()
if child == 0:
    assert claudescope.flush(30)
    os._exit(0)
"""
CHILD = {
    "drops it": "pass",
    "closes it": "(getattr(held, 'close', None) or held.http_response.close)()",
    "reads on": "list(held) if hasattr(held, '__iter__') else getattr(held, 'read', held.__class__)",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("child", CHILD)
@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_21_what_is_open_when_the_app_forks_is_the_parents(standin, sink, what, child):
    """A child inherits what is half read. Whatever it does with that, each span leaves from the parent, once."""
    standin.use(reply_to)
    program = (
        f"import contextlib, gc\nwhat = {what!r}\n"
        + textwrap.dedent(IN_THE_MIDDLE[what])
        + LEFT.format(child=CHILD[child])
    )
    done = run(program, standin, sink)
    assert (done.returncode, done.stderr) == (0, "")
    ids = [span.span_id for span in sink.spans]
    assert len(ids) == len(set(ids)), kinds(sink)
    expected = {
        "run and step": ["invoke_workflow r", "run_step s"],
        "batch": ["batch", "batch", "batch", "batch_results"],
    }.get(what)
    calls = [name for name in kinds(sink) if not name.startswith("reasoning_step")]
    if expected is None:
        assert calls == ["chat claude-a"]
    else:
        assert [name.split(" claude")[0] for name in calls] == expected


POOL = """
import multiprocessing, os
import anthropic, claudescope

claudescope.instrument()

def ask(number):
    client = anthropic.Anthropic(max_retries=0)
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=ask, args=(number,)) for number in range(4)]
    for child in children: child.start()
    for child in children: child.join()
"""


def test_21_forked_children_of_multiprocessing_deliver_their_steps(tmp_path: Path, standin: StandIn) -> None:
    """They end by os._exit, after their own finalizers and without atexit."""
    standin.use(say("done"))
    script = tmp_path / "pool.py"
    script.write_text(POOL, "utf-8")
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": standin.url,
        "ANTHROPIC_API_KEY": "key",
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=100)
    assert done.stdout.count('"name": "reasoning_step text"') == 4, done.stderr
