"""Scripts, replies and the words of a message, without a server."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudescope.testing import script as scripts
from claudescope.testing.answers import example
from claudescope.testing.message import Event, Message, estimate_tokens
from claudescope.testing.script import (
    HTTPFault,
    Pace,
    Reply,
    Script,
    ScriptError,
    Usage,
    error,
    say,
    text,
    thinking,
    tool_use,
)


def message(reply: Reply, seed: int = 0) -> Message:
    return Message(reply, model="m", request_bytes=40, pace=Pace(), rng=random.Random(seed))


def test_one_reply_for_every_request():
    reply = say("a")
    script = Script(reply)
    assert [script.reply({}, key) for key in "ab"] == [reply, reply]


def test_an_endless_iterable_goes_on():
    script = Script(itertools.cycle([say("a"), say("b")]))
    texts = [script.reply({}, str(number)).content[0].fields["text"] for number in range(4)]
    assert texts == ["a", "b", "a", "b"]


def test_a_fault_of_n_attempts_belongs_to_one_request():
    script = Script([error(529, attempts=2, then=say("a")), say("b")])

    def status(key: str) -> int | None:
        fault = script.reply({}, key).fault
        return fault.status if isinstance(fault, HTTPFault) else None

    # "x" is asked again and again; "y" comes between and takes the next reply
    assert [status(key) for key in ("x", "y", "x", "x")] == [529, None, 529, None]
    with pytest.raises(ScriptError, match="it gave 2"):
        script.reply({}, "x")


def test_an_error_before_a_reply_comes_once_unless_told():
    assert error(500, then=say("a")).fault == HTTPFault(500, attempts=1)
    assert error(500).fault == HTTPFault(500)
    assert error(500, attempts=3).fault == HTTPFault(500, attempts=3)


@pytest.mark.parametrize("pace", [{"chunk": 0}, {"jitter": 1.5}, {"jitter": -0.1}])
def test_a_pace_that_cannot_be(pace):
    with pytest.raises(ValueError):
        Pace(**pace)


def test_usage_is_estimated_at_four_characters_a_token():
    whole = message(say(thinking("12345"), "1234", tool_use("f", {"a": 1}))).whole()
    # thinking 5 -> 2, text 4 -> 1, {"a": 1} is 8 -> 2; 40 bytes of request -> 10
    assert (whole["usage"]["input_tokens"], whole["usage"]["output_tokens"]) == (10, 5)
    assert estimate_tokens(0) == 1


def test_the_plain_message_and_the_stream_count_the_same():
    reply = say("abc", usage=Usage(1, 2, 3, 4, thinking_tokens=5, web_search_requests=6))
    made = message(reply)
    usage, final = made.whole()["usage"], list(made.events())[-2].data["usage"]
    assert {key: usage[key] for key in final} == final
    assert final["server_tool_use"] == {"web_search_requests": 6}


def test_marks_are_where_faults_strike():
    marks = [
        event.marks for event in message(Reply((scripts.redacted_thinking(), text("a" * 40), tool_use("f")))).events()
    ]
    assert marks == [
        (),  # message_start
        ("start 0", "delta 0", "deltas 0"),  # a block that comes whole
        (),  # ping
        ("stop 0",),
        ("start 1",),
        ("delta 1",),  # 16 characters
        (),  # 16
        ("deltas 1",),  # 8
        ("stop 1",),
        ("start 2",),
        (),  # the empty fragment that opens every tool input
        ("delta 2", "deltas 2"),  # {}
        ("stop 2",),
        (),  # message_delta
        (),  # message_stop
    ]  # fmt: skip


def joined(events: list[Event], index: int, field: str) -> str:
    return "".join(
        event.data["delta"].get(field, "")
        for event in events
        if event.name == "content_block_delta" and event.data["index"] == index
    )


@given(
    thought=st.text(max_size=200),
    said=st.text(max_size=200),
    value=st.text(max_size=200),
    chunk=st.integers(1, 40),
    jitter=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_pieces_joined_give_the_text_back(thought, said, value, chunk, jitter, seed):
    pace = Pace(0.5, 0.01, 0.1, chunk, jitter)
    made = message(say(thinking(thought), text(said), tool_use("f", {"v": value}), pace=pace), seed)
    events = list(made.events())
    assert joined(events, 0, "thinking") == thought
    assert joined(events, 1, "text") == said
    assert json.loads(joined(events, 2, "partial_json")) == {"v": value}
    assert [block["type"] for block in made.whole()["content"]] == ["thinking", "text", "tool_use"]
    assert all(0 <= event.delay <= 1 for event in events)  # at most 0.5 s * (1 + jitter)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 3}, 3),
        ({"enum": ["b", "a"]}, "b"),
        ({"default": [1]}, [1]),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ({"type": ["null", "string"]}, None),
        ({"type": "number"}, 1),
        ({"type": "array", "items": {"type": "integer", "minimum": 4}, "minItems": 2}, [4, 4]),
        ({"type": "string", "minLength": 9}, "example.."),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "example"}),
        ({}, "example"),
    ],
)
def test_an_example_fits_its_schema(schema: dict[str, Any], value: Any):
    import jsonschema

    assert example(schema) == value
    jsonschema.validate(value, schema)


def test_the_script_module_offers_all_that_a_script_needs():
    for name in scripts.__all__:
        assert hasattr(scripts, name)
