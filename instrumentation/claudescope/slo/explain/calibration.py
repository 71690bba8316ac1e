"""From a likelihood ratio to the probability of being the cause, where past incidents whose cause is known say so."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...errors import UsageError

__all__ = ["FEWEST", "Calibration", "Labelled", "read_cases"]

FEWEST: Final = 20
"""Labelled cases without which there is no probability; some right and some wrong."""


class Labelled(NamedTuple):
    """A past explanation: the likelihood ratio of its first slice, and whether that was the cause."""

    llr: float
    right: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """Share of past first slices that were the cause, growing with their likelihood ratio (isotonic regression).

    Each step is at most as sure as its cases allow: ``(right + 1) / (cases + 2)``, so that a handful of cases that
    were all right do not make a certainty.
    """

    bounds: tuple[float, ...]
    """Likelihood ratios from which the steps hold, growing; the first one is the lowest of the cases."""
    shares: tuple[float, ...]
    """Probability of each step, growing."""
    cases: int

    @classmethod
    def fit(cls, cases: Iterable[Labelled]) -> Calibration:
        """By pooling adjacent violators (Ayer et al. 1955). Raises UsageError for too few cases, or of one kind."""
        ordered = sorted(cases)
        right = sum(one.right for one in ordered)
        if len(ordered) < FEWEST or right in (0, len(ordered)):
            raise UsageError(
                f"{len(ordered)} labelled cases, {right} of them right, say nothing about probabilities.",
                f"Give at least {FEWEST}, some right and some wrong.",
            )
        pools: list[list[float]] = []  # the lowest ratio, cases, cases that were right
        for one in ordered:
            if pools and pools[-1][0] == one.llr:
                pools[-1][1] += 1
                pools[-1][2] += one.right
            else:
                pools.append([one.llr, 1, one.right])
            while len(pools) > 1 and _share(pools[-2]) >= _share(pools[-1]):
                _, more, more_right = pools.pop()
                pools[-1][1] += more
                pools[-1][2] += more_right
        return cls(tuple(pool[0] for pool in pools), tuple(_share(pool) for pool in pools), len(ordered))

    def probability(self, llr: float) -> float:
        """Of a first slice with this likelihood ratio; below all cases as of the lowest."""
        return self.shares[max(0, bisect_right(self.bounds, llr) - 1)]


def read_cases(path: Path) -> list[Labelled]:
    """Past incidents, one JSON object a line: ``{"explanation": ..., "cause": {...} or [{...}, ...]}``.

    ``explanation`` is what ``claudescope slo explain --json`` printed, ``cause`` the labels of the slice or slices that
    were to blame in the end, or null. Explanations without a slice do not count. Raises UsageError with the line.
    """
    found = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}.", "Name a file of labelled cases in UTF-8.") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            found += _case(line, f"{path}:{number}")
    return found


def _case(line: str, place: str) -> list[Labelled]:
    try:
        case = json.loads(line)
        slices = case["explanation"]["slices"]
        causes = _causes(case["cause"])
        if not slices:
            return []
        llr = float(slices[0]["llr"])
        if not math.isfinite(llr):
            raise ValueError
        return [Labelled(llr, dict(slices[0]["labels"]) in causes)]
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise UsageError(
            f"{place}: not a labelled case.",
            'A line is {"explanation": OUTPUT OF slo explain --json, "cause": {"LABEL": "VALUE"}}.',
        ) from None


def _causes(given: Any) -> Sequence[Mapping[str, str]]:
    if given is None:
        return ()
    causes = [given] if isinstance(given, dict) else list(given)
    if not all(isinstance(one, dict) for one in causes):
        raise TypeError
    return causes


def _share(pool: Sequence[float]) -> float:
    return (pool[2] + 1) / (pool[1] + 2)
