"""What the guide shows is read, and says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from claudescope.slo.objective import MEASURES
from claudescope.slo.spec.load import load, read
from claudescope.slo.spec.openslo_models import REFUSED
from claudescope.slo.tiers import DEFAULT_TIERS

GUIDE = (Path(__file__).parents[2] / "docs" / "slo.md").read_text("utf-8")
WHOLE, *PARTS = [block for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL) if not block.startswith("#")]


def test_twenty_lines_are_three_objectives(tmp_path):
    assert len(WHOLE.splitlines()) <= 20
    path = tmp_path / "slo.yml"
    path.write_text(WHOLE)
    assert [objective.id for objective in load([path])] == [
        "support-bot-valid-steps",
        "support-bot-quick-steps",
        "support-bot-calls",
    ]
    assert read([path]).warnings == {}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.split(":")[0].strip())
def test_parts_fit_into_an_objective(part, tmp_path):
    source = "" if re.search("^    (sli|indicator):", part, re.MULTILINE) else "    indicator: {step_validity: {}}\n"
    path = tmp_path / "slo.yml"
    path.write_text(f"version: prometheus/v1\nservice: a\nslos:\n  - name: b\n    objective: 99\n{source}{part}")
    assert len(load([path])) == 1


def test_the_table_of_conditions_is_the_default_one():
    rows = re.findall(
        r"^\| `(\w+-\w+)` \| (\w+) and (\w+) \| ([\d.]+) \| ([\d.]+) % bad \| (\d+) % in (\w+) \|$", GUIDE, re.M
    )
    assert rows == [
        (
            tier.name,
            str(tier.short),
            str(tier.long),
            f"{tier.factor:g}",
            f"{tier.factor:g}",  # the budget is 1 %
            f"{100 * tier.factor * tier.long.seconds / (30 * 86_400):.0f}",
            str(tier.long),
        )
        for tier in DEFAULT_TIERS
    ]


def test_every_measure_is_in_the_guide():
    assert set(re.findall(r"^\| `(\w+)[`:]", GUIDE, re.MULTILINE)) >= set(MEASURES)


def test_reasons_of_openslo_are_sentences():
    assert all(text[-1] in ".`" for reasons in REFUSED.values() for text in reasons)
