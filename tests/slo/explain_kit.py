"""Cells for tests of the explanation."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from claudescope.slo.explain.cells import Cells, Sample

RS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "riskloc-rs"
STEPS, TOOLS, MODELS = ("1", "2", "7"), ("search", "read", "write"), ("a", "b")


def labelled_incidents(ci: bool) -> Path:
    """The folder of the labelled incidents; a missing one fails where it has to be there."""
    if not RS.is_dir():
        if ci:
            pytest.fail("../shared/data/riskloc-rs is missing")
        pytest.skip("../shared/data/riskloc-rs is not here")
    return RS


def app(
    bad: Mapping[str, str] | None = None,
    *,
    rate: float = 0.3,
    base: float = 0.02,
    each: int = 100,
    windows: int = 6,
    seed: int = 1,
    everywhere: float = 1.0,
) -> Cells:
    """Steps by step, tool and model, ``each`` a cell and window; now those with the labels ``bad`` fail at ``rate``."""
    chance = random.Random(seed)

    def samples(now: bool) -> list[Sample]:
        found = []
        for step in STEPS:
            for tool in TOOLS:
                for model in MODELS:
                    labels = {"step": step, "tool": tool, "model": model}
                    hit = now and bad is not None and bad.items() <= labels.items()
                    share = rate if hit else base * (everywhere if now else 1)
                    found.append(Sample(labels, sum(chance.random() < share for _ in range(each)), each))
        return found

    before = [samples(False) for _ in range(windows)]
    return Cells.collect(("step", "tool", "model"), samples(True), before)
