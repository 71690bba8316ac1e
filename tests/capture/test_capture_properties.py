"""What holds for every path: no cycle, the same steps whoever makes the call's span, no fault reaches the app."""

from __future__ import annotations

import gc
import logging
import re
import weakref
from typing import Any

import anthropic
import pytest
from call_path_functions import ASK, settle
from capture_kit import HAS_CYCLES, NATIVE, Scope, attribute, drive, instrumented, new_client, seen

import claudescope
from claudescope import control, semconv
from claudescope.capture import call as capture_call
from claudescope.capture import seam
from claudescope.capture.call import current
from claudescope.capture.request import provider_of
from claudescope.capture.stream import Tape
from claudescope.guard import Guard, guard
from claudescope.pipeline import Pipeline
from claudescope.testing.script import Pace, say, thinking, tool_use

REPLY = say(thinking("Two and two."), "It is four, I say.")


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("kind", ["stream", "raw stream", "raw body"])
@pytest.mark.parametrize("native", [False, True] if NATIVE else [False])
def test_what_is_dropped_is_freed_as_without_claudescope(standin, no_collector, kind, native):
    standin.use(REPLY.paced(Pace(chunk=1)))
    scope = Scope()
    ours = scope.ours
    client = new_client(standin.url, **(scope.native_option if native else {}))
    plain = dropped(client, kind)
    claudescope.instrument(ours.tracer_provider, ours.meter_provider, ours.logger_provider)
    try:
        assert dropped(client, kind) == plain
        if not HAS_CYCLES:
            assert plain[0]
            scope.settle()
            assert scope.open.open == {}
    finally:
        client.close()
        claudescope.uninstrument()
        gc.collect()


def dropped(client: Any, kind: str) -> tuple[bool, bool, bool]:
    """Whether, once it is dropped, the object that the app held is gone, its response is, and that was closed."""
    if kind == "stream":
        held = client.messages.create(**ASK, stream=True)
        for event in held:
            if event.type == "content_block_delta":
                break
        del event
        response = held.response
    else:
        manager = client.messages.with_streaming_response.create(**ASK, stream=kind == "raw stream")
        held = manager.__enter__()
        response = held.http_response
        if kind == "raw stream":
            held = held.parse()
            next(held)
        manager.__exit__(None, None, None)
        del manager
    known, left = weakref.ref(held), weakref.ref(response)
    del held, response
    last = left()
    return known() is None, last is None, last is None or last.is_closed


@pytest.mark.skipif(HAS_CYCLES, reason=f"a stream of anthropic {anthropic.__version__} refers to itself")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_leaves_nothing_for_the_collector(standin, no_collector, scope, streamed):
    standin.use(REPLY)
    client = new_client(standin.url)

    def ask() -> None:
        got = client.messages.create(**ASK, stream=streamed)
        if streamed:
            list(got)

    ask()
    scope.settle()
    gc.collect()
    before = _ours()
    ask()
    scope.settle()
    assert _ours() == before
    client.close()


def _ours() -> dict[str, int]:
    """Objects of capture that live, by class."""
    found: dict[str, int] = {}
    for value in gc.get_objects():
        module = getattr(type(value), "__module__", None)
        if isinstance(module, str) and module.startswith("claudescope.capture"):
            found[type(value).__name__] = found.get(type(value).__name__, 0) + 1
    return found


