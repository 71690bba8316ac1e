"""The stand-in's streams beside recorded ones: the same events in the same order, with the same fields."""

from __future__ import annotations

import json
import os
import random
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from claudescope.testing.message import Message
from claudescope.testing.script import (
    Block,
    Pace,
    Reply,
    Usage,
    compaction,
    redacted_thinking,
    server_tool_use,
    text,
    thinking,
    tool_use,
    unfinished,
    unknown,
)

FOLDER = Path(__file__).parents[3] / "shared" / "cassettes" / "anthropic-sdk-python" / "tests"
FILES = [
    "lib/streaming/fixtures/basic_response.txt",
    "lib/streaming/fixtures/compaction_response.txt",
    "lib/streaming/fixtures/incomplete_partial_json_response.txt",
    "lib/streaming/fixtures/refusal_response.txt",
    "lib/streaming/fixtures/tool_use_response.txt",
    "fixtures/fable-fallback/stream-a-refusal.sse",
    "fixtures/fable-fallback/stream-a-toolrefusal.sse",
]

Recorded = list[tuple[str, dict[str, Any]]]


@pytest.fixture(params=FILES)
def recorded(request) -> Recorded:
    if not FOLDER.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{FOLDER} is missing")
        pytest.skip(f"{FOLDER} is missing")
    events = []
    for part in (FOLDER / request.param).read_text("utf-8").strip().split("\n\n"):
        name, data = part.split("\n", 1)
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def block(start: dict[str, Any], deltas: list[dict[str, Any]], stopped: bool) -> Block:
    """The block that the events of a recorded stream make."""

    def join(field: str) -> str:
        return "".join(delta.get(field) or "" for delta in deltas)

    made = {
        "text": lambda: text(join("text")),
        "thinking": lambda: thinking(join("thinking"), join("signature")),
        "redacted_thinking": lambda: redacted_thinking(start.get("data")),
        "tool_use": lambda: tool_use(start["name"], id=start["id"], raw=join("partial_json")),
        "server_tool_use": lambda: server_tool_use(start["name"], id=start["id"], raw=join("partial_json")),
        "compaction": lambda: compaction(join("content")),
    }.get(start["type"], lambda: unknown(**start))()
    return made if stopped else unfinished(made)


def reply(events: Recorded) -> Reply:
    starts = [data for name, data in events if name == "content_block_start"]
    stops = {data["index"] for name, data in events if name == "content_block_stop"}
    deltas = [data for name, data in events if name == "content_block_delta"]
    blocks = [
        block(
            start["content_block"],
            [data["delta"] for data in deltas if data["index"] == start["index"]],
            start["index"] in stops,
        )
        for start in starts
    ]
    end = next(data for name, data in events if name == "message_delta")
    output = end["usage"]["output_tokens"]
    return Reply(blocks, end["delta"]["stop_reason"], usage=Usage(1, output), pace=Pace(chunk=1_000_000))


def order(events: Recorded) -> list[tuple[str, str]]:
    """Event and block or delta types in order, without repeats, pings and deltas that hold nothing."""
    kinds = [
        (name, data.get("content_block", {}).get("type") or data.get("delta", {}).get("type", ""))
        for name, data in events
        if name != "ping" and any(value for key, value in data.get("delta", {"": 1}).items() if key != "type")
    ]
    return [kind for kind, _ in groupby(kinds)]


def test_events_come_in_the_recorded_order(recorded):
    made = Message(reply(recorded), model="m", request_bytes=4, pace=Pace(), rng=random.Random(0))
    ours = [(event.name, event.data) for event in made.events()]
    assert order(ours) == order(recorded)
    kinds = ("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")
    for kind in kinds:
        ours_first = next((data for name, data in ours if name == kind), {})
        theirs_first = next((data for name, data in recorded if name == kind), {})
        assert ours_first.keys() == theirs_first.keys()
    usage = next(data["message"]["usage"] for name, data in recorded if name == "message_start")
    ours_usage = ours[0][1]["message"]["usage"]
    assert usage.keys() <= ours_usage.keys()
