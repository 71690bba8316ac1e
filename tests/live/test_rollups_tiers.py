from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollups_kit import HOUR, NOW, Bench, counts, step

from claudescope.live.filters import StepFilter
from claudescope.live.rollups import persist
from claudescope.live.rollups.tiers import KEPT_MS, TIERS, Piece, advance, coarser, cover, view

DAY = 24 * HOUR
EVERYTHING = StepFilter()


def test_frontiers_are_where_a_bucket_and_its_grace_are_over() -> None:
    at = NOW + 7 * HOUR + 6 * 60_000 + 59_000  # 07:06:59
    minute = NOW + 7 * HOUR + 5 * 60_000
    frontiers = advance({}, at)
    assert frontiers == {60_000: minute, 300_000: minute, 3_600_000: NOW + 7 * HOUR, 21_600_000: NOW + 6 * HOUR}
    assert advance(frontiers, at - DAY) == frontiers  # a clock that is set back does not take them back
    later = advance(frontiers, at + 1000)
    assert later[60_000] == minute + 60_000
    assert later[300_000] == minute


def test_a_view_goes_on_in_finer_tiers() -> None:
    frontiers = advance({}, NOW + 7 * HOUR + 6 * 60_000)
    assert view(21_600_000, NOW - DAY, NOW + 12 * HOUR, frontiers) == [
        Piece(21_600_000, NOW - DAY, NOW + 6 * HOUR),
        Piece(3_600_000, NOW + 6 * HOUR, NOW + 7 * HOUR),
        Piece(300_000, NOW + 7 * HOUR, NOW + 7 * HOUR + 300_000),
        Piece(10_000, NOW + 7 * HOUR + 300_000, NOW + 12 * HOUR),
    ]
    assert view(60_000, NOW, NOW + 60_000, frontiers) == [Piece(60_000, NOW, NOW + 60_000)]
    assert view(10_000, NOW, NOW + 60_000, frontiers) == [Piece(10_000, NOW, NOW + 60_000)]


@pytest.mark.parametrize(
    ("bucket_ms", "age", "expected"),
    [
        (10_000, HOUR, (10_000, 10_000)),
        (20_000, HOUR, (10_000, 20_000)),
        (60_000, HOUR, (60_000, 60_000)),
        (120_000, HOUR, (60_000, 120_000)),
        (10_000, 2 * HOUR, (60_000, 60_000)),
        (90_000, 2 * HOUR, (60_000, 120_000)),
        (60_000, 3 * DAY, (300_000, 300_000)),
        (21_600_000, 30 * DAY, (21_600_000, 21_600_000)),
        (86_400_000, 30 * DAY, (21_600_000, 86_400_000)),
        (10_000, 40 * DAY, (21_600_000, 21_600_000)),
    ],
)
def test_columns_are_as_fine_as_the_tiers_still_are(bucket_ms: int, age: int, expected: tuple[int, int]) -> None:
    assert coarser(bucket_ms, NOW - age, NOW) == expected


@given(st.integers(0, 36 * DAY), st.integers(1, 36 * DAY), st.integers(0, DAY))
def test_a_cover_leaves_no_gap_and_nothing_twice(age: int, length: int, clock: int) -> None:
    now = NOW + clock
    frontiers = advance({}, now)
    from_ms = now - age
    pieces = cover(from_ms, from_ms + length, frontiers, now)
    assert pieces[0].from_ms <= from_ms
    assert pieces[-1].to_ms >= from_ms + length
    assert all(one.to_ms == two.from_ms for one, two in pairwise(pieces))
    kept = {tier.bucket_ms: tier.kept_ms for tier in TIERS}
    for bucket_ms, low, high in pieces:
        assert low < high
        assert low % bucket_ms == high % bucket_ms == 0
        assert high <= frontiers.get(bucket_ms, high)  # what is beyond is not in it
        assert bucket_ms == TIERS[-1].bucket_ms or low >= now - kept[bucket_ms] - bucket_ms
    finest = next(tier.bucket_ms for tier in TIERS if from_ms >= now - tier.kept_ms or tier is TIERS[-1])
    assert from_ms - pieces[0].from_ms < finest  # as exact as it can be
    assert sum(1 for _ in pieces) <= 2 * len(TIERS)


