"""Every row of the table of call paths, on real clients over real HTTP; and that the table is complete."""

from __future__ import annotations

import gc
import inspect
from typing import Any

import anthropic
import call_path_functions
import pytest
from call_path_functions import ASK
from call_paths import (
    BATCHES,
    BETA_WAYS,
    CLIENT,
    CLOSED,
    CONSUMED,
    DROPPED,
    FAILING,
    MESSAGES,
    METHODS,
    PLATFORM_WAYS,
    PLATFORMS,
    SPAN,
    STEPS,
)
from capture_kit import HAS_CYCLES, NATIVE, attribute, drive, instrumented, let_go, new_client, observe, seen

from claudescope import semconv
from claudescope.testing.script import StreamError, Usage, error, say, thinking, tool_use
from claudescope.testing.standin import StandIn

REPLY = say(thinking("Two and two."), "It is four, I say.", usage=Usage(11, 5))
PARSED = say(thinking("Two and two."), '{"answer": 4}', usage=Usage(11, 5))
ADD = say(thinking("I add."), tool_use("add", {"a": 2, "b": 2}), usage=Usage(11, 5))


def rows() -> list[Any]:
    found = []
    for target in ("messages", "beta.messages", *PLATFORMS):
        for way, ends in MESSAGES.items():
            if (target in PLATFORMS and way not in PLATFORM_WAYS) or (way in BETA_WAYS and "beta." not in target):
                continue
            found += [(target, way, end) for end in ends]
    for target in ("messages.batches", "beta.messages.batches"):
        found += [(target, way, end) for way, ends in BATCHES.items() for end in ends]
    found += [("client", way, end) for way, ends in CLIENT.items() for end in ends]
    return found


def outcome(target: str, way: str, end: str) -> str:
    table = CLIENT if target == "client" else BATCHES if target.endswith("batches") else MESSAGES
    return table[way][end]


def path(target: str, way: str) -> Any:
    name = way.replace(" ", "_")
    return getattr(call_path_functions, f"batches_{name}" if target.endswith("batches") else name)


def resource(client: Any, target: str) -> Any:
    names = [] if target == "client" else target.split()[-1].split(".")
    for name in names:
        client = getattr(client, name)
    return client


def is_there(client: Any, target: str, way: str) -> bool:
    """Whether this SDK has the row: by looking for its method, not by version."""
    try:
        owner = resource(client, target)
    except AttributeError:
        return False
    if target == "client":
        return True
    if target.endswith("batches"):
        return hasattr(owner.with_raw_response, "results") if way == "raw results" else hasattr(owner, way)
    for prefix, wrapper in (("raw ", "with_raw_response"), ("streaming ", "with_streaming_response")):
        if way.startswith(prefix):
            return hasattr(getattr(owner, wrapper, None), way.split()[1])
    return hasattr(owner, "create" if way.startswith("create") else way.split()[0])


def script(target: str, way: str, end: str) -> tuple[Any, ...]:
    fault = StreamError("delta 1")  # of a response that is not streamed: HTTP 529
    if way.startswith("tool_runner"):
        return (ADD, REPLY.failing(fault) if end == FAILING else REPLY)
    reply = PARSED if "parse" in way.split() else REPLY
    if "count_tokens" in way or target.endswith("batches"):
        return (reply,) * 2
    if (end == FAILING and "lines" in way) or (end == FAILING and way == "raw create stream unparsed"):
        return (error(529),)  # an error in mid-stream is only a line to the app
    return (reply.failing(fault) if end == FAILING else reply,)


def expected(target: str, way: str, end: str) -> list[tuple[str, str | None]]:
    """The steps by number; those of two batch results have numbers of their own and come in pairs."""
    if way.startswith("tool_runner"):
        if end in (CLOSED, DROPPED):
            return [("thinking", None), ("tool_use", end)]
        run = [("thinking", None), ("tool_use", None), ("tool_run", None)]
        if end == CONSUMED:
            return [*run, ("thinking", None), ("text", None)]
        return [*run, ("thinking", None), ("text", "failed")] if way.endswith("stream") else run
    if outcome(target, way, end) != STEPS:
        return []
    if target.endswith("batches"):
        lines = 2 if end == CONSUMED else 1
        return [("text", None)] * lines + [("thinking", None)] * lines
    if way.startswith("streaming") and end in (CLOSED, DROPPED):
        # the context manager closes the response either way
        return [("thinking", None), ("text", end)]
    return [("thinking", None), ("text", None if end == CONSUMED else {FAILING: "failed"}.get(end, end))]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("target", "way", "end"), [pytest.param(*row, id="/".join(row)) for row in rows()])
