"""Probabilities, from labelled cases only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.errors import UsageError
from claudescope.slo.explain.calibration import FEWEST, Calibration, Labelled, read_cases


def test_adjacent_violators_are_pooled() -> None:
    # 0: wrong x 5; 1: right x 6, 2: wrong x 4 (pooled: 6 of 10); 3: right x 10
    cases = [Labelled(0, False)] * 5 + [Labelled(1, True)] * 6 + [Labelled(2, False)] * 4 + [Labelled(3, True)] * 10
    found = Calibration.fit(cases)
    assert found.bounds == (0, 1, 3)
    assert found.shares == pytest.approx((1 / 7, 7 / 12, 11 / 12))
    assert found.cases == 25
    assert [found.probability(llr) for llr in (-9, 0.5, 1, 2.9, 3, 99)] == pytest.approx(
        [1 / 7, 1 / 7, 7 / 12, 7 / 12, 11 / 12, 11 / 12]
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=FEWEST, max_size=60))
def test_a_higher_ratio_is_never_less_probable(pairs: list[tuple[int, bool]]) -> None:
    cases = [Labelled(float(llr), right) for llr, right in [*pairs, (0, False), (9, True)]]
    found = Calibration.fit(cases)
    shares = [found.probability(llr) for llr in range(-1, 11)]
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] < 1


@pytest.mark.parametrize("cases", [[], [Labelled(1, True)] * 40, [Labelled(1, False)] * 40, [Labelled(1, True)] * 5])
def test_too_few_cases_or_of_one_kind_say_nothing(cases: list[Labelled]) -> None:
    with pytest.raises(UsageError, match="say nothing about probabilities"):
        Calibration.fit(cases)


def line(labels: dict[str, str] | None, cause: object) -> str:
    slices = [{"labels": labels, "llr": 7.5}] if labels else []
    return json.dumps({"explanation": {"verdict": "slices", "slices": slices}, "cause": cause}) + "\n"


def test_cases_are_what_was_printed_and_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        line({"tool": "a"}, {"tool": "a"})
        + "\n"
        + line({"tool": "a"}, [{"tool": "b"}, {"tool": "a"}])
        + line({"tool": "a"}, {"tool": "a", "step": "1"})
        + line({"tool": "a"}, None)
        + line(None, {"tool": "a"}),
        encoding="utf-8",
    )
    assert read_cases(path) == [Labelled(7.5, right) for right in (True, True, False, False)]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        "{}",
        '{"explanation": {"slices": [{"llr": "x", "labels": {}}]}, "cause": {}}',
        '{"explanation": {"slices": [{"llr": NaN, "labels": {}}]}, "cause": {}}',
        '{"explanation": {"slices": [{"labels": {}}]}, "cause": {}}',
        '{"explanation": {"slices": [{"llr": 1, "labels": {}}]}, "cause": ["x"]}',
        '{"explanation": {"slices": [{"llr": 1, "labels": {}}]}, "cause": 3}',
        "[" * 100_000,
    ],
)
def test_what_is_no_case_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(line(None, {}) + text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"cases.jsonl:2: not a labelled case"):
        read_cases(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff")
    for path in (tmp_path / "a", tmp_path / "b"):
        with pytest.raises(UsageError, match="Name a file of labelled cases"):
            read_cases(path)
