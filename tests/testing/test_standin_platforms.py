"""Bedrock and Vertex through the real clients, with dummy credentials."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest
from botocore.eventstream import EventStreamBuffer

from claudescope.testing import eventstream
from claudescope.testing.script import Cut, StreamError, error, say, thinking, tool_use

MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
REPLY = say(thinking("well"), "Hello there", tool_use("f", {"a": 1}))


@pytest.fixture
def bedrock(claudescope_standin):
    claudescope_standin.use(REPLY)
    with anthropic.AnthropicBedrock(
        base_url=claudescope_standin.url,
        aws_access_key="a",
        aws_secret_key="b",
        aws_region="us-east-1",
        max_retries=0,
    ) as client:
        yield client


@pytest.fixture
def vertex(claudescope_standin):
    claudescope_standin.use(REPLY)
    with anthropic.AnthropicVertex(
        base_url=claudescope_standin.url, region="global", project_id="p", access_token="t", max_retries=0
    ) as client:
        yield client


def texts(message: Any) -> list[Any]:
    return [block.type for block in message.content] + [message.content[1].text, message.content[2].input]


WANTED = ["thinking", "text", "tool_use", "Hello there", {"a": 1}]


def test_bedrock(claudescope_standin, bedrock):
    ask = {"model": "us.anthropic.claude-sonnet-5-5-v1:0", "max_tokens": 9, "messages": MESSAGES}
    message = bedrock.messages.create(**ask)
    assert texts(message) == WANTED
    assert message.model == "claude-sonnet-5-5"
    with bedrock.messages.stream(**ask) as stream:
        assert texts(stream.get_final_message()) == WANTED
    assert [event.type for event in bedrock.messages.create(**ask, stream=True)][-1] == "message_stop"
    path = "/model/us.anthropic.claude-sonnet-5-5-v1:0/invoke"
    assert [request.path for request in claudescope_standin.requests] == [
        path,
        path + "-with-response-stream",
        path + "-with-response-stream",
    ]


def test_bedrock_faults(claudescope_standin, bedrock):
    ask = {"model": "anthropic.claude-sonnet-5-5", "max_tokens": 9, "messages": MESSAGES}
    claudescope_standin.use(REPLY.failing(StreamError("delta 1")))
    with pytest.raises(anthropic.APIStatusError) as caught:
        list(bedrock.messages.create(**ask, stream=True))
    assert caught.value.body["error"] == {"type": "serviceUnavailableException", "message": "Overloaded"}
    claudescope_standin.use(REPLY.failing(Cut("stop 0")))
    with pytest.raises(httpx2.RemoteProtocolError):
        list(bedrock.messages.create(**ask, stream=True))
    claudescope_standin.use(error(429, "slowly"))
    with pytest.raises(anthropic.RateLimitError) as limited:
        bedrock.messages.create(**ask)
    assert limited.value.body == {"message": "slowly"}
    assert limited.value.response.headers["x-amzn-errortype"] == "ThrottlingException"


def test_vertex(claudescope_standin, vertex):
    ask = {"model": "claude-sonnet-5-5@20260101", "max_tokens": 9, "messages": MESSAGES}
    message = vertex.messages.create(**ask)
    assert texts(message) == WANTED
    assert message.model == "claude-sonnet-5-5-20260101"
    with vertex.beta.messages.stream(**ask) as stream:
        assert texts(stream.get_final_message()) == WANTED
    assert vertex.messages.count_tokens(model="m", messages=MESSAGES).input_tokens > 0
    assert [request.path.rpartition(":")[2] for request in claudescope_standin.requests] == [
        "rawPredict",
        "streamRawPredict",
        "rawPredict",
    ]


async def test_async_platforms(claudescope_standin):
    claudescope_standin.use(REPLY)
    ask = {"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": MESSAGES}
    async with (
        anthropic.AsyncAnthropicVertex(
            base_url=claudescope_standin.url, region="eu", project_id="p", access_token="t"
        ) as vertex,
        vertex.messages.stream(**ask) as stream,
    ):
        assert texts(await stream.get_final_message()) == WANTED
    async with (
        anthropic.AsyncAnthropicBedrock(
            base_url=claudescope_standin.url, aws_access_key="a", aws_secret_key="b", aws_region="us-east-1"
        ) as bedrock,
        bedrock.messages.stream(**ask) as stream,
    ):
        assert texts(await stream.get_final_message()) == WANTED


def test_frames_are_read_by_botocore():
    buffer = EventStreamBuffer()  # checks both checksums
    buffer.add_data(eventstream.chunk(b'{"type":"ping"}') + eventstream.exception("throttlingException", "slowly"))
    event, failure = list(buffer)
    assert event.headers == {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    assert event.payload == b'{"bytes":"eyJ0eXBlIjoicGluZyJ9"}'
    assert failure.headers[":exception-type"] == "throttlingException"
    assert failure.payload == b'{"message":"slowly"}'
