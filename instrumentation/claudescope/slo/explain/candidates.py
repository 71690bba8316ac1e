"""The slices that could be told, with their counts and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .cells import Cell, Cells
from .evidence import Evidence
from .narrow import REST
from .scan import Scan
from .tuning import Tuning
from .usual import Usual

__all__ = ["Candidate", "Candidates"]

_FINE: Final = 1 << 16
_HALF: Final = 1 << 80
"""Bad and expected events are summed as one integer: the former in steps of 1 / 65536 from this bit on."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One slice."""

    labels: tuple[tuple[int, int], ...]
    """Places of dimensions and codes of values."""
    score: float
    """Log likelihood ratio less the cost of its labels."""
    bad: float
    expected: float

    @property
    def excess(self) -> float:
        """Bad events beyond what was expected."""
        return self.bad - self.expected

    def overlaps(self, other: Candidate) -> bool:
        """Whether an event could be in both: no dimension has two values."""
        values = dict(other.labels)
        return all(values.get(dimension, code) == code for dimension, code in self.labels)


class Candidates:
    """All slices of the window that is explained."""

    def __init__(self, cells: Cells, expected: Usual, tuning: Tuning) -> None:
        rows = [(row, mean) for row, mean in zip(cells.rows, expected.expected, strict=True) if row.now.total]
        self.tuning = tuning
        self.rows: list[Cell] = [row for row, _ in rows]
        self.expected = [mean for _, mean in rows]
        self.all_expected = sum(self.expected)
        self.all_bad = sum(row.now.bad for row in self.rows)
        self.least = max(tuning.least_bad, tuning.least_rise * self.all_expected)
        self._values = _values(cells.dimensions, self.rows, self.least)
        codes = [{value: code for code, value in enumerate(values)} for values in self._values]
        self.codes = [
            tuple([known.get(value, -1) for known, value in zip(codes, row.labels, strict=True)]) for row in self.rows
        ]
        self.scan = Scan(self.codes)
        self.evidence = Evidence(self.expected, expected.shape, self.all_bad)
        self._said = self.evidence.of(row.now.bad for row in self.rows)
        self._counts = [
            round(row.now.bad * _FINE) * _HALF + round(mean * _FINE)
            for row, mean in zip(self.rows, self.expected, strict=True)
        ]
        self._names = cells.dimensions

    def everything(self) -> float:
        """The score of all events together: the rate went up everywhere by the same factor."""
        return self.evidence.best(sum(self._said))

    def elsewhere(self, chosen: Sequence[Candidate]) -> tuple[float, float]:
        """Score and expected bad events of what is in none of these slices."""
        others = [not any(self._holds(one, codes) for one in chosen) for codes in self.codes]
        said = sum(value for value, counts in zip(self._said, others, strict=True) if counts)
        expected = sum(mean for mean, counts in zip(self.expected, others, strict=True) if counts)
        return (self.evidence.best(said) if any(others) else 0.0), expected

    def best(self, without: Sequence[Candidate] = ()) -> list[Candidate]:
        """Those with enough events to be told, best first; only the events that are in none of ``without`` count."""
        live = [not any(self._holds(one, codes) for one in without) for codes in self.codes]
        said = [value if counts else 0 for value, counts in zip(self._said, live, strict=True)]
        counted = [value if counts else 0 for value, counts in zip(self._counts, live, strict=True)]
        found = []
        for scores, counts in zip(self.scan.sums(said), self.scan.sums(counted), strict=True):
            for codes, score, count in zip(scores.codes, scores.values, counts.values, strict=True):
                bad, expected = count // _HALF / _FINE, count % _HALF / _FINE
                if bad >= self.least and self.tells(bad, expected):
                    labels = tuple(zip(scores.dimensions, codes, strict=True))
                    found.append(Candidate(labels, self.score(score, len(labels)), bad, expected))
        return sorted(found, key=lambda one: (-one.score, len(one.labels), one.labels))

    def tells(self, bad: float, expected: float) -> bool:
        """Whether so many bad events of so many expected ones are worth a sentence."""
        rise = self.tuning.least_rise * self.all_expected
        return bad >= self.tuning.least_factor * expected and bad - expected >= rise

    def score(self, said: int, labels: int) -> float:
        """Of the sum of a slice with so many labels."""
        return self.evidence.best(said) - self.tuning.label_cost * labels

    def names(self, one: Candidate) -> dict[str, str]:
        """The labels as text."""
        return {self._names[dimension]: self._values[dimension][code] for dimension, code in one.labels}

    def total(self, one: Candidate) -> float:
        """All events of a slice."""
        return sum(row.now.total for row, codes in zip(self.rows, self.codes, strict=True) if self._holds(one, codes))

    def _holds(self, one: Candidate, codes: Sequence[int]) -> bool:
        return all(codes[dimension] == code for dimension, code in one.labels)


def _values(dimensions: Sequence[str], rows: Sequence[Cell], least: float) -> list[list[str]]:
    """For each dimension the values with enough bad events: a slice has no more than each of its labels has."""
    found = []
    for at in range(len(dimensions)):
        bad: dict[str, float] = {}
        for row in rows:
            bad[row.labels[at]] = bad.get(row.labels[at], 0.0) + row.now.bad
        found.append(sorted(value for value, count in bad.items() if count >= least and value != REST))
    return found
