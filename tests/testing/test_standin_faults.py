"""Each fault of a script as the SDK's own exception."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import pytest

from claudescope.testing.script import Cut, Garbled, HTTPFault, Stall, StreamError, Unprocessed, error, say

ASK: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
}
REPLY = say("one two three four five six")  # 27 characters: deltas of 16 and 11


@pytest.fixture
def client(claudescope_standin):
    with anthropic.Anthropic(base_url=claudescope_standin.url, api_key="k", max_retries=0, timeout=10) as client:
        yield client


@pytest.mark.parametrize(
    ("status", "kind", "type"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (401, anthropic.AuthenticationError, "authentication_error"),
        (403, anthropic.PermissionDeniedError, "permission_error"),
        (404, anthropic.NotFoundError, "not_found_error"),
        (413, anthropic.APIStatusError, "request_too_large"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.InternalServerError, "overloaded_error"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_http_errors(claudescope_standin, client, status, kind, type, streamed):
    claudescope_standin.use(error(status, "no", retry_after=1.5))
    with pytest.raises(kind) as caught:
        client.messages.create(**ASK, stream=streamed)
    failure = caught.value
    assert failure.status_code == status
    assert failure.body == {
        "type": "error",
        "error": {"type": type, "message": "no"},
        "request_id": failure.response.headers["request-id"],
    }
    assert failure.response.headers["retry-after"] == "1.5"
    assert failure.response.headers["x-should-retry"] == ("true" if status in (429, 500, 529) else "false")
    remaining = failure.response.headers["anthropic-ratelimit-requests-remaining"]
    assert remaining == ("0" if status == 429 else "999")


def test_a_fault_of_the_first_attempts(claudescope_standin, client):
    claudescope_standin.use(error(529, attempts=2, retry_after=0.01, then=say("at last")), say("next"))
    patient = client.with_options(max_retries=2)
    assert patient.messages.create(**ASK).content[0].text == "at last"
    assert [request.header("x-stainless-retry-count") for request in claudescope_standin.requests] == [
        ["0"],
        ["1"],
        ["2"],
    ]
    assert patient.messages.create(**ASK).content[0].text == "next"


def test_a_body_that_is_no_json(claudescope_standin, client):
    claudescope_standin.use(say().failing(HTTPFault(500, body=b"<html>bad gateway</html>")))
    with pytest.raises(anthropic.InternalServerError) as caught:
        client.messages.create(**ASK)
    assert caught.value.response.text == "<html>bad gateway</html>"


def consume(client) -> list[Any]:
    """The events that came before the error."""
    events: list[Any] = []
    try:
        for event in client.messages.create(**ASK, stream=True):
            events.append(event)
    except Exception as failure:
        failure.events = events  # type: ignore[attr-defined]
        raise
    return events


def test_an_error_event_in_mid_stream(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(StreamError("delta 0")))
    with pytest.raises(anthropic.APIStatusError) as caught:
        consume(client)
    assert caught.value.body["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert [event.type for event in caught.value.events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
    ]


def test_a_stream_error_of_a_plain_call_is_an_http_error(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(StreamError(type="rate_limit_error")))
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(**ASK)


@pytest.mark.parametrize(
    ("after", "events"),
    [
        ("headers", 0),
        (1, 1),  # message_start
        ("start 0", 2),
        ("delta 0", 3),
        ("deltas 0", 4),
        ("stop 0", 5),
        (4, 3),  # message_start, content_block_start, the ping that the SDK drops, one delta
    ],
)
def test_a_cut_in_mid_stream(claudescope_standin, client, after, events):
    claudescope_standin.use(REPLY.failing(Cut(after)))
    with pytest.raises(httpx2.RemoteProtocolError) as caught:
        consume(client)
    assert len(caught.value.events) == events


def test_a_reset_in_mid_stream(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(Cut("deltas 0", reset=True)))
    with pytest.raises(httpx2.ReadError):
        consume(client)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("fault", [Cut("request"), Cut("request", reset=True)])
def test_a_cut_before_the_response(claudescope_standin, client, fault, streamed):
    claudescope_standin.use(REPLY.failing(fault))
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK, stream=streamed)


def test_a_cut_in_the_body_of_a_plain_answer(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(Cut("headers")))
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK)


def test_a_stall_before_the_response_is_a_timeout(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(Stall("request")))
    with pytest.raises(anthropic.APITimeoutError):
        client.with_options(timeout=0.2).messages.create(**ASK)


def test_a_stall_in_mid_stream_is_a_timeout(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(Stall("delta 0")))
    # on a machine so busy that even the first event takes a second, the SDK wraps the time-out
    with pytest.raises((httpx2.ReadTimeout, anthropic.APITimeoutError)):
        consume(client.with_options(timeout=1))


@pytest.mark.parametrize("after", ["request", "headers", "delta 0"])
def test_a_short_stall_goes_on(claudescope_standin, client, after):
    claudescope_standin.use(REPLY.failing(Stall(after, 0.05)))
    assert client.messages.create(**ASK).content[0].text == "one two three four five six"
    assert consume(client)[-1].type == "message_stop"


def test_an_event_that_is_no_json(claudescope_standin, client):
    claudescope_standin.use(REPLY.failing(Garbled("delta 0")))
    with pytest.raises(json.JSONDecodeError) as caught:
        consume(client)
    assert len(caught.value.events) == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Cut("stop 1"), "due after 'stop 1'"),  # there is no block 1
        (Cut(99), "due after 99"),
        (StreamError("request"), "due after 'request'"),  # an SSE event needs headers first
        (Unprocessed(), "outside of a batch"),
    ],
)
def test_a_fault_that_cannot_happen_is_told(claudescope_standin, client, fault, message):
    claudescope_standin.use(REPLY.failing(fault))
    with pytest.raises(anthropic.BadRequestError, match=message):
        client.messages.create(**ASK, stream=True)
    assert message in str(claudescope_standin.errors[0])


def test_an_exception_in_a_script_is_told(claudescope_standin, client):
    claudescope_standin.use(lambda request: say(request["nothing"]))
    with pytest.raises(anthropic.BadRequestError, match="KeyError: 'nothing'"):
        client.messages.create(**ASK)
    claudescope_standin.use(lambda request: "hello")
    with pytest.raises(anthropic.BadRequestError, match="gave str, which is not a Reply"):
        client.messages.create(**ASK)
