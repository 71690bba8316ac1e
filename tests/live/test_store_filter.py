"""The filter in SQL says the same as ``StepFilter.matches``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_kit import Sender
from store_kit import Store, open_store

from claudescope import semconv
from claudescope.live.filters import StepFilter
from claudescope.live.records import StepRecord
from claudescope.live.store import run_list, step_list
from claudescope.live.store.run_list import RunQuery, find_runs
from claudescope.live.store.select import Cursor, label_of, read_cursor
from claudescope.live.store.step_list import StepQuery, find_steps

SERVICES = ("app", "it's", 'q"')
MODELS = ("claude-a", "claude-b", None)
TOOLS = ("search", "%", None)
KEYS = ("team", ",", ":", 'k"\\', "é\x00")
VALUES = ("a", ":", 'x","team":"b', "\\", "b")
CONFIDENCES = (None, 0.0, 0.5, 0.7, 1.0)
LATENCIES_MS = (0, 1, 250, 5000)


def _fill(store: Store, runs: int = 60) -> list[StepRecord]:
    dice = random.Random(7)
    steps: list[StepRecord] = []
    for run in range(runs):
        sender = Sender(dice.choice(SERVICES))
        for index in range(dice.choice((1, 4, 20))):
            attributes: dict[str, Any] = {
                semconv.CHAIN_ID: f"run-{run}",
                semconv.STEP_KIND: dice.choice(("thinking", "text", "tool_use")),
            }
            for key, value in (
                (semconv.REQUEST_MODEL, dice.choice(MODELS)),
                (semconv.TOOL_NAME, dice.choice(TOOLS)),
                (semconv.STEP_CONFIDENCE, dice.choice(CONFIDENCES)),
                (semconv.STEP_VALID, dice.choice((True, False, None))),
                (semconv.STEP_LATENCY_SOURCE, dice.choice(("measured", None))),
                (semconv.STEP_VALIDITY_REASON, dice.choice(("tool_name.unknown", "x.y z.w", None, None))),
            ):
                if value is not None:
                    attributes[key] = value
            for key in KEYS:
                if dice.random() < 0.3:
                    attributes[semconv.LABEL_PREFIX + key] = dice.choice(VALUES)
            sender.step(
                index,
                attributes,
                trace=bytes([run + 1] * 16),
                end_ms=10_000 + run,
                latency_ms=dice.choice(LATENCIES_MS),
            )
        steps += store.steps(sender)
    return steps


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[StepRecord]]]:
    with open_store(tmp_path_factory.mktemp("store")) as store:
        yield store, _fill(store)


def some(*choices: Any) -> st.SearchStrategy[frozenset[Any]]:
    return st.frozensets(st.sampled_from(choices), max_size=2)


number = st.none() | st.sampled_from((0.0, 0.5, 0.7, 0.70001, 1.0))
latency = st.none() | st.sampled_from((0, 1, 1000, 250_000, 250_001))
filters = st.builds(
    StepFilter,
    service=some(*SERVICES, "none"),
    model=some("claude-a", "claude-b"),
    kind=some("thinking", "text", "unknown"),
    tool=some("search", "%"),
    check=some("tool_name", "x", "z"),
    index=some(0, 1, 3, 15, 16),
    valid=some(True, False, None),
    confidence_min=number,
    confidence_max=number,
    confidence_known=st.none() | st.booleans(),
    latency_min_us=latency,
    latency_max_us=latency,
    labels=st.frozensets(st.tuples(st.sampled_from(KEYS), st.sampled_from((*VALUES, ""))), max_size=3),
)
narrow = st.builds(
    StepFilter,
    labels=st.frozensets(st.tuples(st.sampled_from(KEYS), st.sampled_from((*VALUES, ""))), max_size=4),
    valid=some(True, False, None),
    index=some(0, 3, 16),
)


@pytest.mark.parametrize("near", [5000, 3])
@given(where=filters | narrow, descending=st.booleans())
@settings(max_examples=150, deadline=None)
def test_sql_and_matches_agree(
    filled: tuple[Store, list[StepRecord]], near: int, where: StepFilter, descending: bool
) -> None:
    store, steps = filled
    with pytest.MonkeyPatch.context() as patch:  # with 3, the second way in which the store is asked is taken, too
        patch.setattr(step_list, "_NEAR", near)
        patch.setattr(run_list, "_NEAR", (near // 3, near))
        found = find_steps(store.reader, StepQuery(where, descending=descending, limit=1000))["items"]
        expected = [step for step in steps if where.matches(step)]
        expected.sort(key=lambda step: step["ts_ms"])
        assert found == (_reversed(expected) if descending else expected)
        runs = find_runs(store.reader, RunQuery(where, limit=1000, descending=descending))["items"]
        ids = list(dict.fromkeys(step["run_id"] for step in expected))
        assert sorted(run["run_id"] for run in runs) == sorted(ids)
        starts = [run["started_ms"] for run in runs]
        assert starts == sorted(starts, reverse=descending)


def _reversed(steps: list[StepRecord]) -> list[StepRecord]:
    """Newest first, and of those of one time the one that came last."""
    return steps[::-1]


def test_pages_of_rare_steps_are_whole(filled: tuple[Store, list[StepRecord]], monkeypatch: pytest.MonkeyPatch) -> None:
    store, steps = filled
    monkeypatch.setattr(step_list, "_NEAR", 7)
    where = StepFilter(valid=frozenset({False}), kind=frozenset({"text"}))
    expected = [step["span_id"] for step in reversed(steps) if where.matches(step)]
    assert len(expected) > 20
    seen: list[str] = []
    cursor = None
    while True:
        page = find_steps(store.reader, StepQuery(where, limit=3, cursor=cursor))
        seen += [step["span_id"] for step in page["items"]]
        if page["next"] is None:
            break
        cursor = read_cursor(page["next"])
    assert seen == expected


def test_times_and_ids_narrow_a_list(filled: tuple[Store, list[StepRecord]]) -> None:
    store, steps = filled
    run, trace = "run-7", (bytes([8] * 16))
    for query, keep in (
        (StepQuery(run=run, limit=1000), lambda step: step["run_id"] == run),
        (StepQuery(trace=trace, limit=1000), lambda step: step["trace_id"] == trace.hex()),
        (StepQuery(from_ms=10_003, to_ms=10_005, limit=1000), lambda step: 10_003 <= step["ts_ms"] < 10_005),
        (StepQuery(run="no such run"), lambda step: False),
        (StepQuery(trace=bytes(16)), lambda step: False),
    ):
        assert find_steps(store.reader, query)["items"] == [step for step in reversed(steps) if keep(step)]


@given(st.integers(0, 2**40) | st.floats(-1, 1e6, allow_nan=False), st.integers(1, 2**40))
def test_a_cursor_comes_back_as_it_was_written(key: float, row: int) -> None:
    assert read_cursor(str(Cursor(key, row))) == (key, row)


@pytest.mark.parametrize("text", ["", "1", ".1", "1.", "x.1", "nan.1", "inf.1", "1.-1", "1.2.3.4", "1e999.1", " 1.1"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the `next` of the page before"):
        read_cursor(text)


def test_label_of() -> None:
    assert [label_of(*pair) for pair in (("", "a"), ('{"a":"b"}', "a"), ('{"a":"b"}', "c"))] == ["", "b", ""]
