from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollups_kit import FILTERS, HOUR, NOW, STEPS, Bench, counts, reason, step

from claudescope.live.filters import StepFilter
from claudescope.live.records import StepRecord
from claudescope.live.rollups import board as board_module
from claudescope.live.rollups import persist
from claudescope.live.rollups.board import RANGES
from claudescope.live.store import series as series_module

EVERYTHING = StepFilter()
MINUTE = 60_000


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, NOW)
    yield made
    made.close()


def _facets(steps: list[StepRecord], filter: StepFilter) -> dict[str, dict[str, int]]:
    """By the definition: each field under the filter without that field."""
    fields: dict[str, Any] = {
        "service": lambda one: one["service"],
        "model": lambda one: one["model"],
        "kind": lambda one: one["kind"],
        "tool": lambda one: one["tool"],
        "check": lambda one: one["reasons"][0]["check"] if one["reasons"] else None,
        "index": lambda one: str(min(one["step_index"], 16)),
        "valid": lambda one: {True: "true", False: "false", None: "unknown"}[one["is_valid"]],
    }
    found = {}
    for field, value in fields.items():
        wider = replace(filter, **{field: frozenset()})
        tally = Counter(value(one) for one in steps if wider.matches(one))
        found[field] = {value: count for value, count in tally.items() if value}
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 50 * HOUR)), min_size=1, max_size=40), FILTERS, st.integers(0, 40))
def test_answers_agree_with_the_filter_over_the_steps(
    given: list[tuple[StepRecord, int]], filter: StepFilter, flushed: int
) -> None:
    async def check(folder: Path) -> None:
        bench = Bench(folder, NOW)
        steps = [{**one, "ts_ms": NOW - age} for one, age in given]
        bench.commit(steps[:flushed])
        await bench.rollups.flush()
        bench.commit(steps[flushed:])
        for _ in range(2):  # the second time from what is kept
            cells = await bench.cells(filter, NOW - 60 * HOUR, NOW + 1, HOUR)
            assert {(cell["ts_ms"], cell["step_index"]): cell["count"] for cell in cells} == counts(steps, filter, HOUR)
        answer = await bench.rollups.distribution(filter, NOW - 60 * HOUR, NOW + 1)
        matched = [one for one in steps if filter.matches(one)]
        verdicts = Counter(one["is_valid"] for one in matched)
        total = answer["total"]
        assert (total["valid"], total["invalid"], total["unknown"]) == (verdicts[True], verdicts[False], verdicts[None])
        known = [one["confidence"] for one in matched if one["confidence"] is not None]
        assert total["confidence"]["count"] == len(known)
        if known:
            assert total["confidence"]["mean"] == pytest.approx(sum(known) / len(known), abs=6e-5)
        assert (answer["exact"], answer["partial"]) == (True, False)
        facets = await bench.rollups.facets(filter, NOW - 60 * HOUR, NOW + 1)
        for field, expected in _facets(steps, filter).items():
            assert {item["value"]: item["count"] for item in facets[field]} == expected, field
        bench.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_facets_of_labels(bench: Bench) -> None:
    bench.commit(
        [step(labels={"tier": "gold", "x": "1"}), step(labels={"tier": "free"}), step(labels={"tier": "free"})]
    )
    gold = StepFilter(labels=frozenset({("tier", "gold")}))
    found = await bench.rollups.facets(gold, NOW, NOW + 1)
    assert found["labels"] == {
        "tier": [{"value": "free", "count": 2}, {"value": "gold", "count": 1}],  # without its own condition
        "x": [{"value": "1", "count": 1}],
    }
    everything = await bench.rollups.facets(EVERYTHING, NOW, NOW + 1)
    assert everything["labels"] == found["labels"]
    assert everything["service"] == [{"value": "app", "count": 3}]
    bench.commit([step(kind=f"k{number:02}") for number in range(60)])
    assert len((await bench.rollups.facets(EVERYTHING, NOW, NOW + 1))["kind"]) == 50


async def test_a_step_is_there_at_once_and_stays(bench: Bench) -> None:
    bench.commit([step(ts_ms=NOW - 1)])
    for _ in range(3):
        assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - 5 * MINUTE, NOW + 10_000)] == [1]
        assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - 24 * HOUR, NOW, 300_000)] == [1]
        await bench.rollups.flush()
    bench.commit([step(ts_ms=NOW - 1)])
    await bench.rollups.flush()
    bench.commit([step(ts_ms=NOW - 2)])
    assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - 5 * MINUTE, NOW + 10_000)] == [3]
    bench.start()  # as after a kill: what was not flushed is counted from the store
    assert bench.rollups.totals()["steps"] == 2
    await bench.rollups._count_stored()
    assert bench.rollups.totals()["steps"] == 3
    assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - 5 * MINUTE, NOW + 10_000)] == [3]


async def test_what_is_counted_is_written_by_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_module, "_RETRY_S", 0.01)
    monkeypatch.setattr(board_module, "_FLUSH_S", 0.02)
    running = asyncio.create_task(bench.rollups.run())
    bench.commit([step(ts_ms=NOW - 1)])
    deadline = time.monotonic() + 20
    while persist.load(bench.db).watermark != 1:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_full_disk_loses_no_count(bench: Bench) -> None:
    bench.commit([step(ts_ms=NOW - 1, is_valid=True)])
    bench.broken = True
    assert not await bench.rollups.flush()
    bench.commit([step(ts_ms=NOW - 1, is_valid=False)])
    assert not await bench.rollups.flush()
    assert bench.rollups.totals() == {"steps": 2, "valid": 1, "invalid": 1, "unknown": 0}
    assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - MINUTE, NOW)] == [2]
    bench.broken = False
    assert await bench.rollups.flush()
    assert persist.load(bench.db).verdicts == (0, 1, 1)
    assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW - MINUTE, NOW)] == [2]


