"""The numbered faults that concern whole calls: 9 to 20, 24, 26 and 28."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import anthropic
import pytest
from call_path_functions import ASK, adder
from capture_kit import NATIVE, attribute, compare, instrumented, new_client
from opentelemetry.trace import SpanKind, StatusCode

from claudescope import semconv
from claudescope.testing.script import Stall, Usage, error, say, text, thinking, tool_use, unknown
from claudescope.testing.standin import StandIn

REPLY = say(thinking("Two and two."), "It is four, I say.", usage=Usage(11, 5))
BLOCKS = [("thinking", None), ("text", None)]


@pytest.mark.parametrize("parsed", [True, False])
def test_9_with_raw_response(parsed):
    def action(url, options):
        raw = new_client(url, **options).messages.with_raw_response.create(**ASK)
        first = raw.parse() if parsed else None
        return [type(raw).__name__, raw.headers["request-id"], raw.text() if callable(raw.text) else raw.text, first]

    out = compare((REPLY,), action)
    assert out.kinds == BLOCKS
    assert (out[semconv.USAGE_INPUT], out[semconv.USAGE_OUTPUT]) == (11, 5)


def test_9_a_raw_response_that_cannot_be_parsed_is_still_the_apps():
    class Odd:
        pass

    def action(url, options):
        raw = new_client(url, **options).messages.with_raw_response.create(**ASK)
        try:
            return raw.parse(to=Odd)
        except Exception as error:
            return [type(error).__name__, raw.http_response.content]

    assert compare((REPLY,), action).kinds == BLOCKS


def test_10_with_streaming_response():
    def action(url, options):
        client = new_client(url, **options)
        with client.messages.with_streaming_response.create(**ASK) as raw:
            lines = list(raw.iter_lines())
        with client.messages.with_streaming_response.create(**{**ASK, "max_tokens": 7}) as raw:
            whole = raw.json()
        return [lines, whole]

    out = compare((REPLY, REPLY), action)
    assert json.loads(out.given[0][0])["type"] == "message"
    # of lines nothing is seen; a body that was read whole is
    assert out.kinds == BLOCKS
    assert [attribute(call, semconv.USAGE_INPUT) for call in out.scope.calls] == [None, 11]


def test_10_a_connection_cut_while_raw_lines_are_read():
    from claudescope.testing.script import Cut

    def action(url, options):
        with new_client(url, **options).messages.with_streaming_response.create(**ASK, stream=True) as raw:
            return list(raw.iter_lines())

    out = compare((REPLY.failing(Cut("delta 1")),), action)
    assert out.given[:2] == ["raised", "RemoteProtocolError"]
    assert out.kinds == []
    assert out[semconv.ERROR_TYPE] == "connection_error"


def test_11_parse():
    from call_path_functions import Sum

    resource = "messages" if hasattr(anthropic.resources.Messages, "parse") else "beta.messages"

    def action(url, options):
        client = new_client(url, **options)
        owner = client.messages if resource == "messages" else client.beta.messages
        message = owner.parse(**ASK, output_format=Sum)
        return [type(message).__name__, message.parsed_output == Sum(answer=4), message]

    out = compare((say('{"answer": 4}', usage=Usage(11, 5)),), action)
    assert out.given[1] is True
    assert out.kinds == [("text", None)]


@pytest.mark.parametrize("streamed", [False, True])
def test_12_tool_runner(streamed):
    def action(url, options):
        resource = new_client(url, **options).beta.messages
        runner = resource.tool_runner(**ASK, tools=[adder(resource)], **({"stream": True} if streamed else {}))
        return [message.get_final_message() if streamed else message for message in runner]

    out = compare((say(tool_use("add", {"a": 2, "b": 3})), say("five")), action)
    assert out.kinds == [("tool_use", None), ("tool_run", None), ("text", None)]
    assert [attribute(step, semconv.STEP_INDEX) for step in out.scope.steps] == [0, 1, 2]
    assert attribute(out.scope.steps[1], semconv.TOOL_NAME) == "add"
    assert len({span.context.trace_id for span in out.scope.ours.spans}) == 1


def test_13_beta():
    def action(url, options):
        client = new_client(url, **options)
        with client.beta.messages.stream(**ASK) as stream:
            return [type(stream).__name__, stream.get_final_message()]

    out = compare((REPLY,), action)
    assert out.kinds == BLOCKS
    assert out[semconv.STREAM_END] == "completed"


def test_14_batches():
    def action(url, options):
        batches = new_client(url, **options).messages.batches
        made = batches.create(requests=[{"custom_id": name, "params": ASK} for name in ("a", "b", "c")])
        batches.retrieve(made.id)
        return list(batches.results(made.id))

    out = compare((REPLY, error(500), say(tool_use("add", {"a": 1}))), action)
    assert [line[1]["result"]["type"] for line in out.given] == ["succeeded", "errored", "succeeded"]
    steps = out.scope.steps
    assert sorted(attribute(step, semconv.STEP_KIND) for step in steps) == ["text", "thinking", "tool_use"]
    assert {attribute(step, semconv.LABEL_PREFIX + "custom_id") for step in steps} == {"a", "c"}
    results = [call for call in out.scope.calls if call.name.startswith("batch_results")]
    assert {step.parent.span_id for step in steps} == {results[0].context.span_id}


def test_15_count_tokens():
    def action(url, options):
        return new_client(url, **options).messages.count_tokens(model="claude-a", messages=ASK["messages"])

    out = compare((REPLY,), action)
    assert out.kinds == []
    assert out.call.name == "count_tokens claude-a"
    assert out[semconv.OPERATION_NAME] == "count_tokens"


@pytest.mark.parametrize(
    ("platform", "provider", "path"),
    [
        ("", "anthropic", "/v1/messages"),
        ("bedrock", "aws.bedrock", "/model/claude-a/invoke-with-response-stream"),
        (
            "vertex",
            "gcp.vertex_ai",
            "/projects/p/locations/global/publishers/anthropic/models/claude-a:streamRawPredict",
        ),
    ],
)
def test_16_platforms(platform, provider, path):
    def action(url, options):
        with new_client(url, platform=platform, **options).messages.stream(**ASK, temperature=0.5) as stream:
            return [type(stream).__name__, *stream]

    if "temperature" not in anthropic.resources.Messages.stream.__annotations__:
        rest = {"extra_body": {"temperature": 0.5}}

        def action(url, options):
            with new_client(url, platform=platform, **options).messages.stream(**ASK, **rest) as stream:
                return [type(stream).__name__, *stream]

    out = compare((REPLY,), action)
    assert out.kinds == BLOCKS
    assert out.call.name == "chat claude-a"
    assert out.call.kind is SpanKind.CLIENT
    attributes = dict(out.call.attributes)
    port = attributes[semconv.SERVER_PORT]
    assert attributes[semconv.URL_FULL] == f"http://127.0.0.1:{port}{path}"
    expected = {
        semconv.OPERATION_NAME: "chat",
        semconv.PROVIDER_NAME: provider,
        semconv.REQUEST_MODEL: "claude-a",
        semconv.REQUEST_MAX_TOKENS: 64,
        semconv.SERVER_ADDRESS: "127.0.0.1",
        semconv.HTTP_METHOD: "POST",
        semconv.HTTP_STATUS: 200,
        semconv.FINISH_REASONS: ("end_turn",),
        semconv.USAGE_INPUT: 11,
        semconv.USAGE_OUTPUT: 5,
        semconv.STREAM_END: "completed",
        semconv.REQUEST_SHA256: "sha256:" + hashlib.sha256(out.requests[0].body).hexdigest(),
    }
    assert {name: attributes.get(name) for name in expected} == expected
    assert type(attributes[semconv.TIME_TO_FIRST_CHUNK]) is float
    assert attributes[semconv.RESPONSE_ID].startswith("msg_01")


def test_17_client_post():
    from anthropic.types import Message

    def action(url, options):
        client = new_client(url, **options)
        return [client.post("/v1/messages", body=dict(ASK), cast_to=kind) for kind in (Message, object)]

    out = compare((REPLY, REPLY), action)
    assert [given[0] for given in out.given if isinstance(given, list)] == ["Message"]
    assert type(out.given[1]) is dict
    assert sorted(out.scope.kinds()) == sorted(BLOCKS * 2)
    assert len(out.scope.calls) == 2


def test_18_retries_are_one_call():
    def action(url, options):
        return new_client(url, max_retries=3, **options).messages.create(**ASK)

    out = compare((error(529, retry_after=0.01, attempts=2, then=REPLY),), action)
    assert out[semconv.RETRY_COUNT] == 2
    assert out[semconv.HTTP_STATUS] == 200
    assert out[semconv.ERROR_TYPE] is None
    assert out.kinds == BLOCKS
    sent = [request.header("traceparent") for request in out.requests]
    assert len(sent) == 3
    assert {len(values) for values in sent} == {1}
    assert len({value for values in sent for value in values}) == 1
    if out.native is not None:
        assert len(out.native.calls) == 1


def test_18_retries_that_all_fail():
    def action(url, options):
        return new_client(url, max_retries=1, **options).messages.create(**ASK)

    out = compare((error(529, retry_after=0.01),), action)
    assert out.given[:2] == ["raised", "OverloadedError"]
    assert (out[semconv.RETRY_COUNT], out[semconv.HTTP_STATUS]) == (1, 529)
    assert out[semconv.ERROR_TYPE] == "overloaded_error"


def test_19_a_timeout_before_the_answer():
    def action(url, options):
        return new_client(url, timeout=0.3, **options).messages.create(**ASK)

    out = compare((REPLY.failing(Stall("request")),), action)
    assert out.given[:2] == ["raised", "APITimeoutError"]
    assert out[semconv.ERROR_TYPE] == "timeout"
    assert out[semconv.URL_FULL].endswith("/v1/messages")
    assert out.call.status.status_code is StatusCode.ERROR


def test_19_a_timeout_in_mid_stream():
    def action(url, options):
        return list(new_client(url, timeout=1.5, **options).messages.create(**ASK, stream=True))

    out = compare((REPLY.failing(Stall("delta 1")),), action)
    assert out.given[:2] == ["raised", "ReadTimeout"]
    assert out.kinds == [("thinking", None), ("text", "failed")]
    assert (out[semconv.ERROR_TYPE], out[semconv.STREAM_END]) == ("timeout", "failed")


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "BadRequestError", "invalid_request_error"),
        (401, "AuthenticationError", "authentication_error"),
        (429, "RateLimitError", "rate_limit_error"),
        (529, "OverloadedError", "overloaded_error"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_20_refusals(status, name, kind, streamed):
    def action(url, options):
        return new_client(url, **options).messages.create(**ASK, **({"stream": True} if streamed else {}))

    out = compare((error(status, "no"),), action)
    assert out.given[1] == name
    assert out.given[3] == status
    assert out.given[4]["error"] == {"type": kind, "message": "no"}
    assert out.kinds == []
    assert (out[semconv.ERROR_TYPE], out[semconv.HTTP_STATUS]) == (kind, status)
    assert out[semconv.REQUEST_ID] == out.given[5]
    assert out[semconv.STREAM_END] is None
    assert out.call.status.status_code is StatusCode.ERROR
    assert out.call.events == ()
    if status == 429:
        assert out[semconv.RATELIMIT_PREFIX + "requests.remaining"] == 0


def test_20_a_body_that_is_not_the_apis():
    from claudescope.testing.script import HTTPFault

    def action(url, options):
        return new_client(url, **options).messages.create(**ASK)

    out = compare((REPLY.failing(HTTPFault(502, body=b"<html>bad gateway</html>")),), action)
    assert out.given[1] == "InternalServerError"
    assert out[semconv.ERROR_TYPE] == "502"


def test_20_rate_limit_headers_are_integers():
    out = compare((REPLY,), lambda url, options: new_client(url, **options).messages.create(**ASK))
    found = {name: value for name, value in out.call.attributes.items() if name.startswith(semconv.RATELIMIT_PREFIX)}
    assert found
    assert {type(value) for value in found.values()} == {int}
    if out.native is not None:  # what the SDK's own span lacks is added to it
        assert {name: value for name, value in out.native.call.attributes.items() if name in found} == found
        assert attribute(out.native.call, semconv.HTTP_METHOD) == "POST"


@pytest.mark.parametrize("streamed", [False, True])
def test_24_what_the_app_changes_afterwards(streamed):
    def action(url, options):
        messages = [{"role": "user", "content": [{"type": "text", "text": "as sent"}]}]
        tools = [{"name": "add", "description": "d", "input_schema": {"type": "object", "properties": {}}}]
        client = new_client(url, **options)
        ask = {"model": "claude-a", "max_tokens": 64, "messages": messages, "tools": tools}
        if streamed:
            for event in client.messages.create(**ask, stream=True):
                if event.type == "message_start":
                    event.message.usage.input_tokens = 999
                    event.message.model = "changed"
                elif event.type == "content_block_start":
                    for name in ("text", "thinking", "name"):
                        if hasattr(event.content_block, name):
                            setattr(event.content_block, name, "changed")
                elif event.type == "content_block_delta" and hasattr(event.delta, "text"):
                    event.delta.text = "changed"
        else:
            message = client.messages.create(**ask)
            message.content[0].thinking = "changed"
            message.content[1].text = "changed"
            message.content[2].input["a"] = "changed"
            message.content.clear()
            message.usage.input_tokens = 999
        messages[0]["content"][0]["text"] = "changed"
        messages.append({"role": "user", "content": "changed"})
        tools[0]["name"] = "changed"
        tools[0]["input_schema"].clear()

    reply = say(thinking("as it came"), text("as it came"), tool_use("add", {"a": 1}, "toolu_1"), usage=Usage(11, 5))
    out = compare((reply,), action, content="full")
    assert out.kinds == [*BLOCKS, ("tool_use", None)]
    texts = [attribute(step, semconv.STEP_TEXT) for step in out.scope.steps]
    assert texts[:2] == ["as it came", "as it came"]
    assert json.loads(texts[2]) == {"a": 1}
    assert attribute(out.scope.steps[2], semconv.TOOL_NAME) == "add"
    assert out[semconv.REQUEST_SHA256] == "sha256:" + hashlib.sha256(out.requests[0].body).hexdigest()
    assert (out[semconv.USAGE_INPUT], out[semconv.RESPONSE_MODEL]) == (11, "claude-a")
    sent = "".join(str(value) for value in out.call.attributes.values())
    assert "changed" not in sent
    assert "as sent" in sent


@pytest.mark.parametrize("streamed", [False, True])
def test_26_an_unknown_block_type(streamed):
    def action(url, options):
        client = new_client(url, **options)
        if streamed:
            return list(client.messages.create(**ASK, stream=True))
        return client.messages.create(**ASK)

    out = compare((say("before", unknown("hologram", data={"x": 1}, id="h"), "after"),), action)
    assert out.kinds == [("text", None), ("hologram", None), ("text", None)]
    hologram = out.scope.steps[1]
    assert hologram.name == "reasoning_step hologram"


@pytest.mark.parametrize("traced", [True, False])
def test_28_propagation_switched_off(traced):
    if not NATIVE:
        pytest.skip(f"anthropic {anthropic.__version__} has no option open_telemetry")
    with StandIn() as standin, instrumented() as scope:
        standin.use(REPLY)
        options: dict[str, Any] = {"propagation": False}
        if traced:
            options["tracer_provider"] = scope.native.tracer_provider
        client = new_client(standin.url, open_telemetry=options)
        client.messages.create(**ASK)
        client.close()
        assert [request.header("traceparent") for request in standin.requests] == [[]]
        assert scope.kinds() == BLOCKS
        assert scope.call.name == ("anthropic.messages.create" if traced else "chat claude-a")
