"""The API's rate limits, calls in flight and their ends, by the real client over real HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from typing import Any

import anthropic
import pytest
from capture_kit import HAS_CYCLES, Scope, attribute, instrumented, needs_native, new_client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import claudescope
from claudescope import semconv
from claudescope.testing.script import Pace, Reply, Usage, error, say, text
from claudescope.testing.standin import StandIn

ASK: dict[str, Any] = {
    "model": "claude-a",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "What is two and two?"}],
}


def left(remaining: int, **more: tuple[int, int]) -> Reply:
    """A reply after which so many of 1,000 tokens remain."""
    return say("Four.", limits={"requests": (50, 40), "tokens": (1000, remaining), **more})


def shares(scope: Scope) -> dict[str, tuple[int, float]]:
    """How many calls each limit was the tightest of, and the sum of their shares."""
    scope.settle()
    return {
        str(point.attributes[semconv.RATELIMIT_KIND]): (point.count, round(point.sum, 9))
        for point in scope.ours.metric(semconv.RATELIMIT_USED.name)
    }


def in_flight(scope: Scope) -> list[int]:
    return [point.value for point in scope.ours.metric(semconv.ACTIVE_CALLS.name)]


def calls(scope: Scope) -> dict[tuple[str, str | None], int]:
    """Calls by operation and error."""
    scope.settle()
    return {
        (str(point.attributes[semconv.OPERATION_NAME]), point.attributes.get(semconv.ERROR_TYPE)): point.value
        for point in scope.ours.metric(semconv.CALLS.name)
    }


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=needs_native)])
def test_each_call_is_recorded_once_with_the_limit_of_which_most_is_used(standin, scope, native) -> None:
    """One whole answer, one stream, one by another limit, one without headers, one refused: nothing is left then."""
    standin.use(
        left(100), left(50), left(1000, output_tokens=(80, 4)), say("Four.", limits={}), error(429, retry_after=0)
    )
    client = new_client(standin.url, **(scope.native_option if native else {}))
    client.messages.create(**ASK)
    with client.messages.stream(**ASK) as stream:
        stream.get_final_message()
    client.messages.create(**ASK)
    client.messages.create(**ASK)
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(**ASK)
    # .9 and .95 of the tokens, 76 of 80 output tokens; the refusal has the stand-in's usual limits, all used up
    assert shares(scope) == {"tokens": (2, 1.85), "output_tokens": (1, 0.95), "requests": (1, 1.0)}
    assert calls(scope) == {("chat", None): 4, ("chat", "rate_limit_error"): 1}


@needs_native
def test_a_call_that_is_not_sampled_is_recorded_too(standin) -> None:
    standin.use(left(300))
    with instrumented() as scope:
        provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
        client = new_client(standin.url, open_telemetry={"tracer_provider": provider})
        client.messages.create(**ASK)
        assert shares(scope) == {"tokens": (1, 0.7)}
        (point,) = scope.ours.metric(semconv.RATELIMIT_USED.name)
        assert point.bucket_counts == (0, 1, 0, 0, 0, 0, 0, 0)  # .5 < .7 <= .7


def test_other_operations_count_under_their_own_name(standin, scope) -> None:
    client = new_client(standin.url)
    client.messages.count_tokens(model="claude-a", messages=ASK["messages"])
    assert sum(calls(scope).values()) == 1
    assert ("chat", None) not in calls(scope)


def test_a_platform_without_such_headers_records_none(standin, scope) -> None:
    standin.use(say("Four."))
    new_client(standin.url, platform="bedrock").messages.create(**ASK)
    assert shares(scope) == {}
    assert calls(scope) == {("chat", None): 1}


def test_a_limit_that_no_attribute_can_hold_is_none(standin, scope) -> None:
    standin.use(say("Four.", limits={"requests": (10**18, 0), "tokens": (10**4000, 7), "output_tokens": (10, 5)}))
    new_client(standin.url).messages.create(**ASK)
    assert attribute(scope.call, "claudescope.ratelimit.requests.limit") is None
    assert attribute(scope.call, "claudescope.ratelimit.tokens.limit") is None
    assert shares(scope) == {"output_tokens": (1, 0.5)}


def test_the_attributes_of_the_span_are_as_they_were(standin, scope) -> None:
    standin.use(left(300))
    new_client(standin.url).messages.create(**ASK)
    assert attribute(scope.call, "claudescope.ratelimit.tokens.limit") == 1000
    assert attribute(scope.call, "claudescope.ratelimit.tokens.remaining") == 300
    assert attribute(scope.call, "claudescope.ratelimit.output_tokens.limit") is None


# ------------------------------------------------------------------------------ calls in flight


def until(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not become true"
        time.sleep(0.005)


def test_a_call_is_in_flight_until_its_answer_is_there(standin, scope) -> None:
    client = new_client(standin.url)
    standin.use(say("One."), say("Four.", pace=Pace(first=0.5)))
    client.messages.create(**ASK)
    scope.settle()
    assert in_flight(scope) == [0]
    thread = threading.Thread(target=lambda: client.messages.create(**ASK))
    thread.start()
    until(lambda: in_flight(scope) == [1])
    thread.join()
    assert in_flight(scope) == [0]


def test_a_stream_is_in_flight_until_it_ends_however_it_does(standin, scope) -> None:
    client = new_client(standin.url)
    standin.use(say("One."), *[say("Four, I say.")] * 3, say("Four.").failing(error(529).fault))
    client.messages.create(**ASK)
    scope.settle()
    read = client.messages.create(**ASK, stream=True)
    closed = client.messages.create(**ASK, stream=True)
    dropped = client.messages.create(**ASK, stream=True)
    assert in_flight(scope) == [3]
    list(read)
    assert in_flight(scope) == [2]
    closed.close()
    assert in_flight(scope) == [1]
    next(iter(dropped))
    del dropped
    if HAS_CYCLES:
        gc.collect()
    assert in_flight(scope) == [0]
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(**ASK)
    assert in_flight(scope) == [0]


def test_a_cancelled_task_and_an_unread_response_are_over(standin, scope) -> None:
    standin.use(say("One."), say("Four.", pace=Pace(first=30)), say("Four."))

    async def cancel() -> None:
        client = new_client(standin.url, asynchronous=True)
        await client.messages.create(**ASK)
        task = asyncio.create_task(client.messages.create(**ASK))
        while len(standin.requests) < 2:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with new_client(standin.url).messages.with_streaming_response.create(**ASK):
            scope.settle()
            assert in_flight(scope) == [1]

    asyncio.run(cancel())
    assert in_flight(scope) == [0]
    assert calls(scope) == {("chat", None): 2, ("chat", "cancelled"): 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_has_its_own_calls_only(standin, scope) -> None:
    client = new_client(standin.url)
    standin.use(say("One."), say("Four."), say("Two."))
    client.messages.create(**ASK)
    scope.settle()
    stream = client.messages.create(**ASK, stream=True)
    assert in_flight(scope) == [1]
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        found = False
        try:
            new_client(standin.url).messages.create(**ASK)
            claudescope.flush(30)
            found = in_flight(scope) == [0]
        finally:
            os._exit(0 if found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stream.close()
    assert in_flight(scope) == [0]


def test_a_provider_that_outlives_us_is_told_nothing_more(standin) -> None:
    standin.use(say("One."), say("Two."))
    with StandIn(say("One.")) as other, instrumented() as scope:
        new_client(other.url).messages.create(**ASK)
        scope.settle()
        claudescope.uninstrument()
        assert in_flight(scope) == []
        telemetry = scope.ours
        claudescope.instrument(telemetry.tracer_provider, telemetry.meter_provider, telemetry.logger_provider)
        stream = new_client(standin.url).messages.create(**ASK, stream=True)
        new_client(standin.url).messages.create(**ASK)
        scope.settle()
        assert in_flight(scope) == [1]  # once, though the meter has been asked for the instrument twice
        stream.close()


# ------------------------------------------------------------------------------ bounds and tokens


def test_steps_beyond_the_bounds_that_the_settings_name(standin) -> None:
    """Six streams, three of them with a wait of .3 s in their block; bounds that all and none are over, and .15 s."""
    slow, quick = Pace(delta=0.1, chunk=4), Pace(chunk=4)
    standin.use(*[say(text("abcdefghijkl"), pace=pace) for pace in (slow, quick) * 3])
    with instrumented(step_bounds="30m,150ms,0.0001ms", steps="block") as scope:
        client = new_client(standin.url)
        for _ in range(6):
            with client.messages.stream(**ASK) as stream:
                stream.get_final_message()
        found: dict[tuple[str, str, str], int] = {}
        for step in scope.steps:
            source = str(attribute(step, semconv.STEP_LATENCY_SOURCE))
            nanoseconds = (step.end_time or 0) - (step.start_time or 0)
            for bound, label in ((1_800_000_000_000, "1800"), (150_000_000, "0.15"), (100, "0.0000001")):
                key = (source, label, "true" if nanoseconds > bound else "false")
                found[key] = found.get(key, 0) + (source != "consumer")
        told = {
            tuple(
                str(p.attributes[key]) for key in (semconv.STEP_LATENCY_SOURCE, semconv.STEP_BOUND, semconv.STEP_BEYOND)
            ): p.value
            for p in scope.ours.metric(semconv.STEP_OVER.name)
        }
    assert told["measured", "0.15", "true"] == 3
    assert {key: value for key, value in told.items() if value} == {key: value for key, value in found.items() if value}


def test_tokens_written_to_the_cache_for_an_hour(standin, scope) -> None:
    usage = Usage(10, 5, cache_creation_input_tokens=30, ephemeral_1h_input_tokens=12)
    standin.use(say("Four.", usage=usage), say("Four.", usage=usage))
    client = new_client(standin.url)
    client.messages.create(**ASK)
    with client.messages.stream(**ASK) as stream:
        stream.get_final_message()
    for call in scope.calls:
        assert attribute(call, semconv.USAGE_CACHE_CREATION) == 30
        assert attribute(call, semconv.USAGE_CACHE_WRITE_1H) == 12
    found = {p.attributes[semconv.TOKEN_CLASS]: p.value for p in scope.ours.metric(semconv.TOKENS.name)}
    assert found == {"input": 20, "cache_read": 0, "cache_write_5m": 36, "cache_write_1h": 24, "output": 10}


@pytest.mark.parametrize("events", [3, 99])
def test_tokens_of_a_stream_that_was_cut_are_marked(standin, scope, events) -> None:
    standin.use(say("Four, I say, and that is it.", usage=Usage(11, 7), pace=Pace(chunk=4)))
    stream = new_client(standin.url).messages.create(**ASK, stream=True)
    for number, event in enumerate(stream):
        if number == events or event.type == "message_delta":
            break
    stream.close()
    assert attribute(scope.call, semconv.STREAM_END) == "closed"
    if events == 3:
        assert (attribute(scope.call, semconv.USAGE_INPUT), attribute(scope.call, semconv.USAGE_OUTPUT)) == (11, 1)
        assert attribute(scope.call, semconv.USAGE_PARTIAL) is True
    else:  # the final counts had come
        assert attribute(scope.call, semconv.USAGE_OUTPUT) == 7
        assert attribute(scope.call, semconv.USAGE_PARTIAL) is None
