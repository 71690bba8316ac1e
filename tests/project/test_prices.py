"""Prices: exact sums, every spelling of a model, no guesses, and what a bad file is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claudescope.errors import UsageError
from claudescope.prices import Prices

OWN = Prices.load()
TABLE = json.loads((Path(__file__).parents[2] / "instrumentation/claudescope/prices.json").read_text("utf-8"))


def test_a_call_costs_its_tokens_by_kind():
    # Sonnet 4.5: 3 a million in, 0.30 read, 3.75 written (6 for an hour), 15 out.
    # 10,000 in, of which 6,000 read and 1,000 written: 3,000 * 3 + 6,000 * .3 + 1,000 * 3.75 + 500 * 15 = 22,050
    assert OWN.cost("claude-sonnet-4-5", 10_000, 6_000, 1_000, 500) == pytest.approx(0.02205, rel=1e-12)
    # 400 of the 1,000 for an hour: 400 * (6 - 3.75) = 900 more
    assert OWN.cost("claude-sonnet-4-5", 10_000, 6_000, 1_000, 500, cache_write_1h=400) == pytest.approx(0.02295)
    assert OWN.cost("claude-sonnet-4-5", 0, 0, 0, 0) == 0.0


def test_cached_tokens_that_the_input_does_not_include_make_no_negative_cost():
    assert OWN.cost("claude-sonnet-4-5", 10, 1_000_000, 0, 0) == pytest.approx(0.30)


def test_a_long_prompt_costs_its_own_price_for_the_whole_call():
    # Haiku 5.5: 0.10 and 0.50 up to 100,000 tokens of input, 0.50 and 2.50 above.
    assert OWN.cost("claude-haiku-5-5", 100_000, 0, 0, 1_000) == pytest.approx(0.0105)
    assert OWN.cost("claude-haiku-5-5", 100_001, 0, 0, 1_000) == pytest.approx(0.0525005)


@pytest.mark.parametrize(
    "spelling",
    [
        "claude-sonnet-4-5",
        "Claude-Sonnet-4-5 ",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5-latest",
        "claude-sonnet-4-5[1m]",
        "claude-sonnet-4.5",
        "anthropic/claude-sonnet-4.5",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "us-gov.anthropic.claude-sonnet-4-5-v1",
        "global.anthropic.claude-sonnet-4-5-20250929-v1:0:200k",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5@20250929",
        "claude-sonnet-4-5@default",
        "publishers/anthropic/models/claude-sonnet-4-5@20250929",
    ],
)
def test_every_spelling_has_the_price(spelling):
    assert OWN.cost(spelling, 1_000_000, 0, 0, 0) == 3.0


@pytest.mark.parametrize(
    "unknown",
    [
        None,
        "",
        "claude",
        "claude-opus-5-9",  # a later model is not priced as an earlier one
        "claude-sonnet-4-5-turbo",
        "claude-sonnet-4-50",
        "my-claude-sonnet-4-5",
        "gpt-5",
        "/",
        "anthropic.",
    ],
)
def test_an_unknown_model_has_no_price(unknown):
    assert OWN.cost(unknown, 1_000_000, 0, 0, 1_000_000) is None


def test_neighbours_are_told_apart():
    assert [OWN.cost(f"claude-opus-{version}", 1_000_000, 0, 0, 0) for version in ("4", "4-1", "4-5", "5", "5-5")] == [
        15.0,
        15.0,
        5.0,
        5.0,
        4.0,
    ]
    assert OWN.cost("claude-opus-4@20250514", 0, 0, 0, 1_000_000) == 75.0
    assert OWN.cost("claude-3-5-haiku-v1@20241022", 1_000_000, 0, 0, 0) == 0.8


@pytest.mark.parametrize("row", TABLE["models"], ids=lambda row: row["match"])
def test_the_table_keeps_the_published_ratios(row):
    """Writes cost 1.25 (5 minutes) and 2 (1 hour) times the input, reads at most a tenth; Haiku 3 was rounded."""
    for prices in (row, row["long_prompt"]) if "long_prompt" in row else (row,):
        near = pytest.approx(1, rel=0.2 if row["match"] == "claude-3-haiku" else 1e-9)
        assert prices["cache_write_5m"] / prices["input"] / 1.25 == near
        assert prices["cache_write_1h"] / prices["input"] / 2 == near
        assert prices["output"] == pytest.approx(5 * prices["input"])
        assert prices["cache_read"] <= prices["input"] * 0.1 * 1.2 + 1e-12


def test_many_unknown_spellings_are_not_remembered_for_ever():
    prices = Prices.load()
    for number in range(3_000):
        assert prices.cost(f"x{number}", 1, 0, 0, 0) is None
    assert prices.cost("claude-sonnet-4-5", 1_000_000, 0, 0, 0) == 3.0
    assert len(prices._known) == 1_000


def row(**changes):
    return {
        "match": "m",
        "input": 1,
        "output": 2,
        "cache_write_5m": 3,
        "cache_write_1h": 4,
        "cache_read": 0.5,
        **changes,
    }


def write(path, **changes):
    table = {"date": "2026-01-02", "currency": "USD", "per": "million tokens", "models": [row()], **changes}
    path.write_text(json.dumps(table))
    return path


def test_a_file_replaces_the_table(tmp_path):
    rows = [row(match="house-model.2"), row(match="house-model.2-20260101", input=7)]
    prices = Prices.load(write(tmp_path / "p.json", models=rows))
    assert prices.date == "2026-01-02"
    assert prices.cost("claude-sonnet-4-5", 1, 0, 0, 1) is None
    assert prices.cost("house-model.2", 1_000_000, 0, 0, 0) == 1.0
    assert prices.cost("house-model.2@20260202", 1_000_000, 0, 0, 0) == 1.0
    assert prices.cost("house-model.2@20260101", 1_000_000, 0, 0, 0) == 7.0  # the longest match


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"date": "yesterday"}, "date is 'yesterday'"),
        ({"currency": "EUR"}, "currency is 'EUR'; it takes 'USD'"),
        ({"per": "token"}, "per is 'token'; it takes 'million tokens'"),
        ({"models": []}, "models is not a list"),
        ({"models": ["m"]}, "models[0] is not an object"),
        ({"models": [row(match=3)]}, "models[0].match is 3"),
        ({"models": [row(), row()]}, "models[1].match is 'm', which an earlier model has"),
        ({"models": [row(), row(match="n", cache_read="x")]}, "models[1].cache_read is 'x'"),
        ({"models": [row(output=None)]}, "models[0].output is None"),
        ({"models": [row(output=-1)]}, "models[0].output is -1"),
        ({"models": [row(output=True)]}, "models[0].output is True"),
        ({"models": [row(output=float("nan"))]}, "models[0].output is nan"),
        ({"models": [row(long_prompt=3)]}, "models[0].long_prompt is not an object"),
        ({"models": [row(long_prompt={**row()})]}, "models[0].long_prompt.above is None"),
    ],
)
def test_a_bad_file_is_told_its_key(tmp_path, changes, told):
    file = write(tmp_path / "p.json", **changes)
    with pytest.raises(UsageError) as caught:
        Prices.load(file)
    assert told in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_bad_file_is_told_its_line(tmp_path):
    file = tmp_path / "p.json"
    file.write_text('{\n "date": "2026-01-02",\n "models": [,]\n}')
    with pytest.raises(UsageError, match="line 3, column 13"):
        Prices.load(file)
    file.write_text("[" * 100_000)
    with pytest.raises(UsageError):
        Prices.load(file)
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError):
        Prices.load(file)
    with pytest.raises(UsageError, match="nowhere"):
        Prices.load(tmp_path / "nowhere.json")
    file.write_text("3")
    with pytest.raises(UsageError, match="it is not an object"):
        Prices.load(file)
