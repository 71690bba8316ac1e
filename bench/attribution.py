"""Other ways to name the slice that burns: Adtributor, the plain scan, and controls that do not think."""

import math
import random
from collections import defaultdict
from itertools import combinations

from claudescope.slo.explain.cells import Cells

Labels = dict[str, str]


def adtributor(cells: Cells, explains: float = 0.67, each: float = 0.1) -> list[list[Labels]]:
    """Bhagwan et al., NSDI 2014, for a ratio of two measures: for each dimension the elements that explain, best first.

    Surprise is the Jensen-Shannon divergence of an element's share of bad and of all events, forecast against actual;
    explanatory power is what the ratio would change if only this element had changed, normalised to 1. Elements with
    ``each`` of it are taken by surprise until they have ``explains`` together; dimensions are ordered by surprise.
    The forecast is the baseline's mean.
    """
    found = []
    for at, name in enumerate(cells.dimensions):
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
        for row in cells.rows:
            one = sums[row.labels[at]]
            one[0] += sum(counts.bad for counts in row.before) / cells.windows
            one[1] += row.now.bad
            one[2] += sum(counts.total for counts in row.before) / cells.windows
            one[3] += row.now.total
        f1, a1, f2, a2 = (sum(one[place] for one in sums.values()) for place in range(4))
        if not (f1 and a1 and f2 and a2):
            continue
        power = {
            value: ((b1 - g1) * f2 - (b2 - g2) * f1) / (f2 * max(f2 + b2 - g2, 1e-9))
            for value, (g1, b1, g2, b2) in sums.items()
        }
        whole = sum(power.values())
        if not whole:
            continue
        surprise = {
            value: _divergence(g1 / f1, b1 / a1) + _divergence(g2 / f2, b2 / a2)
            for value, (g1, b1, g2, b2) in sums.items()
        }
        taken, sum_ = [], 0.0
        for value in sorted(sums, key=lambda value: -surprise[value]):
            if power[value] / whole > each:
                taken.append(value)
                sum_ += power[value] / whole
            if sum_ > explains:
                found.append((sum(surprise[value] for value in taken), [{name: value} for value in taken]))
                break
    return [elements for _, elements in sorted(found, key=lambda one: -one[0])]


def _divergence(p: float, q: float) -> float:
    found = 0.0
    for one, other in ((p, q), (q, p)):
        if one > 0:
            found += one * math.log(2 * one / (one + other))
    return found / 2


def slices(cells: Cells) -> dict[tuple[tuple[str, str], ...], tuple[float, float]]:
    """Bad and all events now of every slice of up to three labels."""
    found: dict[tuple[tuple[str, str], ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in cells.rows:
        if not row.now.total:
            continue
        labels = tuple(zip(cells.dimensions, row.labels, strict=True))
        for size in (1, 2, 3):
            for which in combinations(labels, size):
                one = found[which]
                one[0] += row.now.bad
                one[1] += row.now.total
    return {labels: (bad, total) for labels, (bad, total) in found.items()}


def plain_scan(cells: Cells) -> list[Labels]:
    """Slices by their Poisson likelihood ratio against the whole's rate in the baseline (Kulldorff 1997)."""
    rate = cells.before.bad / cells.before.total

    def ratio(one):
        bad, expected = one[1][0], one[1][1] * rate
        return bad * math.log(bad / expected) - (bad - expected) if bad > expected > 0 else 0.0

    return [dict(labels) for labels, _ in sorted(slices(cells).items(), key=lambda one: (-ratio(one), one[0]))[:3]]


def rest_scan(cells: Cells) -> list[Labels]:
    """The same against the rate of all other events now."""
    bad_now, total_now = cells.now

    def ratio(one):
        bad, total = one[1]
        if total >= total_now or bad / total <= (bad_now - bad) / (total_now - total):
            return 0.0
        rest = (bad_now - bad) * math.log((bad_now - bad) / (total_now - total)) if bad < bad_now else 0.0
        return bad * math.log(bad / total) + rest - bad_now * math.log(bad_now / total_now)

    return [dict(labels) for labels, _ in sorted(slices(cells).items(), key=lambda one: (-ratio(one), one[0]))[:3]]


def largest(cells: Cells) -> list[Labels]:
    """The slices with most events."""
    return [dict(labels) for labels, _ in sorted(slices(cells).items(), key=lambda one: (-one[1][1], one[0]))[:3]]


def drawn(cells: Cells, seed: int) -> list[Labels]:
    """Any slices."""
    return [dict(labels) for labels in random.Random(seed).sample(sorted(slices(cells)), 3)]


def first(cells: Cells) -> list[Labels]:
    """The first value of the first columns: where a file begins says nothing."""
    return [{name: cells.rows[0].labels[at]} for at, name in enumerate(cells.dimensions[:3])]
