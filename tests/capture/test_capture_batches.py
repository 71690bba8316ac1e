"""Results of a batch: read by lines as they come, without a time, and never parsed on the app's thread."""

from __future__ import annotations

import json
from typing import Any

import pytest
from call_path_functions import ASK
from capture_kit import attribute, drive, new_client
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope import semconv
from claudescope.capture.batch import _SyncChunks
from claudescope.steps.items import BatchLines
from claudescope.testing.script import error, say, thinking, tool_use


def results(standin: Any, *replies: Any, asynchronous: bool = False) -> None:
    standin.use(*replies)

    async def read() -> None:
        client = new_client(standin.url, asynchronous=asynchronous)
        batches = client.messages.batches
        requests = [{"custom_id": f"id{n}", "params": ASK} for n in range(len(replies))]
        if asynchronous:
            made = await batches.create(requests=requests)
            await batches.retrieve(made.id)
            async for _ in await batches.results(made.id):
                pass
            await client.close()
        else:
            made = batches.create(requests=requests)
            batches.retrieve(made.id)
            for _ in batches.results(made.id):
                pass
            client.close()

    drive(asynchronous, read)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_results_are_counted_but_have_no_duration(standin, scope, asynchronous):
    results(
        standin,
        say(thinking("hm"), "a long answer " * 100),
        error(500),
        say(tool_use("add", {"a": "é"})),
        say(stop_reason="refusal"),
        asynchronous=asynchronous,
    )
    steps = scope.steps
    found = sorted((attribute(s, semconv.LABEL_PREFIX + "custom_id"), attribute(s, semconv.STEP_KIND)) for s in steps)
    assert found == [("id0", "text"), ("id0", "thinking"), ("id2", "tool_use"), ("id3", "text")]
    assert {attribute(step, semconv.STEP_LATENCY_SOURCE) for step in steps} == {None}
    assert {step.end_time - step.start_time for step in steps} == {0}
    assert scope.ours.metric(semconv.STEP_DURATION.name) == []
    counted = scope.ours.metric(semconv.STEPS.name)
    assert sum(point.value for point in counted) == 4
    assert [p.value for p in counted if p.attributes.get(semconv.CHECK) == "stop_reason"] == [1]


class _Kept:
    """What a tap needs of a call."""

    call: Any = "call"

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.ended = 0

    def put(self, item: BatchLines) -> None:
        self.bodies.append(item.body)

    def end(self) -> None:
        self.ended += 1


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=90), max_size=3), max_size=6),
    st.integers(1, 70),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_whole_lines_whatever_the_size_of_the_chunks(lines, size, last_line_ends):
    body = b"\n".join(json.dumps(line).encode() for line in lines) + b"\n" * (last_line_ends and bool(lines))
    kept = _Kept()
    chunks = _SyncChunks(iter([body[at : at + size] for at in range(0, len(body), size)]), kept)  # type: ignore[arg-type]
    assert b"".join(chunks) == body
    assert b"".join(kept.bodies) == body
    assert all(sent.endswith(b"\n") for sent in kept.bodies[:-1])
    assert [json.loads(line) for sent in kept.bodies for line in sent.splitlines()] == lines
    assert kept.ended >= 1  # a call counts the first end only


def test_a_line_that_was_cut_off_is_not_handed_on():
    def broken() -> Any:
        yield b'{"custom_id": 1}\n{"cus'
        raise ConnectionError

    kept = _Kept()
    with pytest.raises(ConnectionError):
        list(_SyncChunks(broken(), kept))  # type: ignore[arg-type]
    assert kept.bodies == [b'{"custom_id": 1}\n']
