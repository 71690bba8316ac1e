"""The shipped objectives: their rules are what the compiler makes of them, and `stack init` writes both."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudescope.slo.objective import Indicator
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.spec.load import load
from claudescope.stack.files import shipped_files

COLLECTOR = Path(__file__).parents[2] / "collector"
SPECS = sorted((COLLECTOR / "slos").glob("*.yml"))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_rules_are_current(spec) -> None:
    committed = (COLLECTOR / "rules" / f"slo-{spec.stem}.yml").read_text("utf-8")
    assert committed == text_of(compiled(load([spec]))), "type make slos"


def test_no_rules_without_a_specification() -> None:
    assert [spec.stem for spec in SPECS] == [
        rules.stem.removeprefix("slo-") for rules in sorted((COLLECTOR / "rules").glob("slo-*.yml"))
    ]


def test_they_are_for_any_app_and_silent_without_one() -> None:
    measures = set()
    for objective in load(SPECS):
        assert isinstance(objective.source, Indicator)
        assert objective.source.where.service == ()
        assert objective.group_by == ("service_name",)
        assert objective.absent_after is None
        measures.add(objective.source.measure)
    assert measures == {
        "step_validity",
        "step_confidence",
        "step_latency",
        "errors",
        "time_to_first_chunk",
        "tool_success",
        "saturation",
    }


def test_stack_init_writes_them() -> None:
    names = set(shipped_files())
    assert {f"collector/slos/{spec.name}" for spec in SPECS} <= names
    assert {f"collector/rules/slo-{spec.name}" for spec in SPECS} <= names
