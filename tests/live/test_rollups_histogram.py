from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollups_kit import FILTERS, LATENCIES, STEPS, step

from claudescope import semconv
from claudescope.live.filters import StepFilter
from claudescope.live.records import StepRecord
from claudescope.live.rollups.bands import (
    GRID,
    LATENCY_BANDS,
    LATENCY_EDGES,
    QUANTILE_ERROR,
    confidence_upper,
    key_of,
    latency_estimate,
    latency_upper,
)
from claudescope.live.rollups.condition import condition_of
from claudescope.live.rollups.figures import Figures, FiguresByIndex
from claudescope.live.rollups.histogram import SERIES_BITS, merge, pack, unpack
from claudescope.live.rollups.pending import Pending

NOW = 1_700_006_400_000
EVERYTHING = StepFilter()
COLUMN = st.one_of(st.integers(1, 300), st.integers(0, 2**40))
HISTOGRAMS = st.dictionaries(
    st.tuples(st.integers(0, 2**24 - 1), st.integers(1, 70_000)).map(lambda it: it[0] << SERIES_BITS | it[1]),
    st.tuples(COLUMN, COLUMN, COLUMN).map(list),
    max_size=30,
)


def packed(steps: Sequence[StepRecord], series: int = 1) -> bytes:
    pending = Pending()
    pending.add([(one, row, series) for row, one in enumerate(steps, 1)], NOW)
    (cell,) = pending.packed().cells.values()
    return cell


def figures_of(steps: Sequence[StepRecord], filter: StepFilter = EVERYTHING) -> FiguresByIndex:
    figures = FiguresByIndex()
    figures.add(unpack(packed(steps)), condition_of(filter))
    return figures


# ------------------------------------------------------------------------------------------------------- bands


def test_a_band_stands_for_its_durations_within_the_error() -> None:
    assert LATENCY_BANDS <= 1 << 9
    assert list(LATENCY_EDGES) == sorted(set(LATENCY_EDGES))
    assert LATENCY_EDGES[-1] >= (2**64 - 1) // 1000  # the longest that OTLP can say, in us
    for band in range(1, LATENCY_BANDS):
        for value in (LATENCY_EDGES[band - 1] + 1, LATENCY_EDGES[band]):
            assert abs(latency_estimate(band) / value - 1) <= QUANTILE_ERROR
    assert latency_estimate(0) == 0


def test_every_bound_of_the_metrics_is_exact_on_both_sides() -> None:
    edges = set(LATENCY_EDGES)
    for bound in semconv.STEP_DURATION.boundaries:
        assert {round(bound * 1e6) - 1, round(bound * 1e6)} <= edges  # over and from, under and up to
    assert set(semconv.STEP_CONFIDENCE_METRIC.boundaries) <= set(GRID)


def test_upper_bounds_as_shown_put_exact_points_to_what_is_below() -> None:
    at = LATENCY_EDGES.index(200_000)
    assert [latency_upper(band) for band in (at - 1, at)] == [200_000, 200_000]
    assert latency_upper(at + 1) == LATENCY_EDGES[at + 1]
    assert [confidence_upper(band) for band in (1, 2, 3, 28, 29, 41)] == [0, 0.05, 0.05, 0.7, 0.7, 1]


@given(STEPS)
def test_a_key_says_where_a_step_is(one: StepRecord) -> None:
    key = key_of(one)
    assert 0 <= key < 1 << 24
    assert key >> 19 == min(one["step_index"], 16)
    band = key & 511
    assert one["latency_us"] <= LATENCY_EDGES[band]
    assert band == 0 or one["latency_us"] > LATENCY_EDGES[band - 1]
    confidence = one["confidence"]
    place = key >> 11 & 63
    if confidence is None:
        assert place == 0
    else:
        grid, between = divmod(place - 1, 2)
        assert GRID[grid] < confidence < GRID[grid + 1] if between else GRID[grid] == confidence


# --------------------------------------------------------------------------------------------------- histograms


@given(HISTOGRAMS)
def test_packing_loses_nothing(histogram: dict[int, list[int]]) -> None:
    columns = unpack(pack(histogram))
    again = {key << SERIES_BITS | series: row for key, series, *row in zip(*columns, strict=True)}
    assert again == histogram
    assert list(columns.keys) == sorted(columns.keys)


@settings(max_examples=40)
@given(HISTOGRAMS, HISTOGRAMS, HISTOGRAMS)
def test_merging_is_associative_and_in_any_order(
    first: dict[int, list[int]], second: dict[int, list[int]], third: dict[int, list[int]]
) -> None:
    one, two, three = pack(first), pack(second), pack(third)
    expected = merge([one, two, three])
    assert merge([merge([one, two]), three]) == expected
    assert merge([one, merge([two, three])]) == expected
    assert merge([three, one, two]) == expected
    total = sum(row[0] for histogram in (first, second, third) for row in histogram.values())
    assert sum(unpack(expected).counts) == total


def test_a_sum_stays_at_its_limit() -> None:
    huge = pack({7: [1, 0, 2**63 - 5]})
    assert list(unpack(merge([merge([huge, huge]), huge])).latencies) == [2**63 - 1]
    assert merge([merge([huge, huge]), huge]) == merge([huge, merge([huge, huge])])


def test_an_entry_of_a_common_histogram_takes_few_bytes() -> None:
    steps = [step(index, latency_us=10_000 + 7919 * index, confidence=0.83) for index in range(16)]
    assert len(packed(steps, series=200)) == 6 + 16 * (4 + 1 + 1 + 4 + 4)


