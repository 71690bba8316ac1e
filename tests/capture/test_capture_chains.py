"""Agent runs: step numbers and traces across calls, tool runs, links, labels, callbacks."""

from __future__ import annotations

from typing import Any

import pytest
from call_path_functions import ASK
from capture_kit import NATIVE, Scope, attribute, instrumented, new_client
from opentelemetry import trace

import claudescope
from claudescope import control, semconv
from claudescope.steps.chains import ChainBook
from claudescope.testing.script import error, say, server_tool_use, thinking, tool_use

MODES = ["ours", "native"] if NATIVE else ["ours"]


def returning(*results: tuple[str, bool]) -> dict[str, Any]:
    """A request whose last message carries tool results: ids, and whether they say they are errors."""
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": name, "content": "x", **({"is_error": True} if wrong else {})}
        for name, wrong in results
    ]
    return {**ASK, "messages": [{"role": "user", "content": "go"}, {"role": "user", "content": content}]}


@pytest.fixture(params=MODES)
def client(request, standin, scope):
    made = new_client(standin.url, **(scope.native_option if request.param == "native" else {}))
    yield made
    made.close()


def told(scope: Scope) -> list[tuple[int, str]]:
    steps = sorted(scope.steps, key=lambda span: attribute(span, semconv.STEP_INDEX))
    return [(attribute(step, semconv.STEP_INDEX), attribute(step, semconv.STEP_KIND)) for step in steps]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("raw", [False, True])
def test_numbers_go_on_and_one_run_is_one_trace(standin, scope, client, streamed, raw):
    standin.use(
        say(thinking("a"), tool_use("add", {}, "toolu_1")),
        say(tool_use("mul", {}, "toolu_2")),
        say("end"),
    )
    owner = client.messages.with_raw_response if raw else client.messages
    for ask in (ASK, returning(("toolu_1", False)), returning(("toolu_2", True))):
        got = owner.create(**ask, stream=streamed)
        got = got.parse() if raw else got
        if streamed:
            list(got)
    assert told(scope) == [
        (0, "thinking"),
        (1, "tool_use"),
        (2, "tool_run"),
        (3, "tool_use"),
        (4, "tool_run"),
        (5, "text"),
    ]
    calls, steps = scope.calls, scope.steps
    first = calls[0].context
    assert {span.context.trace_id for span in (*calls, *steps)} == {first.trace_id}
    assert [call.parent and call.parent.span_id for call in calls] == [None, first.span_id, first.span_id]
    assert [call.parent.is_remote for call in calls[1:]] == [True, True]
    assert [[link.context.span_id for link in call.links] for call in calls] == [
        [],
        [first.span_id],
        [calls[1].context.span_id],
    ]
    assert len({attribute(span, semconv.CHAIN_ID) for span in (*calls, *steps)}) == 1
    assert len(attribute(steps[0], semconv.CHAIN_ID)) == 32
    runs = [step for step in steps if attribute(step, semconv.STEP_KIND) == "tool_run"]
    # a tool's run is a child of the call that asked for it, from the end of its block to the next request
    assert [run.parent.span_id for run in runs] == [first.span_id, calls[1].context.span_id]
    assert [attribute(run, semconv.TOOL_NAME) for run in runs] == ["add", "mul"]
    assert [attribute(run, semconv.TOOL_CALL_ID) for run in runs] == ["toolu_1", "toolu_2"]
    assert attribute(runs[1], semconv.STEP_VALID) is False
    for asked, run, call in zip(steps[1::2], runs, calls[1:], strict=False):
        assert asked.end_time <= run.start_time <= run.end_time
        assert run.end_time <= call.end_time


def test_parallel_tools(standin, scope, client):
    standin.use(say(*(tool_use(name, {}, f"toolu_{name}") for name in "abc")), say("end"))
    client.messages.create(**ASK)
    client.messages.create(**returning(("toolu_b", True), ("toolu_a", False), ("toolu_c", False)))
    assert told(scope) == [*((n, "tool_use") for n in range(3)), *((n, "tool_run") for n in range(3, 6)), (6, "text")]
    runs = [step for step in scope.steps if attribute(step, semconv.STEP_KIND) == "tool_run"]
    runs.sort(key=lambda span: attribute(span, semconv.STEP_INDEX))
    assert [attribute(run, semconv.TOOL_NAME) for run in runs] == ["b", "a", "c"]
    assert attribute(runs[0], semconv.STEP_VALID) is False