@pytest.mark.skipif(not NATIVE, reason=f"anthropic {anthropic.__version__} makes no spans of its own")
@pytest.mark.parametrize("streamed", [False, True])
def test_the_same_steps_with_native_spans_and_without(standin, streamed):
    reply = say(thinking("Step 1: hm.\n\nStep 2: ha."), "text", tool_use("f", {"a": 1}, "toolu_1"))
    found = []
    for mode in ("default", "off", "own"):
        with instrumented() as scope:
            standin.use(reply, say("end"))
            options = {"off": {"open_telemetry": {"traces": False}}, "own": scope.native_option}.get(mode, {})
            client = new_client(standin.url, **options)
            got = client.messages.create(**ASK, stream=streamed)
            if streamed:
                list(got)
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
            client.messages.create(**{**ASK, "messages": [{"role": "user", "content": [result]}]})
            client.close()
            assert len(scope.calls) == 2
            unlike = (semconv.CHAIN_ID, semconv.STEP_LATENCY_SOURCE)
            steps = [
                {name: value for name, value in step.attributes.items() if name not in unlike} for step in scope.steps
            ]
            found.append(sorted(steps, key=lambda step: step[semconv.STEP_INDEX]))
    assert found[0] == found[1] == found[2]
    assert [step[semconv.STEP_KIND] for step in found[0]] == [
        "thinking",
        "thinking",
        "text",
        "tool_use",
        "tool_run",
        "text",
    ]


