"""What a person reads and sees of an explanation."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from claudescope.slo.burn import Counts
from claudescope.slo.explain.explanation import Explanation, Slice, Trace
from claudescope.slo.explain.sentences import amount, chance, where

SVG = "{http://www.w3.org/2000/svg}"


def sample() -> Explanation:
    slices = (
        Slice({"step": "7", "tool": "search"}, 44, 120, 6, 38 / 52, 0.0004, traces=(Trace("ab" * 16),)),
        Slice({"tool": "search"}, 50, 300, 14, 36 / 52, 0.0009, alternative=True),
    )
    return Explanation("slices", slices, Counts(72, 900), 20, "", "steps")


FIRST = (
    "38 of the 52 bad steps beyond what was expected are in step 7 of tool search: 44 of its 120 steps are bad, 6 were"
    " expected (chance of such a slice where nothing is wrong: 0.0004)."
)


def test_sentences_carry_the_counts_behind_them() -> None:
    assert sample().text().splitlines() == [
        FIRST,
        f"  For example: {'ab' * 16}",
        "Nearly as good a description is tool search: 50 of its 300 steps are bad, 14 were expected.",
    ]


def test_json_has_the_keys_that_apply() -> None:
    first, second = sample().json()["slices"]
    assert first == {
        "labels": {"step": "7", "tool": "search"},
        "bad": 44,
        "total": 120,
        "expected": 6,
        "excess": 38,
        "share": 0.7308,
        "llr": 49.667,  # 44 ln(44 / 6) - 38
        "p": 0.0004,
        "traces": [{"id": "ab" * 16, "url": ""}],
    }
    assert second["alternative"] is True


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"claudescope.step.index": "7", "gen_ai.tool.name": "search"}, "step 7 of tool search"),
        (
            {"claudescope_step_index": "7", "gen_ai_request_model": "m", "claudescope_label_tier": "gold"},
            "step 7 of model m, tier=gold",
        ),
        ({"claudescope_step_kind": "thinking", "service_name": "shop"}, "kind thinking, service shop"),
        ({"label.tier": "gold"}, "tier=gold"),
        ({"claudescope.label.tier": ""}, "tier=(none)"),
        ({"step": "7"}, "step 7"),
        ({"tool": "a\x1b[2J\0\ud800b"}, r"tool a\x1b[2J\x00\ud800b"),
    ],
)
def test_labels_are_said_as_a_person_says_them(labels: dict[str, str], said: str) -> None:
    assert where(labels) == said


@pytest.mark.parametrize(("value", "said"), [(0, "0"), (3.04, "3"), (3.06, "3.1"), (9.97, "10"), (1234.4, "1234")])
def test_amounts(value: float, said: str) -> None:
    assert amount(value) == said


def test_a_chance_is_no_smaller_than_what_is_known() -> None:
    assert chance(1e-6) == "under 1 in a million"
    assert chance(0.00042) == "0.00042"


def test_the_picture_needs_nothing_else_and_shows_the_shares() -> None:
    text = sample().svg()
    root = ElementTree.fromstring(text)
    bars = [one for one in root.iter(f"{SVG}rect") if one.get("class") in ("bar", "other")]
    # of 608 units: 38 / 52 and 36 / 52
    assert [one.get("width") for one in bars] == ["444.3", "420.9"]
    assert [one.get("class") for one in bars] == ["bar", "other"]
    words = [one.text for one in root.iter(f"{SVG}text")]
    assert words == [
        "Where the bad steps beyond what was expected are",
        "step 7 of tool search",
        "73% of the burn: 44 of 120 steps bad, 6 expected",
        "or: tool search",
        "69% of the burn: 50 of 300 steps bad, 14 expected",
    ]
    assert "prefers-color-scheme:dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in text


def test_the_picture_of_no_slice_says_so() -> None:
    root = ElementTree.fromstring(Explanation("none", (), Counts(1, 9), 1, "No slice stands out.", "steps").svg())
    assert [one.text for one in root.iter(f"{SVG}text")] == ["No slice stands out."]


def test_labels_of_apps_are_text_in_the_picture() -> None:
    evil = '<script>alert("&")</script>' + "x" * 200
    slices = (Slice({evil: evil}, 44, 120, 6, 2.0, 0.1),)
    root = ElementTree.fromstring(Explanation("slices", slices, Counts(50, 900), 20, "", "steps").svg())
    (name,) = [one.text for one in root.iter(f"{SVG}text")][1:2]
    assert name is not None
    assert name.startswith('<script>alert("&")')
    assert len(name) == 72
    assert not list(root.iter(f"{SVG}script"))


def test_fewer_than_expected_has_no_likelihood_ratio() -> None:
    assert Slice({}, 5, 10, 6, 0, 1).llr == 0