def test_an_active_span_of_the_app_wins(standin, scope, client):
    standin.use(say(tool_use("add", {}, "toolu_1")), say("end"))
    tracer = scope.ours.tracer_provider.get_tracer("app")
    client.messages.create(**ASK)
    with tracer.start_as_current_span("mine") as mine:
        client.messages.create(**returning(("toolu_1", False)))
    first, second = scope.calls
    assert second.parent.span_id == mine.get_span_context().span_id
    assert second.context.trace_id != first.context.trace_id
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    assert attribute(second, semconv.CHAIN_ID) == attribute(first, semconv.CHAIN_ID)
    assert told(scope)[-1] == (2, "text")


def test_the_app_sends_the_same_request_again(standin, scope, client):
    standin.use(say(tool_use("add", {}, "toolu_1")), error(529), say("one"), say("two"))
    client.messages.create(**ASK)
    import anthropic

    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(**returning(("toolu_1", False)))
    for _ in range(2):
        client.messages.create(**returning(("toolu_1", False)))
    assert told(scope) == [(0, "tool_use"), (1, "tool_run"), (2, "text"), (3, "text")]


def test_calls_without_tool_results_are_runs_of_their_own(standin, scope, client):
    standin.use(say(tool_use("add", {}, "toolu_1")), say("x"), say("y"))
    for ask in (ASK, ASK, returning(("toolu_unknown", False))):
        client.messages.create(**ask)
    calls = scope.calls
    assert len({attribute(call, semconv.CHAIN_ID) for call in calls}) == 3
    assert len({call.context.trace_id for call in calls}) == 3
    assert sorted(told(scope)) == [(0, "text"), (0, "text"), (0, "tool_use")]


def test_a_tool_use_that_was_forgotten_begins_a_new_run(standin, scope, client, monkeypatch):
    worker = control.worker()
    assert worker is not None
    worker.book = worker.pipeline._book = ChainBook(capacity=1)
    standin.use(say(tool_use("a", {}, "toolu_1"), tool_use("b", {}, "toolu_2")), say("x"), say("y"))
    client.messages.create(**ASK)
    scope.settle()  # the worker looks at the book too
    client.messages.create(**returning(("toolu_1", False)))
    client.messages.create(**returning(("toolu_2", False)))
    first, forgotten, known = (attribute(call, semconv.CHAIN_ID) for call in scope.calls)
    assert forgotten != first
    assert known == first


async def test_an_async_agent(standin, scope):
    standin.use(say(tool_use("add", {}, "toolu_1")), say("end"))
    client = new_client(standin.url, asynchronous=True)
    async with client.messages.stream(**ASK) as stream:
        await stream.get_final_message()
    await client.messages.create(**returning(("toolu_1", False)))
    await client.close()
    assert told(scope) == [(0, "tool_use"), (1, "tool_run"), (2, "text")]
    assert len({span.context.trace_id for span in scope.ours.spans}) == 1


def test_labels_and_callbacks(standin, nothing_is_logged):
    with instrumented(metric_labels="team") as scope:
        valid: list[dict[str, Any]] = []
        wrong: list[dict[str, Any]] = []
        claudescope.on_validated(valid.append)

        @claudescope.on_validated
        def fails(record: dict[str, Any]) -> None:
            raise ValueError("mine")

        claudescope.on_error(wrong.append)
        standin.use(say(tool_use("add", {}, "toolu_1")), say("end"))
        client = new_client(standin.url)
        with claudescope.run("invoice", team="red", size=3) as run:
            client.messages.create(**ASK)
            client.messages.create(**returning(("toolu_1", True)))
        client.close()
        scope.settle()
        assert [record["step_index"] for record in valid] == [0, 1, 2]
        assert {record["run_id"] for record in valid} == {run.id}
        assert {tuple(record["labels"].items()) for record in valid} == {(("team", "red"), ("size", "3"))}
        assert [record["kind"] for record in wrong if record["kind"] == "tool_run"] == ["tool_run"]
        for span in scope.ours.spans:
            assert attribute(span, semconv.LABEL_PREFIX + "team") == "red"
            assert attribute(span, semconv.LABEL_PREFIX + "size") == "3"
        points = scope.ours.metric("claudescope.steps")
        assert {point.attributes[semconv.LABEL_PREFIX + "team"] for point in points} == {"red"}
    assert [record.getMessage().count("fails") for record in nothing_is_logged] == [1]
    nothing_is_logged.clear()


