"""The numbered faults that concern streams: 1 to 8, 25 and 27."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anthropic
import pytest
from call_path_functions import ASK, read, settle
from capture_kit import attribute, compare, let_go, new_client, seen
from opentelemetry.trace import StatusCode

from claudescope import semconv
from claudescope.testing.script import Cut, Garbled, Pace, Stall, StreamError, Usage, say, thinking, tool_use

REPLY = say(thinking("Two and two."), "It is four, I say.", usage=Usage(11, 5))
PARTLY = [("thinking", None)]


def opened(url: str, options: dict[str, Any]) -> Any:
    return new_client(url, **options).messages.create(**ASK, stream=True)


def test_1_a_dropped_stream():
    def action(url, options):
        stream = opened(url, options)
        return [type(stream).__name__, type(stream) is anthropic.Stream, *[next(stream) for _ in range(6)]]

    out = compare((REPLY,), action)
    # message_start; block 0: start, delta, signature, stop; block 1: start. Its deltas are never read.
    assert out.given[-1][1]["type"] == "content_block_start"
    assert out.kinds == [*PARTLY, ("text", "dropped")]
    assert out[semconv.STREAM_END] == "dropped"
    assert out[semconv.ERROR_TYPE] is None
    assert out.call.status.status_code is StatusCode.UNSET


def test_2_a_stream_closed_early():
    def action(url, options):
        stream = opened(url, options)
        events = [next(stream) for _ in range(7)]
        stream.close()
        stream.close()
        return events

    out = compare((REPLY,), action)
    assert out.kinds == [*PARTLY, ("text", "closed")]
    assert out[semconv.STREAM_END] == "closed"
    assert out[semconv.ERROR_TYPE] is None


def test_2_a_stream_closed_before_anything_was_read():
    def action(url, options):
        stream = opened(url, options)
        stream.close()

    out = compare((REPLY,), action)
    assert (out.kinds, out[semconv.STREAM_END]) == ([], "closed")


@pytest.mark.parametrize(("managed", "end"), [(True, "closed"), (False, "dropped")])
def test_3_a_stream_broken_out_of(managed, end):
    def loop(stream):
        for event in stream:
            if event.type == "content_block_delta" and event.index == 1:
                return event
        return None

    def action(url, options):
        stream = opened(url, options)
        if not managed:
            return loop(stream)
        with stream:
            return loop(stream)

    out = compare((REPLY,), action)
    assert out.kinds == [*PARTLY, ("text", end)]
    assert out[semconv.STREAM_END] == end


def test_4_an_error_event_in_mid_stream():
    def action(url, options):
        return list(opened(url, options))

    out = compare((REPLY.failing(StreamError("delta 1")),), action)
    assert out.given[0] == "raised"
    assert out.kinds == [*PARTLY, ("text", "failed")]
    assert out[semconv.STREAM_END] == "failed"
    assert out[semconv.ERROR_TYPE] == "overloaded_error"
    assert out.call.status.status_code is StatusCode.ERROR


def test_4_an_event_that_is_no_json():
    out = compare((REPLY.failing(Garbled("delta 1")),), lambda url, options: list(opened(url, options)))
    assert out.given[:2] == ["raised", "JSONDecodeError"]
    assert out.kinds == [*PARTLY, ("text", "failed")]
    assert out[semconv.ERROR_TYPE] == "JSONDecodeError"


def test_5_a_cut_connection():
    out = compare((REPLY.failing(Cut("delta 1")),), lambda url, options: list(opened(url, options)))
    assert out.given[:2] == ["raised", "RemoteProtocolError"]
    assert out.kinds == [*PARTLY, ("text", "failed")]
    assert out[semconv.STREAM_END] == "failed"
    assert out[semconv.ERROR_TYPE] == "connection_error"


def test_5_a_connection_cut_before_the_answer():
    out = compare((REPLY.failing(Cut("request")),), lambda url, options: opened(url, options))
    assert out.given[:2] == ["raised", "APIConnectionError"]
    assert out.kinds == []
    assert out[semconv.ERROR_TYPE] == "connection_error"
    assert out[semconv.HTTP_METHOD] == "POST"


def test_5_a_body_that_ends_without_message_stop():
    body = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
        b'"model":"a","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}'
        b'\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"text","text":""}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"half"}}\n\n'
    )

    class Short(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Short) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        out = compare((REPLY,), lambda _, options: list(opened(url, options)))
        server.shutdown()
    assert len(out.given) == 3  # the SDK raises nothing
    assert out.kinds == [("text", "failed")]
    assert (out[semconv.STREAM_END], out[semconv.ERROR_TYPE]) == ("failed", "incomplete_stream")
    assert (out[semconv.USAGE_INPUT], out[semconv.USAGE_OUTPUT]) == (3, 1)


def test_6_an_async_stream_that_is_cancelled():
    async def run(url, options):
        client = new_client(url, asynchronous=True, **options)
        got = []
        waiting = asyncio.Event()

        async def consume():
            async for event in await client.messages.create(**ASK, stream=True):
                got.append(event)
                if event.type == "content_block_delta" and event.index == 1:
                    waiting.set()

        task = asyncio.create_task(consume())
        await waiting.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        del task
        await client.close()
        return [type(caught.value) is asyncio.CancelledError, *seen(got)]

    out = compare((REPLY.failing(Stall("delta 1")),), lambda url, options: asyncio.run(run(url, options)))
    assert out.given[0] is True
    assert out.kinds == [*PARTLY, ("text", "cancelled")]
    assert out[semconv.STREAM_END] == "cancelled"
    assert out[semconv.ERROR_TYPE] is None
    assert out.call.status.status_code is StatusCode.UNSET


def test_6_a_call_that_is_cancelled_before_its_answer():
    async def run(url, options):
        client = new_client(url, asynchronous=True, **options)
        task = asyncio.create_task(client.messages.create(**ASK))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.close()

    out = compare((REPLY.failing(Stall("request")),), lambda url, options: asyncio.run(run(url, options)))
    assert out.kinds == []
    assert (out[semconv.ERROR_TYPE], out[semconv.STREAM_END]) == (None, None)


def test_7_an_async_generator_thrown_away_in_another_task():
    async def run(url, options):
        client = new_client(url, asynchronous=True, **options)

        async def events():
            async with await client.messages.create(**ASK, stream=True) as stream:
                async for event in stream:
                    yield event

        generator = events()

        async def take():
            return [await generator.__anext__() for _ in range(7)]

        got = await asyncio.create_task(take())
        await asyncio.create_task(generator.aclose())
        await client.close()
        return got

    out = compare((REPLY,), lambda url, options: asyncio.run(run(url, options)))
    assert out.kinds == [*PARTLY, ("text", "closed")]
    assert out[semconv.STREAM_END] == "closed"


def test_7_a_coroutine_thrown_away_while_it_calls():
    """Closed by hand in another context: nothing is logged about contexts, and the call's span ends."""

    async def run(url, options):
        client = new_client(url, asynchronous=True, **options)
        coroutine = client.messages.create(**ASK)

        async def begin():
            waiting = coroutine.send(None)
            while getattr(waiting, "_asyncio_future_blocking", None) is None:
                waiting = coroutine.send(None)

        await asyncio.create_task(begin())
        coroutine.close()
        await let_go()
        await client.close()

    out = compare((REPLY,), lambda url, options: asyncio.run(run(url, options)))
    assert out.given is None
    assert out.kinds == []


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_8_two_calls_while_a_stream_is_open(asynchronous):
    replies = (REPLY, say("inner one"), say(thinking("hm"), "inner two"))

    async def run(url, options):
        client = new_client(url, asynchronous=asynchronous, **options)
        stream = await settle(client.messages.create(**ASK, stream=True))
        got = [(await stream.__anext__()) if asynchronous else next(stream) for _ in range(3)]
        got.append(await settle(client.messages.create(**{**ASK, "max_tokens": 7})))
        got += await read(await settle(client.messages.create(**{**ASK, "max_tokens": 8}, stream=True)))
        got += await read(stream)
        await settle(client.close())
        return seen(got)

    def action(url, options):
        if asynchronous:
            return asyncio.run(run(url, options))
        coroutine = run(url, options)
        with pytest.raises(StopIteration) as done:
            coroutine.send(None)
        return done.value.value

    out = compare(replies, action)
    for scope in (out.scope, out.native):
        if scope is None:
            continue
        calls = scope.calls
        assert len(calls) == 3
        assert {call.parent for call in calls} == {None}
        assert len({call.context.trace_id for call in calls}) == 3
        by_call = {call.context.span_id: [] for call in calls}
        for step in scope.steps:
            by_call[step.parent.span_id].append(attribute(step, semconv.STEP_KIND))
        assert sorted(by_call.values()) == [["text"], ["thinking", "text"], ["thinking", "text"]]


