from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from live_kit import Client, Sender, Stream, running

from claudescope.live.stream import MAX_CLIENTS, Hub, TooManyClientsError


def frames(text: bytes) -> list[tuple[str, str]]:
    return re.findall(r"event: (\w+)\n(?:id: \S+\n)?data: (.*)\n\n", text.decode())


async def test_everybody_gets_every_event_in_order() -> None:
    hub = Hub("e", ring=8)
    one, two = hub.subscribe(), hub.subscribe()
    await anext(one)
    await anext(two)
    assert hub.clients == 2
    for number in range(3):
        hub.publish("step", {"n": number})
    expected = [("step", '{"n":0}'), ("step", '{"n":1}'), ("step", '{"n":2}')]
    assert frames(await anext(one)) == frames(await anext(two)) == expected
    await one.aclose()  # type: ignore[attr-defined]
    assert hub.clients == 1
    hub.close()
    with pytest.raises(StopAsyncIteration):
        await anext(two)


async def test_a_slow_client_gets_the_count_of_what_it_missed() -> None:
    hub = Hub("e", ring=4)
    stream = hub.subscribe()
    await anext(stream)
    for number in range(10):
        hub.publish("step", number)
    # ten events, a ring of four: six are gone
    assert frames(await anext(stream)) == [("lag", '{"count":6}')]
    assert frames(await anext(stream)) == [("step", str(number)) for number in range(6, 10)]
    assert hub.lagged == 6
    await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("last", "first"),
    [
        ("e-1", [("step", "2"), ("step", "3")]),
        ("e-3", None),
        ("e-9", [("lag", '{"count":null}')]),
        ("other-1", [("lag", '{"count":null}')]),
        ("nonsense", [("lag", '{"count":null}')]),
    ],
)
async def test_resume(last: str, first: list[tuple[str, str]] | None) -> None:
    hub = Hub("e", ring=8)
    for number in range(4):
        hub.publish("step", number)
    stream = hub.subscribe(last)
    got = frames(await anext(stream))
    if first is None:
        hub.publish("step", "new")
        assert frames(await anext(stream)) == [("step", '"new"')]
    else:
        assert (got or frames(await anext(stream))) == first
    await stream.aclose()  # type: ignore[attr-defined]


async def test_resume_from_before_the_ring_counts_the_lag() -> None:
    hub = Hub("e", ring=4)
    for number in range(10):
        hub.publish("step", number)
    stream = hub.subscribe("e-2")
    await anext(stream)
    assert frames(await anext(stream)) == [("lag", '{"count":3}')]  # 3, 4 and 5 are gone
    await stream.aclose()  # type: ignore[attr-defined]


async def test_steps_that_come_too_fast_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    hub = Hub("e")
    stream = hub.subscribe()
    await anext(stream)
    for number in range(2500):
        hub.publish_step(number)
    hub.tell_left_out()
    now += 0.25  # a quarter of a second has room for 500 more
    for number in range(600):
        hub.publish_step(number)
    hub.tell_left_out()
    hub.tell_left_out()
    found: list[tuple[str, str]] = []
    while len(found) < 2502:
        found += frames(await anext(stream))
    steps = [data for event, data in found if event == "step"]
    assert steps == [str(number) for number in (*range(2000), *range(500))]
    assert [pair for pair in found if pair[0] != "step"] == [("lag", '{"count":500}'), ("lag", '{"count":100}')]
    assert hub.lagged == 600
    await stream.aclose()


async def test_clients_are_limited() -> None:
    hub = Hub("e")
    streams = [hub.subscribe() for _ in range(MAX_CLIENTS)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    with pytest.raises(TooManyClientsError):
        hub.check_room()
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]
    hub.check_room()


def test_a_step_is_streamed_as_the_api_gives_it(live: Client) -> None:
    stream = Stream(live.url)
    sender = Sender()
    sender.step(0)
    live.send(sender)
    _, step, number = stream.next("step")
    assert [step] == live.items("/api/steps")
    _, run, _ = stream.next("run")
    (stored,) = live.items("/api/runs")
    assert run == stored
    _, stats, _ = stream.next("stats")
    while not stats["steps"]:
        _, stats, _ = stream.next("stats")
    assert (stats["steps"], stats["unknown"], stats["store_error"]) == (1, 1, None)
    stream.close()
    for index in (1, 2):
        sender = Sender()
        sender.step(index)
        live.send(sender)
    again = Stream(live.url, number)
    assert [again.next("step")[1]["step_index"] for _ in range(2)] == [1, 2]
    again.close()


def test_a_restart_says_that_events_may_be_missing(tmp_path: Path) -> None:
    with running(tmp_path / "data") as live:
        stream = Stream(live.url)
        sender = Sender()
        sender.step(0)
        live.send(sender)
        number = stream.next("step")[2]
        stream.close()
    with running(tmp_path / "data") as live:
        stream = Stream(live.url, number)
        assert stream.next("lag", "step")[:2] == ("lag", {"count": None})
        stream.close()
