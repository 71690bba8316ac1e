"""From counts to an explanation."""

from __future__ import annotations

from .cells import Cells
from .explanation import Explanation, Slice, Traces
from .scan import scan

__all__ = ["explain"]


def explain(
    cells: Cells, *, traces: Traces | None = None, noun: str = "events", most: int = 3, seed: int = 0
) -> Explanation:
    """Which slices hold the bad events beyond what the baseline makes of now's total.

    ``noun`` is what is counted (``steps``, ``calls``), ``most`` how many slices at most, ``traces`` gives examples of
    one. The same cells and seed give the same answer.
    """
    now, before = cells.now, cells.before
    if not now.total or not before.total:
        return Explanation("insufficient_data", (), now, 0.0, f"There are no {noun} to compare.", noun)
    expected = now.total * before.bad / before.total
    found = sorted(scan(cells), key=lambda candidate: -candidate.llr)[:most]
    excess = max(now.bad - expected, 1e-9)
    slices = tuple(
        Slice(
            dict(one.labels),
            one.bad,
            one.total,
            one.expected,
            one.llr,
            1.0,
            min(1.0, (one.bad - one.expected) / excess),
            tuple(traces(dict(one.labels)))[:3] if traces else (),
        )
        for one in found
    )
    if not slices:
        return Explanation("none", (), now, expected, "No slice stands out.", noun)
    return Explanation("slices", slices, now, expected, "", noun)