# ------------------------------------------------------------------------------------------------ in the tables


async def test_every_tier_counts_every_step_once(tmp_path: Path) -> None:
    """Two days of steps that come in time, late, and before their time: each range has what a count by hand has."""
    dice = random.Random(4)
    bench = Bench(tmp_path, NOW)
    steps = []
    for _ in range(400):
        bench.now_ms += dice.choice([1_000, 20_000, 300_000, 1_200_000])
        late = [0, 0, 5_000, 90_000, 700_000, 5 * HOUR, 30 * HOUR, -50_000]
        made = [
            step(dice.randrange(18), bench.now_ms - dice.choice(late) - dice.randrange(5_000), dice.randrange(1, 10**7))
            for _ in range(dice.randrange(4))
        ]
        bench.commit(made)
        steps += made
        if dice.random() < 0.5:
            assert await bench.rollups.flush()
    now = bench.now_ms
    for age, bucket_ms in ((HOUR, 10_000), (6 * HOUR, 60_000), (DAY, 300_000), (7 * DAY, HOUR), (30 * DAY, 6 * HOUR)):
        answer = await bench.rollups.heat(EVERYTHING, now - age, now + 60_000, bucket_ms)
        assert answer["bucket_ms"] == bucket_ms
        cells = await bench.cells(EVERYTHING, now - age, now + 60_000, bucket_ms)
        within = [one for one in steps if answer["from_ms"] <= one["ts_ms"] < answer["to_ms"]]
        assert within
        assert {(cell["ts_ms"], cell["step_index"]): cell["count"] for cell in cells} == counts(
            within, EVERYTHING, bucket_ms
        )
    for _ in range(60):
        from_ms = now - dice.randrange(3 * DAY)
        found = await bench.rollups.distribution(EVERYTHING, from_ms, from_ms + dice.randrange(1, 3 * DAY))
        within = [one for one in steps if found["from_ms"] <= one["ts_ms"] < found["to_ms"]]
        assert found["total"]["count"] == len(within)
    assert bench.rollups.totals()["steps"] == len(steps)
    bench.close()


async def test_what_is_over_its_time_goes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW)
    bench.commit([step(ts_ms=NOW)])
    await bench.rollups.flush()
    for later, tiers in ((2 * HOUR, {60}), (3 * DAY, {300, 3600, 21600}), (36 * DAY, set())):
        bench.now_ms = NOW + later
        bench.commit([step(ts_ms=0)])
        await bench.rollups.flush()
        found = {row[0] for row in bench.db.execute("SELECT tier FROM rollups WHERE bucket_ms <= ?", (NOW,))}
        assert tiers <= found
        assert 10 not in found
    assert bench.db.execute("SELECT count(*) FROM rollups").fetchone() == (0,)
    assert bench.rollups.totals()["steps"] == 4
    bench.close()


