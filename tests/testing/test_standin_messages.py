"""The stand-in through the real client: plain, streamed, async, tools, beta, every block type."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool

from claudescope.testing.script import (
    Pace,
    Reply,
    Usage,
    compaction,
    mcp_tool_result,
    mcp_tool_use,
    redacted_thinking,
    say,
    server_tool_use,
    text,
    thinking,
    tool_use,
    unfinished,
    unknown,
    web_search_tool_result,
)
from claudescope.testing.standin import StandIn

ASK: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "What is 2 + 2?"}],
}


@pytest.fixture
def client(claudescope_standin):
    with anthropic.Anthropic(base_url=claudescope_standin.url, api_key="k", max_retries=0) as client:
        yield client


def test_a_plain_message(claudescope_standin, client):
    usage = Usage(11, 5, cache_creation_input_tokens=7, cache_read_input_tokens=3, thinking_tokens=2)
    claudescope_standin.use(say(thinking("two and two", "sig"), "4", usage=usage))
    message = client.messages.create(**ASK)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (message.content[0].thinking, message.content[0].signature) == ("two and two", "sig")
    assert message.content[1].text == "4"
    assert (message.model, message.stop_reason, message.role) == ("claude-sonnet-5-5", "end_turn", "assistant")
    assert message.id.startswith("msg_01")
    counted = message.usage
    assert (counted.input_tokens, counted.output_tokens) == (11, 5)
    assert (counted.cache_creation_input_tokens, counted.cache_read_input_tokens) == (7, 3)
    assert counted.cache_creation.ephemeral_5m_input_tokens == 7
    assert counted.output_tokens_details.thinking_tokens == 2


def test_headers_are_those_of_the_api(claudescope_standin, client):
    raw = client.messages.with_raw_response.create(**ASK)
    headers = raw.headers
    assert headers["request-id"].startswith("req_011C")
    assert headers["anthropic-organization-id"] == "00000000-0000-4000-8000-000000000000"
    for kind, limit in (("requests", 1000), ("tokens", 540_000), ("input-tokens", 450_000), ("output-tokens", 90_000)):
        assert headers[f"anthropic-ratelimit-{kind}-limit"] == str(limit)
        assert headers[f"anthropic-ratelimit-{kind}-reset"] == "2026-01-01T00:00:00Z"  # the default clock's start
    assert headers["anthropic-ratelimit-requests-remaining"] == "999"
    assert raw.parse()._request_id == headers["request-id"]


def test_a_raw_stream_has_the_events_of_the_api(claudescope_standin, client):
    reply = say("Hello there", tool_use("add", {"a": 2}), usage=Usage(9, 21, cache_read_input_tokens=4))
    claudescope_standin.use(reply.paced(Pace(chunk=6)))
    events = list(client.messages.create(**ASK, stream=True))
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",  # the ping after it is the SDK's to drop
        "content_block_delta",  # "Hello "
        "content_block_delta",  # "there"
        "content_block_stop",
        "content_block_start",
        "content_block_delta",  # ""
        "content_block_delta",  # '{"a": '
        "content_block_delta",  # "2}"
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start, tool, delta = events[0].message, events[5].content_block, events[10]
    assert (start.usage.input_tokens, start.usage.cache_read_input_tokens, start.usage.output_tokens) == (9, 4, 1)
    assert (start.content, start.stop_reason) == ([], None)
    assert (tool.input, tool.id[:8]) == ({}, "toolu_01")
    assert [event.delta.partial_json for event in events[6:9]] == ["", '{"a": ', "2}"]
    assert (delta.delta.stop_reason, delta.usage.output_tokens) == ("tool_use", 21)


def test_pings_come_after_the_first_block_start_and_as_scripted(claudescope_standin, client):
    claudescope_standin.use(say("abcdef", pace=Pace(chunk=1), pings=2))
    with client.messages.with_streaming_response.create(**ASK, stream=True) as response:
        names = [line[7:] for line in response.iter_lines() if line.startswith("event: ")]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names.count("ping") == 1 + 6 // 2


def test_the_stream_helper_joins_what_was_scripted(claudescope_standin, client):
    source = "数字は4です。 The answer 🎉 is four."
    claudescope_standin.use(say(thinking("a" * 50), source, pace=Pace(chunk=5, jitter=1)))
    with client.messages.stream(**ASK) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    assert "".join(pieces) == source
    assert message.content[0].thinking == "a" * 50
    assert message.content[0].signature.startswith("Er")
    assert message.usage.output_tokens == 13 + 8  # 50 and 31 characters at four a token, rounded up


EVERY_BLOCK = (
    thinking("hm"),
    redacted_thinking(),
    text("see", citations=[{"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": None,
                            "start_char_index": 0, "end_char_index": 1, "file_id": None}]),
    server_tool_use("web_search", {"query": "q"}),
    web_search_tool_result([("Title", "https://example.com/")]),
    mcp_tool_use("lookup", "server", {"k": 1}),
    mcp_tool_result("found"),
    compaction("what came before"),
    unknown("telepathy", wave=3),
    tool_use("add", {"a": 1, "b": 2}),
)  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
def test_every_block_type(claudescope_standin, client, streamed):
    claudescope_standin.use(Reply(EVERY_BLOCK))
    if streamed:
        with client.beta.messages.stream(**ASK) as stream:
            message = stream.get_final_message()
    else:
        message = client.beta.messages.create(**ASK)
    blocks = message.content
    assert [block.type for block in blocks] == [block.type for block in EVERY_BLOCK]
    assert blocks[1].data.startswith("Em")
    assert blocks[2].text == "see"
    assert [citation.cited_text for citation in blocks[2].citations] == ["c"]
    assert blocks[4].tool_use_id == blocks[3].id
    assert (blocks[3].input, blocks[4].content[0].url) == ({"query": "q"}, "https://example.com/")
    assert (blocks[6].tool_use_id, blocks[6].is_error) == (blocks[5].id, False)
    assert blocks[7].content == "what came before"
    assert blocks[8].wave == 3
    assert blocks[9].input == {"a": 1, "b": 2}
    assert message.usage.server_tool_use.web_search_requests == 1


@pytest.mark.parametrize(
    ("reply", "reason", "sequence"),
    [
        (say("a"), "end_turn", None),
        (say(tool_use("f")), "tool_use", None),
        (say("a", stop_reason="max_tokens"), "max_tokens", None),
        (say("a", stop_reason="pause_turn"), "pause_turn", None),
        (say("a", stop_reason="model_context_window_exceeded"), "model_context_window_exceeded", None),
        (say("a", stop_sequence="END"), "stop_sequence", "END"),
        (say("", refusal="cyber"), "refusal", None),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_stop_reasons(claudescope_standin, client, reply, reason, sequence, streamed):
    claudescope_standin.use(reply)
    if streamed:
        with client.messages.stream(**ASK) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**ASK)
    assert (message.stop_reason, message.stop_sequence) == (reason, sequence)
    assert (message.stop_details and message.stop_details.category) == reply.refusal


def test_truncated_tool_json_without_a_block_stop(claudescope_standin, client):
    claudescope_standin.use(say(unfinished(tool_use("save", raw='{"file": "ta')), stop_reason="max_tokens"))
    events = list(client.messages.create(**ASK, stream=True))
    assert "".join(e.delta.partial_json for e in events if e.type == "content_block_delta") == '{"file": "ta'
    assert "content_block_stop" not in [event.type for event in events]
    claudescope_standin.use(say(tool_use("save", raw='{"file": "ta'), stop_reason="max_tokens"))
    assert client.messages.create(**ASK).content[0].input == {}


def test_a_tool_loop_is_scripted_by_a_function_of_the_request(claudescope_standin, client):
    @beta_tool
    def add(a: int, b: int) -> str:
        """Adds.

        Args:
            a: one
            b: another
        """
        return str(a + b)

    def script(request: dict[str, Any]) -> Reply:
        last = request["messages"][-1]["content"]
        if isinstance(last, str):
            return say(tool_use("add", {"a": 1, "b": 2}), tool_use("add", {"a": 3, "b": 4}))
        return say("The sums are " + " and ".join(part["content"] for part in last))

    claudescope_standin.use(script)
    runner = client.beta.messages.tool_runner(**ASK, tools=[add])
    first, final = list(runner)
    assert final.content[0].text == "The sums are 3 and 7"
    results = claudescope_standin.requests[1].json["messages"][-1]["content"]
    assert [part["tool_use_id"] for part in results] == [block.id for block in first.content]


def test_a_request_that_continues_a_thread_is_scripted_by_the_whole_conversation(claudescope_standin, client):
    seen = []

    def script(request: dict[str, Any]) -> Reply:
        seen.append((request.get("system"), [message["role"] for message in request["messages"]]))
        return say("yes")

    claudescope_standin.use(script)
    body = {**ASK, "system": "Be brief.", "thread": {"type": "create"}}
    first: Any = client.post("/v1/messages?beta=true", body=body, cast_to=object)
    body = {**ASK, "thread": {"type": "continue", "previous_message_id": first["id"]}}
    client.post("/v1/messages?beta=true", body=body, cast_to=object)
    assert seen == [("Be brief.", ["user"]), ("Be brief.", ["user", "assistant", "user"])]
    body["thread"]["previous_message_id"] = "msg_unknown"
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.post("/v1/messages?beta=true", body=body, cast_to=object)
    assert caught.value.body["error"]["details"] == {"error_code": "thread_not_found"}
    assert {request.target for request in claudescope_standin.requests} == {"/v1/messages?beta=true"}


def test_replies_in_order_then_an_error_that_says_so(claudescope_standin, client):
    claudescope_standin.use(say("one"), say("two"))
    assert [client.messages.create(**ASK).content[0].text for _ in range(2)] == ["one", "two"]
    with pytest.raises(anthropic.BadRequestError, match="no reply left: it gave 2"):
        client.messages.create(**ASK)
    assert [str(error) for error in claudescope_standin.errors] == ["The script has no reply left: it gave 2."]


async def test_the_async_client(claudescope_standin):
    claudescope_standin.use(say("Hello there"))
    async with anthropic.AsyncAnthropic(base_url=claudescope_standin.url, api_key="k") as client:
        assert (await client.messages.create(**ASK)).content[0].text == "Hello there"
        async with client.messages.stream(**ASK) as stream:
            assert "".join([piece async for piece in stream.text_stream]) == "Hello there"
        events = [event.type async for event in await client.messages.create(**ASK, stream=True)]
        assert events[-1] == "message_stop"


def test_count_tokens_and_models(claudescope_standin, client):
    counted = client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])
    size = len(claudescope_standin.requests[0].body)
    assert counted.input_tokens == -(-size // 4)  # four characters a token, rounded up
    ids = [model.id for model in client.models.list()]
    assert ids == ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]
    assert client.models.retrieve(ids[1]).display_name == "Claude Sonnet 5 5"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nobody")


def test_without_a_script_it_calls_a_tool_and_then_answers(claudescope_standin, client):
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
              "required": ["city", "days"]}  # fmt: skip
    tools = [{"name": "weather", "input_schema": schema}]
    first = client.messages.create(**ASK, tools=tools, thinking={"type": "adaptive"})
    assert [block.type for block in first.content] == ["thinking", "tool_use"]
    assert first.content[1].input == {"city": "example", "days": 2}
    result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "sun"}
    messages = [
        *ASK["messages"],
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": [result]},
    ]
    second = client.messages.create(**{**ASK, "messages": messages}, tools=tools)
    assert (second.stop_reason, second.content[0].text) == ("end_turn", "This is the stand-in's answer to message 3.")


def test_without_a_script_it_answers_in_json_where_that_is_asked(claudescope_standin, client):
    schema = {
        "type": "object",
        "properties": {"size": {"$ref": "#/$defs/Size"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["size", "tags"],
        "$defs": {"Size": {"enum": ["small", "large"]}},
    }
    message = client.messages.create(**ASK, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert json.loads(message.content[0].text) == {"size": "small", "tags": ["example"]}


def test_a_request_without_what_the_api_needs_is_refused(claudescope_standin, client):
    for path, body, message in (
        ("/v1/messages", {"model": "m", "max_tokens": 1}, "messages: Field required"),
        ("/v1/messages", {"messages": [], "max_tokens": 1}, "model: Field required"),
        ("/v1/messages/batches", {"requests": [{"custom_id": "a"}]}, "requests: each needs"),
    ):
        with pytest.raises(anthropic.BadRequestError, match=message):
            client.post(path, body=body, cast_to=object)
    with pytest.raises(anthropic.NotFoundError, match="POST /v1/nothing"):
        client.post("/v1/nothing", body={}, cast_to=object)
    assert claudescope_standin.errors == []  # the requests' fault, not the script's


def test_a_reply_takes_its_pace(claudescope_standin, client):
    # 0.05 + 3 deltas of 0.02 = 0.11 s at least, streamed or not; only the lower bound is sure on a busy machine
    import time

    claudescope_standin.use(say("abc", pace=Pace(first=0.05, delta=0.02, chunk=1)))
    for streamed in (False, True):
        began = time.perf_counter()
        if streamed:
            list(client.messages.create(**ASK, stream=True))
        else:
            client.messages.create(**ASK)
        assert time.perf_counter() - began >= 0.11


def test_it_is_usable_without_a_fixture():
    with StandIn(say("hi")) as standin, anthropic.Anthropic(base_url=standin.url, api_key="k") as client:
        assert client.messages.create(**ASK).content[0].text == "hi"
