"""Failing runs that failed alike: by the reason, where in the run it began, and the labels that they share.

A run whose first bad span nothing preceded failed on its own; one that has a good step before it failed as a chain.
The two are never in one cluster, since they are mended in different places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .runs import Run

__all__ = ["Cluster", "Shape", "Shares", "clusters", "failing"]

Shape = Literal["single", "chain"]

_SHARED: Final = 0.8
"""A label belongs to a cluster if this share of its runs have it..."""
_RARER: Final = 0.8
"""...and it is rarer by this factor among all runs: what all have says nothing."""
_EXAMPLES: Final = 3
_CHAIN: Final = 3
"""Steps from which a run is a chain of several steps."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Runs that failed alike."""

    reason: str
    node: str
    """Of the first bad span."""
    shape: Shape
    labels: tuple[tuple[str, str], ...]
    """That most of them share, and other runs do not."""
    runs: int
    traces: tuple[str, ...]
    """Up to three."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Failing runs, those of several steps apart from the others."""

    single: tuple[int, int]
    """Failed, of all runs with fewer than three steps."""
    chain: tuple[int, int]
    """Failed, of all runs with three steps or more."""


def failing(runs: Iterable[Run], chain: int = _CHAIN) -> Shares:
    """How many runs failed, by whether they have ``chain`` spans with a verdict or more."""
    counts = {False: [0, 0], True: [0, 0]}
    for run in runs:
        one = counts[sum(span.bad is not None for span in run.spans) >= chain]
        one[0] += run.failed
        one[1] += 1
    return Shares((counts[False][0], counts[False][1]), (counts[True][0], counts[True][1]))


def clusters(runs: Sequence[Run], least: int = 2) -> list[Cluster]:
    """Clusters of at least so many runs, the largest first."""
    groups: dict[tuple[str, str, Shape], list[Run]] = defaultdict(list)
    for run in runs:
        for at, span in enumerate(run.spans):
            if span.bad:
                before = any(earlier.bad is False for earlier in run.spans[:at])
                groups[span.reason, span.node, "chain" if before else "single"].append(run)
                break
    common = Counter(item for run in runs for item in run.labels.items())
    found = [
        Cluster(
            *key,
            _labels(members, common, len(runs)),
            len(members),
            tuple(run.trace for run in members if run.trace)[:_EXAMPLES],
        )
        for key, members in groups.items()
        if len(members) >= least
    ]
    return sorted(found, key=lambda one: (-one.runs, one.reason, one.node, one.shape))


def _labels(members: Sequence[Run], common: Counter[tuple[str, str]], of: int) -> tuple[tuple[str, str], ...]:
    counts = Counter(item for run in members for item in run.labels.items())
    return tuple(
        sorted(
            item
            for item, count in counts.items()
            if count >= _SHARED * len(members) and common[item] / of < _RARER * count / len(members)
        )
    )