async def test_steps_of_a_store_without_rollups_are_counted_while_others_come(bench: Bench) -> None:
    bench.store([step(ts_ms=NOW - number * MINUTE, is_valid=True) for number in range(2000)])
    rollups = bench.start()
    counting = asyncio.create_task(rollups._count_stored())
    bench.commit([step(ts_ms=NOW - MINUTE)])
    assert await rollups.flush()  # nothing yet: the tables count without gaps
    assert persist.load(bench.db).watermark == 0
    await counting
    assert persist.load(bench.db).watermark == 2000
    assert rollups.totals() == {"steps": 2001, "valid": 2000, "invalid": 0, "unknown": 1}
    assert await rollups.flush()
    assert persist.load(bench.db)[:2] == (2001, (1, 2000, 0))
    cells = await bench.cells(EVERYTHING, NOW - 40 * HOUR, NOW + 1)
    assert sum(cell["count"] for cell in cells) == 2001


async def test_the_cells_that_changed(bench: Bench) -> None:
    async def changed() -> list[Any]:
        return [
            (cell["ts_ms"], cell["count"]) for cell in orjson.loads(orjson.dumps(await bench.rollups.changed_cells()))
        ]

    bench.commit([step(), step(ts_ms=NOW - 30 * MINUTE), step(ts_ms=NOW - 2 * HOUR), step(ts_ms=NOW + 20 * HOUR)])
    assert await changed() == [(NOW - 30 * MINUTE, 1), (NOW, 1)]
    assert await changed() == []
    await bench.rollups.flush()
    assert await changed() == []
    bench.commit([step()])
    await bench.rollups.flush()
    assert await changed() == [(NOW, 2)]
    bench.commit([step(ts_ms=NOW - number * 10_000) for number in range(100)])  # a flood of late ones
    seen = [cell for _ in range(2) for cell in await changed()]
    assert len(seen) == len(set(seen)) == 100


@pytest.mark.parametrize("name", RANGES)
async def test_the_pages_ranges(bench: Bench, name: str) -> None:
    length, bucket_ms = RANGES[name]
    bench.commit([step(ts_ms=NOW - 1), step(ts_ms=NOW - length + bucket_ms)])
    for wanted in (bucket_ms, None):
        answer = await bench.rollups.heat(EVERYTHING, NOW - length, NOW, wanted)
        assert answer["bucket_ms"] == bucket_ms
        assert (answer["from_ms"], answer["to_ms"]) == (NOW - length, NOW)
        assert len(orjson.loads(orjson.dumps(answer["items"]))) == 2
        assert (answer["exact"], answer["partial"], answer["quantile_error"], answer["next"]) == (
            True,
            False,
            0.05,
            None,
        )


async def test_an_answer_has_no_more_columns_than_a_page_can_show(bench: Bench) -> None:
    answer = await bench.rollups.heat(EVERYTHING, NOW - 30 * 24 * HOUR, NOW, 10_000)
    assert (answer["to_ms"] - answer["from_ms"]) / answer["bucket_ms"] <= 2000


async def test_what_cannot_be_told_apart_is_said(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_module, "MAX_COUNTED", 3)
    bench.commit([step(labels={"user": str(number)}) for number in range(6)])

    async def asked(**fields: Any) -> tuple[int, bool]:
        answer = await bench.rollups.distribution(StepFilter(**fields), NOW, NOW + 1)
        return answer["total"]["count"], answer["partial"]

    assert await asked() == (6, False)
    assert await asked(labels=frozenset({("user", "1")})) == (1, True)
    assert await asked(labels=frozenset({("user", "5")})) == (0, True)
    assert await asked(service=frozenset({"app"})) == (6, False)
    assert await asked(service=frozenset({"other"})) == (0, False)
    assert await asked(service=frozenset({"other"}), labels=frozenset({("user", "1")})) == (0, False)
    assert await asked(tool=frozenset({"search"})) == (0, True)  # the tool of the others may have gone, too
    assert (await bench.rollups.distribution(StepFilter(confidence_min=0.72), NOW, NOW + 1))["exact"] is False
    facets = await bench.rollups.facets(EVERYTHING, NOW, NOW + 1)
    assert set(facets["labels"]) == {"user"}


async def test_kept_columns_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from claudescope.live.rollups import cache

    monkeypatch.setattr(cache, "_MAX_BYTES", 20_000)
    monkeypatch.setattr(cache, "_MAX_TOUCHED", 50)
    monkeypatch.setattr(cache, "_MAX_COLUMNS", 40)
    for number in range(30):
        bench.commit([step(ts_ms=NOW - number * 10_000, reasons=[reason("c")])])
        await bench.rollups.flush()
        some = StepFilter(index=frozenset({0, number % 5 + 1}))
        cells = await bench.cells(some, NOW - 20 * MINUTE, NOW + 1, 10_000)
        assert sum(cell["count"] for cell in cells) == number + 1
    kept = bench.rollups._columns
    assert kept._size == sum(
        len(column) + cache._EACH for columns in kept._kept.values() for _, column in columns.values()
    )
    assert kept._size <= 20_000
    assert all(len(columns) <= 40 for columns in kept._kept.values())