@pytest.mark.parametrize("hours", [0.5, 1.1, 3, 47, 50, 24 * 8, 24 * 34])
async def test_nothing_is_lost_while_no_steps_come(tmp_path: Path, hours: float) -> None:
    """The last steps before a silence are in the finest tier alone, however long that lasts."""
    bench = Bench(tmp_path, NOW)
    for _ in range(300):
        bench.now_ms += 1000
        bench.commit([step(ts_ms=bench.now_ms)])
        await bench.rollups.flush()
    for again in (0, 1):
        bench.now_ms += int(hours * HOUR / 2)
        with bench.transaction():
            persist.expire(bench.db, persist.load(bench.db).frontiers, bench.now_ms)
        if again:
            bench.start()
        found = await bench.rollups.distribution(EVERYTHING, NOW - HOUR, NOW + HOUR)
        assert found["total"]["count"] == 300
        for bucket_ms in (10_000, 60_000, 300_000, HOUR, 6 * HOUR):
            cells = await bench.cells(EVERYTHING, NOW - HOUR, bench.now_ms + 1, bucket_ms)
            assert sum(cell["count"] for cell in cells) == 300
    bench.commit([step(ts_ms=bench.now_ms)])
    await bench.rollups.flush()
    found = await bench.rollups.distribution(EVERYTHING, NOW - HOUR, bench.now_ms + 1)
    assert found["total"]["count"] == 301
    finest = bench.db.execute("SELECT count(*) FROM rollups WHERE tier = 10 AND bucket_ms <= ?", (NOW + 600_000,))
    assert (finest.fetchone()[0] > 0) == (hours <= 0.5)  # once a coarser tier has them, they go
    bench.close()


async def test_clocks_of_1970_and_2100_leave_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW)
    far = 4_102_444_800_000  # 2100-01-01
    for _ in range(3):
        bench.commit([step(ts_ms=0, is_valid=True), step(ts_ms=far, is_valid=False), step(ts_ms=NOW - KEPT_MS - 1)])
        assert await bench.rollups.flush()
    assert bench.db.execute("SELECT count(*) FROM rollups").fetchone() == (0,)
    assert bench.rollups.totals() == {"steps": 9, "valid": 3, "invalid": 3, "unknown": 3}
    for from_ms, to_ms in ((0, 2**50), (far - HOUR, far + HOUR), (0, 1), (5, 5), (2**50, 0)):
        for bucket_ms in (None, 10_000, 60_000, 21_600_000):
            assert await bench.cells(EVERYTHING, from_ms, to_ms, bucket_ms) == []
        assert (await bench.rollups.distribution(EVERYTHING, from_ms, to_ms))["total"]["count"] == 0
    bench.close()


async def test_a_clock_that_was_far_ahead_once_does_not_hide_steps(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW + 365 * DAY)
    bench.commit([step(ts_ms=bench.now_ms)])
    await bench.rollups.flush()
    bench.now_ms = NOW
    for number in range(30):  # more parts than a bucket keeps
        bench.commit([step(ts_ms=NOW - number * 1000)])
        await bench.rollups.flush()
    for bucket_ms in (10_000, 60_000, 300_000, HOUR, 6 * HOUR):
        cells = await bench.cells(EVERYTHING, NOW - 1_800_000, NOW + 10_000, bucket_ms)
        assert sum(cell["count"] for cell in cells) == 30
    parts = bench.db.execute("SELECT count(*) FROM rollups GROUP BY tier, bucket_ms").fetchall()
    assert max(parts) <= (9,)
    bench.close()


async def test_a_flush_that_is_tried_again_counts_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW)
    bench.commit([step(), step(1)])
    flush = bench.rollups._pending.packed()
    for _ in range(3):
        await bench.submit(flush)
    assert persist.load(bench.db)[:2] == (2, (2, 0, 0))
    assert bench.db.execute("SELECT count(*) FROM rollups").fetchone() == (1,)
    # what the tables count and what still waits is counted once, too
    assert [cell["count"] for cell in await bench.cells(EVERYTHING, NOW, NOW + 10_000)] == [1, 1]
    bench.close()


async def test_large_parts_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persist, "_MAX_BYTES", 200)  # about ten entries
    bench = Bench(tmp_path, NOW + HOUR)
    for number in range(40):
        bench.commit([step(index, NOW, 1000 * (number + 1)) for index in range(6)])
        await bench.rollups.flush()
    for bucket_ms in (60_000, 300_000, HOUR):
        cells = await bench.cells(EVERYTHING, NOW, NOW + 60_000, bucket_ms)
        assert [cell["count"] for cell in cells] == [40] * 6
    assert bench.db.execute("SELECT max(length(data)) FROM rollups").fetchone() <= (200,)
    bench.close()