@pytest.mark.parametrize("data", [b"", b"\2\0\0\0\0\0", b"\1\0\0\0\0\0\1", b"\1\0\0\0"])
def test_other_bytes_are_no_histogram(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a packed histogram"):
        unpack(data)


# ------------------------------------------------------------------------------------------------------ figures


@given(st.lists(LATENCIES, min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_quantiles_are_within_the_error(values: list[int], share: float) -> None:
    figures = figures_of([step(latency_us=value) for value in values])[0]
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert figures.quantiles(share) == [pytest.approx(exact, rel=QUANTILE_ERROR)]
    assert figures.latency_sum == min(sum(values), 2**63 - 1)


def test_nothing_is_known_of_no_steps() -> None:
    assert Figures().quantiles(0.5, 0.95) == [None, None]
    assert Figures().cell(0, "0") == {
        "ts_ms": 0,
        "step_index": "0",
        "count": 0,
        "p50_us": None,
        "p95_us": None,
        "confidence": None,
        "confidence_count": 0,
        "checked": 0,
        "invalid": 0,
        "invalid_share": None,
    }


def test_a_cell_counts() -> None:
    figures = figures_of(
        [
            step(confidence=0.5, is_valid=True),
            step(confidence=1.0, is_valid=False),
            step(),
            step(latency_us=10**9, latency_source="consumer"),
            step(latency_us=0, latency_source=None),
            step(index=16),
            step(index=99),
        ]
    )
    first, capped = figures.cells(NOW)
    assert (first["ts_ms"], first["step_index"], first["count"]) == (NOW, "0", 5)
    assert first["p95_us"] == 1000  # an exact point; neither the slow reader's step nor the one without a time
    assert (first["confidence"], first["confidence_count"]) == (0.75, 2)
    assert (first["checked"], first["invalid"], first["invalid_share"]) == (2, 1, 0.5)
    assert (capped["step_index"], capped["count"], capped["confidence"]) == ("16+", 2, None)
    assert figures.total().count == 7


def test_a_distribution() -> None:
    figures = figures_of(
        [
            step(latency_us=200_000, confidence=0.7, is_valid=True),
            step(latency_us=199_999, confidence=0.68, is_valid=False),
            step(latency_us=200_001, confidence=0.71),
            step(latency_us=0, latency_source=None, confidence=0.0),
        ]
    )
    found = figures[0].distribution()
    above = next(edge for edge in LATENCY_EDGES if edge > 200_000)
    assert (found["count"], found["valid"], found["invalid"], found["unknown"]) == (4, 1, 1, 2)
    assert found["latency"]["buckets"] == [[200_000, 2], [above, 1]]  # up to and with 200 ms: two
    assert (found["latency"]["count"], found["latency"]["mean_us"]) == (3, 200_000)
    assert found["latency"]["p50_us"] == 200_000
    assert found["confidence"] == {"count": 4, "mean": 0.5225, "buckets": [[0.0, 1], [0.7, 2], [0.75, 1]]}


@given(st.lists(STEPS, min_size=1, max_size=40), FILTERS)
def test_conditions_on_figures_keep_what_the_filter_matches(steps: list[StepRecord], filter: StepFilter) -> None:
    only_figures = StepFilter(
        index=filter.index,
        valid=filter.valid,
        confidence_min=filter.confidence_min,
        confidence_max=filter.confidence_max,
        confidence_known=filter.confidence_known,
        latency_min_us=filter.latency_min_us,
        latency_max_us=filter.latency_max_us,
    )
    assert condition_of(only_figures).exact
    expected: dict[int, int] = defaultdict(int)
    for one in steps:
        if only_figures.matches(one):
            expected[min(one["step_index"], 16)] += 1
    assert {index: figures.count for index, figures in figures_of(steps, only_figures).items()} == expected


@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (StepFilter(latency_min_us=800_001), [800_001]),  # over 800 ms
        (StepFilter(latency_min_us=800_000), [800_000, 800_001]),
        (StepFilter(latency_max_us=800_000), [799_999]),
        (StepFilter(latency_max_us=800_001), [799_999, 800_000]),
        (StepFilter(latency_max_us=0), []),
    ],
)
def test_a_bound_of_the_metric_is_exact(filter: StepFilter, kept: list[int]) -> None:
    assert condition_of(filter).exact
    steps = [step(number, latency_us=latency) for number, latency in enumerate((799_999, 800_000, 800_001))]
    assert [799_999 + index for index in figures_of(steps, filter)] == kept


@pytest.mark.parametrize(
    ("filter", "same"),
    [
        (StepFilter(confidence_min=0.71), StepFilter(confidence_min=0.7)),
        (StepFilter(confidence_max=0.68), StepFilter(confidence_max=0.7)),
        (StepFilter(latency_min_us=801_234), StepFilter(latency_min_us=800_001)),
        (StepFilter(latency_max_us=10_050), StepFilter(latency_max_us=10_001)),
    ],
)
def test_a_bound_between_edges_goes_to_the_nearest(filter: StepFilter, same: StepFilter) -> None:
    moved, exact = condition_of(filter), condition_of(same)
    assert (moved.exact, exact.exact) == (False, True)
    assert (moved.ranges, moved.tails) == (exact.ranges, exact.tails)


def test_bounds_that_no_step_can_reach() -> None:
    steps = [step(confidence=1.0), step(confidence=0.0)]
    assert figures_of(steps, StepFilter(confidence_min=1.5)) == {}
    assert figures_of(steps, StepFilter(confidence_max=0.0)) == {}
    assert figures_of(steps, StepFilter(confidence_known=False, confidence_min=0.5)) == {}
    assert figures_of(steps, StepFilter(confidence_min=0.0, confidence_max=2.0))[0].count == 2
    assert condition_of(StepFilter(confidence_min=1.5)).exact