def test_call_path(target, way, end, asynchronous):
    platform = target.split()[0] if " " in target else ""

    def run(options: dict[str, Any]) -> Any:
        with StandIn() as standin:
            standin.use(*script(target, way, end))
            url = standin.url + ("/nowhere" if failure(target, way, end, None) == "not_found_error" else "")
            client = new_client(url, asynchronous=asynchronous, platform=platform, **options)

            async def go() -> Any:
                try:
                    return seen(await path(target, way)(resource(client, target), end))
                finally:
                    if asynchronous and end == DROPPED:
                        await let_go()
                    await call_path_functions.settle(client.close())

            return observe(lambda: drive(asynchronous, go))

    client = new_client("http://127.0.0.1:9", asynchronous=asynchronous, platform=platform)
    if not is_there(client, target, way):
        pytest.skip(f"anthropic {anthropic.__version__} has no {target} {way}")
    plain = run({})
    if end == FAILING:
        assert plain[0] == "raised"
    if way == "tool_runner stream" and end == DROPPED and is_alive(anthropic.Stream):
        pytest.skip("this Python does not free a dropped runner's stream, without claudescope neither")
    with instrumented() as scope:
        for native in (False, True) if NATIVE else (False,):
            assert run(scope.native_option if native else {}) == plain
            calls = scope.calls
            if native and target != "client":  # the SDK makes no span for a call that none of its methods made
                assert {span.instrumentation_scope.name.partition(".sdk")[0] for span in calls} == {"com.anthropic"}
            else:
                assert {span.instrumentation_scope.name for span in calls} == {semconv.SCOPE}
            wanted = expected(target, way, end)
            kinds = scope.kinds()
            if target.endswith("batches"):
                kinds = sorted(kinds)
            if end == DROPPED and (way == "tool_runner stream" or HAS_CYCLES):
                # the collector may free a generator first, which then closes the stream
                kinds = [(kind, how and DROPPED) for kind, how in kinds]
            assert kinds == wanted
            last = calls[-1]
            if not native or target == "client":
                assert attribute(last, semconv.ERROR_TYPE) == failure(target, way, end, plain)
                if outcome(target, way, end) == STEPS and end == CONSUMED and not target.endswith("batches"):
                    assert attribute(last, semconv.USAGE_INPUT) == 11
                    assert attribute(last, semconv.USAGE_OUTPUT) == 5
            scope.clear()


def is_alive(kind: type) -> bool:
    return any(type(value) is kind for value in gc.get_objects())


def failure(target: str, way: str, end: str, plain: Any) -> str | None:
    if end != FAILING:
        return None
    if target.endswith("batches") or "count_tokens" in way:
        return "not_found_error"
    if target.startswith("bedrock"):  # whose errors have other types, and none in an HTTP body
        if outcome(target, way, end) != STEPS:
            return "529"
        return "ValueError" if plain and plain[1] == "ValueError" else "serviceUnavailableException"  # before 1.x
    return "overloaded_error"


OWNERS = {
    "messages": lambda client: client.messages,
    "beta.messages": lambda client: client.beta.messages,
    "batches": lambda client: client.messages.batches,
    "beta.batches": lambda client: client.beta.messages.batches,
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", OWNERS)
def test_every_public_method_has_a_row(name, asynchronous):
    owner = OWNERS[name](new_client("http://127.0.0.1:9", asynchronous=asynchronous))
    prefix = name.removeprefix("beta.")
    found = set()
    for method in _public(owner):
        if method in ("batches", "with_raw_response", "with_streaming_response"):
            continue
        found.add(f"{prefix}.{method}")
    for wrapper in ("with_raw_response", "with_streaming_response"):
        if prefix == "messages":
            wrapped = _public(getattr(owner, wrapper))
            found |= {f"{prefix}.{wrapper}.{method}" for method in wrapped if method != "batches"}
    assert found - METHODS.keys() == set(), "these methods of the SDK have no row in tests/capture/call_paths.py"


def _public(owner: Any) -> list[str]:
    names = {*dir(type(owner)), *vars(owner)}
    return [
        name
        for name in names
        if (not name.startswith("_") and callable(inspect.getattr_static(owner, name, None))) or name in ("batches",)
    ]


def test_every_row_belongs_to_a_method():
    named = {row for ways in METHODS.values() for row in ways}
    table = {*MESSAGES, *BATCHES, "post", "post stream"}
    assert named == table


def test_outcomes_are_those_of_the_table():
    outcomes = {value for table in (MESSAGES, BATCHES, CLIENT) for ends in table.values() for value in ends.values()}
    assert outcomes == {STEPS, SPAN}
    assert ASK["model"] == "claude-a"