def sabotage(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def broken(*arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("sabotage")

    targets: dict[str, tuple[Any, str]] = {
        "begin": (capture_call, "operation_of"),
        "request": (capture_call, "request_attributes"),
        "response": (capture_call, "exchange_attributes"),
        "body": (capture_call, "body_read"),
        "put": (control.worker(), "put"),
        "tracer": (control.worker(), "tracer"),
        "book": (control.worker().book, "claim"),  # type: ignore[union-attr]
        "tape": (Tape, "_marker"),
        "tape end": (Tape, "_finish"),
        "worker": (Pipeline, "work"),
        "opened": (control.worker(), "opened"),
    }
    monkeypatch.setattr(*targets[where], broken)


@pytest.mark.parametrize(
    "where",
    ["begin", "request", "response", "body", "put", "tracer", "book", "tape", "tape end", "worker", "opened"],
)
def test_a_fault_of_ours_never_reaches_the_app(standin, monkeypatch, nothing_is_logged, where):
    monkeypatch.setattr(guard, "reraise", False)
    monkeypatch.setattr(guard, "seen", {})
    client = new_client(standin.url)

    def use() -> Any:
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
        answered = {**ASK, "messages": [{"role": "user", "content": [result]}]}
        got: list[Any] = [client.messages.create(**answered), list(client.messages.create(**ASK, stream=True))]
        with client.messages.stream(**ASK) as stream:
            got.append(stream.get_final_message())
        with client.messages.with_streaming_response.create(**ASK) as raw:
            got.append(raw.parse())
        return [_without_ids(item) for item in seen(got)]

    standin.use(REPLY)
    plain = use()
    scope = Scope()
    claudescope.instrument(scope.ours.tracer_provider, scope.ours.meter_provider, scope.ours.logger_provider)
    try:
        sabotage(monkeypatch, where)
        assert use() == plain
        assert use() == plain
        claudescope.flush(10)
    finally:
        monkeypatch.undo()
        guard.reraise = False
        claudescope.uninstrument()
        guard.reraise = True
        client.close()
    logged = [record.getMessage() for record in nothing_is_logged]
    nothing_is_logged.clear()
    assert logged
    assert len(logged) == len(set(logged)), "a fault is logged once"
    assert "RuntimeError: sabotage" in logged[0]


def _without_ids(value: Any) -> Any:
    """The stand-in gives each of several equal requests another id and signature."""
    if isinstance(value, dict):
        return {key: _without_ids(item) for key, item in value.items() if key not in ("id", "signature")}
    if isinstance(value, list):
        return [_without_ids(item) for item in value if not (isinstance(item, str) and item.startswith("req_"))]
    return value


def test_the_guard_logs_each_kind_of_fault_once(caplog):
    made = Guard()
    with caplog.at_level(logging.WARNING, "claudescope"):
        for _ in range(3):
            made.contain("do it", ValueError("x"))
        made.contain("do it", KeyError("x"))
        made.contain("do that", ValueError("x"))
    assert len(caplog.records) == 3
    assert made.seen == {("do it", ValueError): 3, ("do it", KeyError): 1, ("do that", ValueError): 1}
    made.reraise = True
    with pytest.raises(ValueError):
        made.contain("do it", ValueError("x"))


@pytest.fixture(autouse=True)
def expected_guard_logs(request, nothing_is_logged):
    yield
    if request.node.name == "test_the_guard_logs_each_kind_of_fault_once":
        nothing_is_logged.clear()


def test_this_sdk_has_all_that_capture_stands_on():
    assert [name for name, there in seam.probe().items() if not there] == []


def test_an_sdk_that_lacks_a_private_name_is_named_in_one_warning(standin, monkeypatch, nothing_is_logged):
    from anthropic import _base_client

    monkeypatch.delattr(_base_client.BaseClient, "_make_status_error_from_response")
    with instrumented() as scope:
        client = new_client(standin.url)
        client.messages.create(**ASK)
        client.close()
        assert attribute(scope.call, semconv.HTTP_STATUS) == 200
    (record,) = nothing_is_logged
    assert "BaseClient._make_status_error_from_response" in record.getMessage()
    nothing_is_logged.clear()


@pytest.mark.skipif(not NATIVE, reason=f"anthropic {anthropic.__version__} names no providers")
def test_the_providers_are_those_that_the_sdk_names():
    classes = [getattr(anthropic, name) for name in dir(anthropic) if re.fullmatch(r"(Async)?Anthropic[A-Z]\w*", name)]
    clients = [anthropic.Anthropic, *(cls for cls in classes if not issubclass(cls, Exception))]
    assert len(clients) >= 5
    assert {cls: provider_of(cls) for cls in clients} == {cls: cls._gen_ai_provider_name for cls in clients}


@pytest.mark.skipif(not hasattr(anthropic.Anthropic, "with_middleware"), reason="this SDK has no middleware")
@pytest.mark.parametrize("answers", [False, True])
def test_middleware(standin, scope, answers):
    """It runs inside the call; one that answers in place of the API leaves a call without steps."""
    standin.use(REPLY)
    got: list[Any] = []

    def middleware(request: Any, call_next: Any) -> Any:
        got.append(request)
        return "instead" if answers else call_next(request)

    client = new_client(standin.url, middleware=[middleware])
    message = client.messages.create(**ASK)
    client.close()
    assert len(got) == 1
    if answers:
        assert message == "instead"
        assert (scope.kinds(), attribute(scope.call, semconv.HTTP_STATUS)) == ([], None)
    else:
        assert scope.kinds() == [("thinking", None), ("text", None)]


@pytest.mark.skipif(not hasattr(anthropic.Anthropic, "with_middleware"), reason="this SDK has no middleware")
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_a_request_inside_of_a_call_that_is_not_followed_is_no_part_of_it(standin, scope, asynchronous, native):
    """A middleware that asks something else, and is refused: the call around it knows nothing of that."""
    standin.use(REPLY)
    refused: list[type] = []
    other = new_client(standin.url, asynchronous=asynchronous)

    def middleware(request: Any, call_next: Any) -> Any:
        try:
            other.get("/v1/nothing", cast_to=object)
        except anthropic.APIStatusError as error:
            refused.append(type(error))
        return call_next(request)

    async def async_middleware(request: Any, call_next: Any) -> Any:
        try:
            await other.get("/v1/nothing", cast_to=object)
        except anthropic.APIStatusError as error:
            refused.append(type(error))
        return await call_next(request)

    options = scope.native_option if native else {}
    used = async_middleware if asynchronous else middleware
    client = new_client(standin.url, asynchronous=asynchronous, middleware=[used], **options)

    async def use() -> None:
        for thing in (client.messages.create(**ASK), client.close(), other.close()):
            await settle(thing)

    drive(asynchronous, use)
    assert refused == [anthropic.NotFoundError]
    call = scope.call
    assert attribute(call, semconv.HTTP_STATUS) == 200
    assert attribute(call, semconv.URL_FULL) == f"{standin.url}/v1/messages"
    assert scope.kinds() == [("thinking", None), ("text", None)]
    assert current.get() is None
