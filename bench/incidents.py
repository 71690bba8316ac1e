"""Made incidents: counts of steps of an app by service, model, kind, tool, step and tier, with planted bad slices."""

import math
import random

from claudescope.slo.burn import Counts
from claudescope.slo.explain.cells import Cell, Cells

SIZES = {"service": 2, "model": 3, "kind": 4, "tool": 6, "step": 10, "tier": 3}
COMBINATIONS = 400
SMALLEST, LARGEST = 0.02, 0.35
"""Share of all events that a planted slice has."""


def incident(
    chance: random.Random,
    events: int = 5000,
    windows: int = 6,
    base: float = 0.02,
    rate: float = 0.3,
    slices: int = 1,
    varies: float = 0.3,
    planted: bool = True,
) -> tuple[Cells, list[frozenset]]:
    """Cells and the planted slices: ``base`` is the usual share of bad events, which cells have by a factor of
    exp(normal(0, ``varies``)), ``rate`` that of a planted slice."""
    names = list(SIZES)
    combinations = sorted({tuple(_value(chance, size) for size in SIZES.values()) for _ in range(COMBINATIONS)})
    weights = [chance.expovariate(1) for _ in combinations]
    whole = sum(weights)
    usual = [base * math.exp(chance.gauss(0, varies)) for _ in combinations]
    sets = [frozenset(zip(names, one, strict=True)) for one in combinations]
    truth: list[frozenset] = []
    while len(truth) < slices:
        size = chance.choice((1, 1, 2, 2, 3))
        one = frozenset(chance.sample(sorted(chance.choice(sets)), size))
        share = sum(weight for labels, weight in zip(sets, weights, strict=True) if one <= labels) / whole
        if SMALLEST < share < LARGEST and not any(other <= one or one <= other for other in truth):
            truth.append(one)

    def window(bad: bool) -> list[Counts]:
        found = []
        for labels, weight, share in zip(sets, weights, usual, strict=True):
            total = _poisson(chance, events * weight / whole)
            hit = bad and any(one <= labels for one in truth)
            found.append(Counts(sum(chance.random() < (rate if hit else share) for _ in range(total)), total))
        return found

    before = [window(False) for _ in range(windows)]
    now = window(planted)
    rows = [Cell(labels, now[at], tuple(one[at] for one in before)) for at, labels in enumerate(combinations)]
    return Cells(tuple(names), tuple(rows), windows), truth


def _value(chance: random.Random, size: int) -> str:
    return str(chance.choices(range(size), [1 / (at + 1) ** 0.8 for at in range(size)])[0])


def _poisson(chance: random.Random, mean: float) -> int:
    bound, count, product = math.exp(-mean), 0, chance.random()
    while product > bound:
        count += 1
        product *= chance.random()
    return count