def test_25_a_slow_consumer():
    reply = say(thinking("a" * 100), "b" * 100, pace=Pace(chunk=10))

    def action(url, options):
        got = []
        for event in opened(url, options):
            got.append(event)
            if event.type == "content_block_delta" and event.index == 1:
                time.sleep(0.03)
        return got

    out = compare((reply,), action)
    sources = [attribute(step, semconv.STEP_LATENCY_SOURCE) for step in out.scope.steps]
    # ten deltas, 0.03 s between the reads of the second block: nearly all of it is the app's own time
    assert sources[1] == "consumer"
    assert out.scope.steps[1].end_time - out.scope.steps[1].start_time >= 9 * 30_000_000


def test_25_a_quick_consumer_of_a_slow_model():
    reply = say(thinking("a" * 50), "b" * 50, pace=Pace(first=0.05, delta=0.05, chunk=10))
    out = compare((reply,), lambda url, options: list(opened(url, options)))
    for step in out.scope.steps:
        assert attribute(step, semconv.STEP_LATENCY_SOURCE) == "measured"
        # the start and the first delta come 0.05 s apart, as do five deltas
        assert (step.end_time - step.start_time) / 1e9 >= 0.2
    assert attribute(out.call, semconv.TIME_TO_FIRST_CHUNK) >= 0.05


