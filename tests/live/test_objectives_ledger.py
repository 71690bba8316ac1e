"""The ledger counts each event once, in every window, by every measure, whatever happens to the server."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_kit import Sender
from objectives_kit import Store, objective

from claudescope import semconv
from claudescope.live.objectives.judge import Judge, UncountableError
from claudescope.live.objectives.ledger import MAX_GROUPS, OTHER, expire
from claudescope.live.objectives.windows import find_objective, history, last_event, period_start
from claudescope.slo.objective import BadAndTotal, Canary, LoadBound, Selection
from claudescope.slo.window import CalendarPeriod, Window

HOUR = 3_600_000
DAY = 24 * HOUR
MODEL = "gen_ai_request_model"


def minute() -> int:
    """The beginning of this minute, in ms."""
    return int(time.time()) // 60 * 60_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.close()


def step(sender: Sender, at: int, valid: bool | None = True, latency_ms: int = 100, **more: Any) -> None:
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    if valid is not None:
        attributes[semconv.STEP_VALID] = valid
    index = attributes.pop("index", 0)
    sender.step(index, attributes, end_ms=at, latency_ms=latency_ms)


def call(sender: Sender, at: int, **more: Any) -> None:
    attributes = {key.replace("__", "."): value for key, value in more.items()}
    sender.span({semconv.OPERATION_NAME: "chat", **attributes}, end_ms=at)


def whole(store: Store, one: Any, now: int) -> dict[tuple[str, ...], tuple[int, int]]:
    return store.counts(one, now - HOUR, now + HOUR, now)


# -------------------------------------------------------------------------------------------------- what is judged


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, (1, 3)),  # valid, invalid, valid; unknown is not counted
        ({"unknown": "bad"}, (2, 4)),
        ({"unknown": "good"}, (1, 4)),
        ({"where": Selection(kind=("text",))}, (1, 1)),
        ({"where": Selection(service=("other",))}, None),
        ({"where": Selection(index=("16+",))}, (0, 1)),
        ({"where": Selection(labels=(("team.name", ("a", "b")),))}, (0, 1)),
        ({"where": Selection(tool=("search",), model=("m",))}, (0, 1)),
    ],
)
def test_validity(store: Store, more: dict[str, Any], expected: tuple[int, int] | None) -> None:
    now = minute()
    one = objective(**more)
    store.install(one)
    sender = Sender("app")
    step(sender, now, True, gen_ai__request__model="m", gen_ai__tool__name="search")
    step(sender, now, False, claudescope__step__kind="text")
    step(sender, now, True, index=40, claudescope__label__team__name="a")
    step(sender, now, None)
    store.send(sender)
    assert whole(store, one, now) == ({(): expected} if expected else {})


def test_a_confidence_at_the_bound_is_good(store: Store) -> None:
    now = minute()
    one = objective("step_confidence", bound=0.7)
    store.install(one)
    sender = Sender("app")
    for confidence in (0.7, 0.6999, 0.71, 0.0):
        step(sender, now, None, claudescope__step__confidence=confidence)
    step(sender, now)
    store.send(sender)
    assert whole(store, one, now) == {(): (2, 4)}


def test_a_latency_over_a_bound_that_is_no_edge_of_bands(store: Store) -> None:
    """The roll-ups know 1.2 s to 10 %; the ledger knows it to the microsecond."""
    now = minute()
    one = objective("step_latency", bound=1.2)
    store.install(one)
    sender = Sender("app")
    for latency, source in (
        (1200, "measured"),
        (1201, "apportioned"),
        (1100, "measured"),
        (5000, "consumer"),
        (0, None),
    ):
        more = {semconv.STEP_LATENCY_SOURCE.replace(".", "__"): source} if source else {}
        step(sender, now, latency_ms=latency, **more)
    store.send(sender)
    assert whole(store, one, now) == {(): (1, 3)}


def test_calls(store: Store) -> None:
    now = minute()
    errors = objective("errors", name="errors", group_by=(MODEL, "claudescope_label_team"))
    first = objective("time_to_first_chunk", name="first", bound=2.0)
    used = objective("saturation", name="used", bound=0.8)
    store.install(errors, first, used)
    sender = Sender("app")
    call(sender, now, gen_ai__request__model="m", claudescope__label__team="a", error__type="overloaded_error")
    call(sender, now, gen_ai__request__model="m", claudescope__label__team="a", error__type="cancelled")
    call(sender, now, gen_ai__response__time_to_first_chunk=2.001)
    call(sender, now, gen_ai__response__time_to_first_chunk=2.0)
    limits = {"claudescope.ratelimit.tokens.limit": 100, "claudescope.ratelimit.requests.limit": 10}
    call(sender, now, **limits, **{"claudescope.ratelimit.tokens.remaining": 19})  # 81 % of the tokens
    both = {"claudescope.ratelimit.tokens.remaining": 20, "claudescope.ratelimit.requests.remaining": 9}
    call(sender, now, **limits, **both)
    step(sender, now)
    store.send(sender)
    assert whole(store, errors, now) == {("a", "m"): (1, 2), ("", ""): (0, 4)}  # by label name
    assert whole(store, first, now) == {(): (1, 2)}
    assert whole(store, used, now) == {(): (1, 2)}


def test_tools(store: Store) -> None:
    now = minute()
    one = objective("tool_success", where=Selection(tool=("search", "pay")))
    store.install(one)
    sender = Sender("app")
    for tool, kind, valid in (
        ("search", "tool_run", False),
        ("pay", "tool_run", True),
        ("pay", "tool_use", False),
        ("other", "tool_run", False),
        ("pay", "tool_run", None),
    ):
        step(sender, now, valid, gen_ai__tool__name=tool, claudescope__step__kind=kind)
    store.send(sender)
    assert whole(store, one, now) == {(): (1, 2)}


def test_a_bound_that_depends_on_load(store: Store) -> None:
    """Above .2 events a second in the five minutes before, 500 ms are allowed: after 61 events in 300 s."""
    now = minute()
    one = objective("step_latency", bound=0.2, loads=(LoadBound(0.2, 0.5),))
    store.install(one)
    for number in range(70):
        sender = Sender("app")
        step(sender, now - 290_000 + number * 4000, latency_ms=300, claudescope__step__latency__source="measured")
        store.send(sender)
    # Event n ends 4 n seconds after the first; before its bucket there are those of the buckets before. The 62nd and
    # later ones are in buckets with at least 61 before them: event 61 is at 244 s, in the bucket from 240 s, which has
    # the 60 of 0..236 s before it; the bucket from 250 s has 63, more than 60 = .2 * 300.
    bad, total = whole(store, one, now)[()]
    assert (bad, total) == (63, 70)
    again = objective("step_latency", name="later", bound=0.2, loads=(LoadBound(0.2, 0.5),))
    store.install(one, again)
    assert store.work(now) == 1
    assert whole(store, again, now) == {(): (63, 70)}


@pytest.mark.parametrize(
    ("measure", "more", "why"),
    [
        ("errors", {"where": Selection(kind=("text",))}, "calls"),
        ("errors", {"group_by": ("claudescope_step_index",)}, "claudescope_step_index"),
        ("errors", {"group_by": ("gen_ai_tool_name",)}, "gen_ai_tool_name"),
        ("step_validity", {"group_by": ("pod",)}, "pod"),
        ("step_validity", {"canary": Canary("service_version", "2", "1")}, "service_version"),
    ],
)
def test_what_the_server_cannot_count_is_said(measure: str, more: dict[str, Any], why: str) -> None:
    with pytest.raises(UncountableError, match=why):
        Judge(objective(measure, **more))


def test_promql_needs_a_prometheus() -> None:
    import dataclasses

    with pytest.raises(UncountableError, match="PromQL"):
        Judge(dataclasses.replace(objective(), source=BadAndTotal("a", "b")))


# ---------------------------------------------------------------------------------------------------------- windows


def test_every_window_is_exact_to_its_buckets(store: Store) -> None:
    """10 s in the last hour, 1 min in two days, 5 min before: windows that begin there hold what a list says."""
    now = minute()
    one = objective(group_by=("claudescope_step_index",))
    store.install(one)
    rng = random.Random(5)
    events = []
    for _ in range(600):
        back = int(rng.choice((3000, 40_000, 600_000, 5 * HOUR, 30 * HOUR, 6 * DAY, 29 * DAY)) * rng.random())
        events.append((now - back - 1, rng.random() < 0.3, rng.randrange(3)))
    for at in range(0, len(events), 50):
        sender = Sender("app")
        for end, bad, index in events[at : at + 50]:
            step(sender, end, not bad, index=index)
        store.send(sender)
    for length, bucket in ((300_000, 10_000), (HOUR, 10_000), (6 * HOUR, 60_000), (DAY, 60_000), (3 * DAY, 300_000)):
        start = (now - length) // bucket * bucket
        expected: dict[tuple[str, ...], tuple[int, int]] = {}
        for end, bad, index in events:
            if start <= end < now:
                had = expected.get((str(index),), (0, 0))
                expected[(str(index),)] = had[0] + bad, had[1] + 1
        assert store.counts(one, start, now, now) == expected, length
    known = find_objective(store.db, one.id)
    assert known is not None
    assert known.waiting == 0
    rows = history(store.db, known.number, 300_000, now - 40 * DAY, now + HOUR)
    assert (sum(row[1] for row in rows), sum(row[2] for row in rows)) == (sum(bad for _, bad, _ in events), 600)
    latest = max(end for end, _, index in events if index == 0)
    number = next(group.number for group in known.groups if group.labels == {"claudescope_step_index": "0"})
    assert last_event(store.db, known.number, now)[number] == latest // 10_000 * 10_000


def test_events_of_a_wrong_clock_are_in_no_window(store: Store) -> None:
    now = minute()
    one = objective()
    store.install(one)
    sender = Sender("app")
    step(sender, now + 3 * DAY, False)
    step(sender, now - 200 * DAY, False)
    step(sender, now, False)
    store.send(sender)
    assert store.counts(one, now - 210 * DAY, now + 4 * DAY, now) == {(): (1, 1)}


def test_old_buckets_go_and_the_period_stays(store: Store) -> None:
    now = minute()
    one = objective()
    store.install(one)
    sender = Sender("app")
    step(sender, now - 50 * DAY, False)
    step(sender, now - 2 * HOUR, True)
    store.send(sender)
    store.do(lambda db: expire(db, now))
    tiers = [row[0] for row in store.db.execute("SELECT DISTINCT tier FROM objective_counts ORDER BY tier")]
    assert tiers == [60, 300, 3600, 21_600]
    assert store.counts(one, now - 92 * DAY, now, now) == {(): (1, 2)}
    store.do(lambda db: expire(db, now + 200 * DAY))
    assert not store.db.execute("SELECT 1 FROM objective_counts").fetchone()


def test_periods() -> None:
    # 1_796_040_000 is Monday, 2026-11-30T12:00:00Z
    now = 1_796_040_000_000
    assert period_start(Window(30 * 86_400), now) == now - 30 * DAY
    day = 1_796_040_000 // 86_400 * 86_400_000
    assert period_start(CalendarPeriod("week"), now) == day
    assert period_start(CalendarPeriod("month"), now) == day - 29 * DAY
    assert period_start(CalendarPeriod("quarter"), now) == day - 29 * DAY - 31 * DAY


def test_label_sets_are_bounded(store: Store) -> None:
    now = minute()
    one = objective(group_by=("claudescope_label_user",))
    store.install(one)
    for at in range(0, MAX_GROUPS + 40, 60):
        sender = Sender("app")
        for number in range(at, min(at + 60, MAX_GROUPS + 40)):
            step(sender, now, False, claudescope__label__user=f"u{number}")
        store.send(sender)
    counts = whole(store, one, now)
    assert len(counts) == MAX_GROUPS + 1
    assert counts[(OTHER,)] == (40, 40)


# ------------------------------------------------------------------------------------------ what happens to a server


def test_what_was_stored_before_is_counted_once(tmp_path: Path) -> None:
    now = minute()
    store = Store(tmp_path)
    for _ in range(6):
        sender = Sender("app")
        for number in range(1000):
            step(sender, now - 60_000, number % 10 > 0)
        store.send(sender)
    one = objective()
    store.install(one)
    known = find_objective(store.db, one.id)
    assert known is not None
    assert (known.waiting, known.since_ms) == (6000, now - 60_000)
    sender = Sender("app")
    step(sender, now, False)
    store.send(sender)  # while the others are still to be counted
    assert store.work(now) == 2  # 5000 rows a piece
    assert whole(store, one, now) == {(): (601, 6001)}
    store.close()

    store = Store(tmp_path)  # no objectives now, as for an import
    sender = Sender("app")
    step(sender, now, False)
    store.send(sender)
    store.install(one)
    assert store.work(now) == 1
    assert whole(store, one, now) == {(): (602, 6002)}
    store.install(one)
    assert store.work(now) == 0
    store.install(objective(unknown="bad"))  # another way to count: all anew
    assert find_objective(store.db, one.id).waiting == 6002  # type: ignore[union-attr]
    assert store.work(now) == 2
    assert whole(store, one, now) == {(): (602, 6002)}
    store.close()


def test_calls_of_before_are_counted(store: Store) -> None:
    now = minute()
    sender = Sender("app")
    call(sender, now, claudescope__label__team="a", error__type="x")
    call(sender, now, claudescope__label__team="b")
    store.send(sender)
    one = objective("errors", group_by=("claudescope_label_team",))
    store.install(one)
    assert store.work(now) == 1
    assert whole(store, one, now) == {("a",): (1, 1), ("b",): (0, 1)}


def test_a_rollback_leaves_nothing(store: Store) -> None:
    now = minute()
    one = objective(group_by=(MODEL,))
    two = objective(name="two")
    store.install(one)
    store.db.execute("BEGIN")
    store.ledger.install(store.db, [(one, Judge(one)), (two, Judge(two))])
    store.db.execute("ROLLBACK")
    store.tables.forget()
    sender = Sender("app")
    step(sender, now, False, gen_ai__request__model="m")
    store.send(sender)
    assert whole(store, one, now) == {("m",): (1, 1)}
    assert find_objective(store.db, two.id) is None


def test_a_span_that_comes_again_counts_once(store: Store) -> None:
    now = minute()
    one = objective()
    store.install(one)
    sender = Sender("app")
    step(sender, now, False)
    store.send(sender)
    store.send(sender, sender)
    assert whole(store, one, now) == {(): (1, 1)}


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    events=st.lists(
        st.tuples(st.integers(0, 7200), st.sampled_from([True, False, None]), st.sampled_from(["m", "n"])), max_size=40
    ),
    cut=st.integers(0, 40),
)
def test_counted_at_once_or_afterwards_is_the_same(
    events: list[tuple[int, bool | None, str]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    now = minute()
    store = Store(tmp_path_factory.mktemp("s"))
    one, two = objective(group_by=(MODEL,)), objective(name="two", group_by=(MODEL,))
    store.install(one)
    for place, (back, valid, model) in enumerate(events):
        if place == cut:
            store.install(one, two)
        sender = Sender("app")
        step(sender, now - back * 1000, valid, gen_ai__request__model=model)
        store.send(sender)
    store.install(one, two)
    store.work(now)
    expected: dict[tuple[str, ...], tuple[int, int]] = {}
    for _, valid, model in events:
        if valid is not None:
            had = expected.get((model,), (0, 0))
            expected[(model,)] = had[0] + (not valid), had[1] + 1
    for each in (one, two):
        assert store.counts(each, now - 3 * HOUR, now + HOUR, now) == expected
    store.close()
