from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudescope.live.records import StepRecord
from claudescope.live.rollups.aggregates import BUCKET_MS, WINDOW_MS, HeatMap, Sketch

NOW = 1_700_000_000_000  # a multiple of BUCKET_MS


def step(index: int = 0, ts_ms: int = NOW, latency_us: int = 1000, **more: object) -> StepRecord:
    record = {
        "step_index": index,
        "ts_ms": ts_ms,
        "latency_us": latency_us,
        "latency_source": "measured",
        "confidence": None,
        "is_valid": None,
    }
    return {**record, **more}  # type: ignore[return-value, typeddict-item]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.9, 0.95, 1.0]))
def test_quantiles_are_within_five_percent(values: list[int], share: float) -> None:
    sketch, other, merged = Sketch(), Sketch(), Sketch()
    for number, value in enumerate(values):
        (sketch if number % 2 else other).add(value)
    merged.merge(sketch)
    merged.merge(other)
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    (found,) = merged.quantiles(share)
    assert found == pytest.approx(exact, rel=0.0501)
    assert merged.count == len(values)


def test_an_empty_sketch_knows_nothing() -> None:
    assert Sketch().quantiles(0.5, 0.95) == [None, None]


def test_a_cell_counts() -> None:
    heat = HeatMap()
    heat.add(
        [
            step(confidence=0.5, is_valid=True),
            step(confidence=1.0, is_valid=False),
            step(),
            step(latency_us=10**9, latency_source="consumer"),
            step(index=16),
            step(index=99),
        ],
        NOW,
    )
    first, capped = heat.cells(NOW, NOW + BUCKET_MS)
    assert first["count"] == 4
    assert first["p95_us"] == pytest.approx(1000, rel=0.05)  # the reader-bound step is left out
    assert (first["confidence"], first["confidence_count"]) == (0.75, 2)
    assert (first["checked"], first["invalid"], first["invalid_share"]) == (2, 1, 0.5)
    assert (capped["step_index"], capped["count"], capped["confidence"]) == ("16+", 2, None)
    assert heat.totals() == {"steps": 6, "valid": 1, "invalid": 1, "unknown": 4}


def test_times_out_of_the_window_are_counted_but_not_drawn() -> None:
    heat = HeatMap()
    heat.add([step(ts_ms=0), step(ts_ms=4_102_444_800_000), step(ts_ms=NOW)], NOW)
    assert len(heat.cells(0, 2**60)) == 1
    assert heat.totals()["steps"] == 3
    assert len(heat.take_changed(NOW)) == 1
    assert heat.take_changed(NOW) == []
    heat.take_changed(NOW + WINDOW_MS + 2 * BUCKET_MS)
    assert heat.cells(0, 2**60) == []


def test_cells_merge_into_wider_ones() -> None:
    heat = HeatMap()
    heat.add([step(ts_ms=NOW + shift) for shift in (0, 10_000, 29_999, 30_000)], NOW)
    start = NOW - NOW % 30_000
    cells = heat.cells(NOW - 30_000, NOW + 60_000, 30_000)
    assert sum(cell["count"] for cell in cells) == 4
    assert all((cell["ts_ms"] - start) % 30_000 == 0 for cell in cells)