def test_a_run_is_the_root_of_its_calls(standin, scope, client):
    standin.use(say("one"), say("two"))
    with claudescope.run("r") as run:
        inside = trace.get_current_span()
        client.messages.create(**ASK)
        client.messages.create(**ASK)
    assert trace.get_current_span() is trace.INVALID_SPAN
    root = next(span for span in scope.ours.spans if span.name == "invoke_workflow r")
    first, second = scope.calls
    assert {call.parent.span_id for call in (first, second)} == {root.context.span_id}
    assert inside.get_span_context() == root.context
    assert {attribute(span, semconv.CHAIN_ID) for span in (root, first, second)} == {run.id}
    assert told(scope) == [(0, "text"), (1, "text")]
    assert attribute(root, semconv.WORKFLOW_NAME) == "r"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("raw", ["", "parsed", "unparsed"])
def test_a_paused_turn_goes_on_in_the_same_run(standin, scope, client, streamed, raw):
    """The response is sent back as the last message, twice here, without a tool's result."""
    searches = [server_tool_use("web_search", {"query": "x"}, id=f"srvtoolu_{n}") for n in (1, 2)]
    standin.use(
        say("Looking.", searches[0], stop_reason="pause_turn"), say(searches[1], stop_reason="pause_turn"), say("end")
    )
    if raw == "unparsed" and streamed:
        pytest.skip("of a raw stream that is never parsed nothing is seen")
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in (1, 2, 3):
        ask = {**ASK, "messages": messages}
        got = (client.messages.with_raw_response if raw else client.messages).create(**ask, stream=streamed)
        got = got.parse() if raw == "parsed" else got
        if streamed:
            list(got)
        scope.settle()
        content = [{"type": "text", "text": "Looking."}] if n == 1 else []
        content.append(
            {"type": "server_tool_use", "id": f"srvtoolu_{n}", "name": "web_search", "input": {"query": "x"}}
        )
        messages = [*messages, {"role": "assistant", "content": content}]
    assert told(scope) == [(0, "text"), (1, "server_tool_use"), (2, "server_tool_use"), (3, "text")]
    calls = scope.calls
    assert len({span.context.trace_id for span in (*calls, *scope.steps)}) == 1
    assert [[link.context.span_id for link in call.links] for call in calls] == [
        [],
        [calls[0].context.span_id],
        [calls[1].context.span_id],
    ]
    points = scope.ours.metric(semconv.CHAIN_STEPS.name)
    assert [(point.count, point.sum) for point in points] == [(1, 4)], "the run ended once, with four steps"


def test_a_paused_turn_sent_back_as_the_sdks_own_models(standin, scope, client):
    standin.use(say(server_tool_use("web_search", {"query": "x"}), stop_reason="pause_turn"), say("end"))
    paused = client.messages.create(**ASK)
    client.messages.create(**{**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": paused.content}]})
    assert told(scope) == [(0, "server_tool_use"), (1, "text")]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_tool_of_an_answer_that_is_over_continues_nothing(standin, scope, client, streamed):
    """Such as a conversation that goes on, or one that is asked again with a prefilled answer."""
    used = server_tool_use("web_search", {"query": "x"}, id="srvtoolu_1")
    standin.use(say(used, "Found."), say("end"))
    got = client.messages.create(**ASK, stream=streamed)
    if streamed:
        list(got)
    content = [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}]
    client.messages.create(**{**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": content}]})
    assert len({attribute(call, semconv.CHAIN_ID) for call in scope.calls}) == 2
