"""What of an answer is kept, however it comes, and what never is: streams as whole answers, empty ones, secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from call_path_functions import ASK
from capture_kit import attribute, instrumented, new_client

import claudescope
from claudescope import semconv
from claudescope.testing.script import (
    Usage,
    compaction,
    redacted_thinking,
    say,
    server_tool_use,
    thinking,
    tool_use,
    unfinished,
    web_search_tool_result,
)

KEY = "sk-ant-api03-" + "A1b2C3d4" * 5


def parts(scope: Any) -> Any:
    (message,) = json.loads(attribute(scope.call, semconv.OUTPUT_MESSAGES))
    return message["parts"]


def ask(standin: Any, streamed: bool) -> None:
    client = new_client(standin.url)
    got = client.messages.create(**ASK, stream=streamed)
    if streamed:
        list(got)
    client.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_the_output_of_a_stream_is_that_of_a_whole_answer(standin, streamed):
    standin.use(
        say(
            thinking("Let me think about that for a while."),
            redacted_thinking(),
            compaction("What was said before."),
            server_tool_use("web_search", {"query": "weather"}, id="srvtoolu_1"),
            web_search_tool_result([("t", "u")]),
            "It is a long and sunny day.",
            tool_use("add", {"a": [1, {"b": "é"}]}, "toolu_1"),
            tool_use("now", {}, "toolu_2"),
        )
    )
    with instrumented(content="full") as scope:
        ask(standin, streamed)
        found = parts(scope)
    del found[4]["response"]  # what the search found has a payload of its own
    assert found == [
        {"type": "reasoning", "content": "Let me think about that for a while."},
        {"type": "redacted_thinking"},
        {"type": "compaction"},
        {"type": "tool_call", "id": "srvtoolu_1", "name": "web_search", "arguments": {"query": "weather"}},
        {"type": "tool_call_response", "id": "srvtoolu_1"},
        {"type": "text", "content": "It is a long and sunny day."},
        {"type": "tool_call", "id": "toolu_1", "name": "add", "arguments": {"a": [1, {"b": "é"}]}},
        {"type": "tool_call", "id": "toolu_2", "name": "now", "arguments": {}},
    ]


def test_a_tools_input_that_was_cut_off_stays_text_and_is_redacted(standin):
    standin.use(say(unfinished(tool_use("f", {"note": KEY}, "toolu_1")), stop_reason="max_tokens"))
    with instrumented(content="full") as scope:
        ask(standin, True)
        ((part),) = parts(scope)
    assert part["name"] == "f"
    assert isinstance(part["arguments"], (str, dict))
    assert "A1b2C3d4" not in json.dumps(part)
    assert "note" in json.dumps(part)


# ------------------------------------------------------------------------------ answers without content


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "model_context_window_exceeded"])
def test_a_response_that_was_stopped_before_any_content_is_one_invalid_step(standin, scope, streamed, reason):
    standin.use(say(stop_reason=reason, usage=Usage(9, 0)))
    ask(standin, streamed)
    (step,) = scope.steps
    call = scope.call
    assert (attribute(step, semconv.STEP_KIND), attribute(step, semconv.STEP_INDEX)) == ("text", 0)
    assert attribute(step, semconv.STEP_VALID) is False
    assert attribute(step, semconv.STEP_VALIDITY_REASON) == f"stop_reason.{reason}"
    assert attribute(step, semconv.STEP_LATENCY_SOURCE) == ("measured" if streamed else "apportioned")
    assert call.start_time == step.start_time <= step.end_time <= call.end_time
    assert attribute(call, semconv.KEEP) is True
    counted = {
        (p.attributes[semconv.STEP_VALID], p.attributes.get(semconv.CHECK)): p.value
        for p in scope.ours.metric(semconv.STEPS.name)
    }
    assert counted[("false", "stop_reason")] == 1
    assert sum(counted.values()) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "pause_turn"])
def test_an_empty_answer_that_was_not_stopped_has_no_step(standin, scope, streamed, reason):
    standin.use(say(stop_reason=reason))
    ask(standin, streamed)
    assert (scope.steps, len(scope.calls)) == ([], 1)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_refusal_with_content_has_no_step_more(standin, scope, streamed):
    standin.use(say("Sorry.", stop_reason="refusal"))
    ask(standin, streamed)
    (step,) = scope.steps
    assert attribute(step, semconv.STEP_VALIDITY_REASON) == "stop_reason.refusal"


# ------------------------------------------------------------------------------ secrets in what the app names


@pytest.mark.parametrize("content", ["off", "hash", "full"])
def test_secrets_in_labels_names_and_reasons_stay_in_the_process(standin, content):
    with instrumented(content=content, metric_labels="key,customer", evaluation_events="all") as scope:
        records: list[Any] = []
        claudescope.on_validated(records.append)
        client = new_client(standin.url)
        with claudescope.run(f"run {KEY}", key=KEY, password="hunter2", customer="Ann"):
            client.messages.create(**ASK)
            with claudescope.step(f"step {KEY}") as step:
                step.set_valid(False, reason=f"bad {KEY}")
        made = client.messages.batches.create(requests=[{"custom_id": KEY, "params": ASK}])
        client.messages.batches.retrieve(made.id)
        list(client.messages.batches.results(made.id))
        client.close()
        scope.settle()
        spans = scope.ours.spans
        told = [
            *(f"{span.name} {dict(span.attributes)} {span.events}" for span in spans),
            *(str(dict(event.log_record.attributes)) for event in scope.ours.events),
            *(str(dict(point.attributes)) for name in scope.ours.metrics for point in scope.ours.metric(name)),
            *map(str, records),
        ]
    assert [text for text in told if "A1b2C3d4" in text or "hunter2" in text] == []
    (root,) = [span for span in spans if span.name.startswith(semconv.RUN_SPAN)]
    assert root.name == "invoke_workflow run [redacted:anthropic_key]"
    assert attribute(root, semconv.CHAIN_NAME) == "run [redacted:anthropic_key]"
    assert attribute(root, semconv.LABEL_PREFIX + "key") == "[redacted:anthropic_key]"
    assert attribute(root, semconv.LABEL_PREFIX + "password") == "[redacted:secret]"
    assert attribute(root, semconv.LABEL_PREFIX + "customer") == "Ann"
    (by_hand,) = [span for span in spans if span.name.startswith(semconv.MANUAL_STEP_SPAN)]
    assert attribute(by_hand, semconv.STEP_VALIDITY_REASON) == "manual.bad_redacted_anthropic_key"
    labels = {attribute(span, semconv.LABEL_PREFIX + "custom_id") for span in spans} - {None}
    assert labels == {"[redacted:anthropic_key]"}


def test_a_redactor_of_the_users_own_sees_short_labels_too(scope):
    claudescope.set_redactor(lambda text: text.replace("Ann", "[name]"))
    try:
        with claudescope.run("for Ann", customer="Ann"), claudescope.step("ask Ann"):
            pass
        scope.settle()
    finally:
        claudescope.set_redactor(None)
    assert sorted(span.name for span in scope.ours.spans) == ["invoke_workflow for [name]", "run_step ask [name]"]
    assert {attribute(span, semconv.LABEL_PREFIX + "customer") for span in scope.ours.spans} == {"[name]"}