def test_27_an_exception_of_the_app_in_its_loop():
    class Mine(Exception):
        pass

    mine = Mine("mine")

    def action(url, options):
        def loop():
            with opened(url, options) as stream:
                for event in stream:
                    if event.type == "content_block_delta":
                        raise mine

        with pytest.raises(Mine) as caught:
            loop()
        return [caught.value is mine, mine.__cause__, mine.__context__]

    out = compare((REPLY,), action)
    assert out.given == [True, None, None]
    assert out.kinds == [("thinking", "closed")]
    assert out[semconv.STREAM_END] == "closed"


def test_usage_and_tool_input_of_a_stream():
    """Token counts are the last ones of the stream, never a sum; cached input tokens are part of the input's."""
    usage = Usage(11, 5, cache_creation_input_tokens=7, cache_read_input_tokens=3, thinking_tokens=2)
    reply = say(thinking("t"), tool_use("add", {"a": 1, "b": 2}, "toolu_x"), usage=usage)
    out = compare((reply,), lambda url, options: list(opened(url, options)), content="full")
    assert out.kinds == [("thinking", None), ("tool_use", None)]
    assert out[semconv.USAGE_INPUT] == 11 + 7 + 3
    assert out[semconv.USAGE_OUTPUT] == 5
    assert out[semconv.USAGE_CACHE_CREATION] == 7
    assert out[semconv.USAGE_CACHE_READ] == 3
    assert out[semconv.USAGE_REASONING] == 2
    assert out[semconv.FINISH_REASONS] == ("tool_use",)
    tool = out.scope.steps[1]
    assert attribute(tool, semconv.TOOL_NAME) == "add"
    assert attribute(tool, semconv.TOOL_CALL_ID) == "toolu_x"
    assert attribute(tool, semconv.STEP_TEXT) == '{"a": 1, "b": 2}'
    assert out.call.name == "chat claude-a"
    assert out[semconv.REQUEST_STREAM] is True
