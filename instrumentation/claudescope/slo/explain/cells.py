"""What an explanation looks at: bad and all events by their labels, now and in windows before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...errors import UsageError
from ..burn import Counts

__all__ = ["Cell", "Cells", "Sample"]


_NONE: Final = Counts(0.0, 0.0)


class Sample(NamedTuple):
    """Events of one window with one set of labels; a label that is absent is the empty text."""

    labels: Mapping[str, str]
    bad: float
    total: float


class Cell(NamedTuple):
    """One combination of labels."""

    labels: tuple[str, ...]
    """A value for each dimension, in their order; empty where the label is absent."""
    now: Counts
    before: tuple[Counts, ...]
    """For each window of the baseline."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Bad and all events of each combination of labels; each combination is there once."""

    dimensions: tuple[str, ...]
    rows: tuple[Cell, ...]
    windows: int
    """How many windows the baseline has: 0 or more."""

    @classmethod
    def collect(
        cls, dimensions: Sequence[str], now: Iterable[Sample], before: Sequence[Iterable[Sample]] = ()
    ) -> Cells:
        """Adds up samples of the same labels; labels that are no dimension do not count.

        ``before`` are windows of the baseline, of any length, none of which overlaps ``now``. One is enough; several
        tell besides how much shares differ from window to window anyhow, which one cannot. Raises UsageError for a
        count that is negative or no number. Counts need not be whole: rates times a window are not.
        """
        names = tuple(dimensions)
        if len(set(names)) != len(names):
            raise UsageError("A dimension is named twice.", "Name each once.")
        windows = [now, *before]
        sums: dict[tuple[str, ...], dict[int, list[float]]] = {}
        for at, samples in enumerate(windows):
            for labels, bad, total in samples:
                _check(labels, bad, total)
                key = tuple([labels.get(name, "") for name in names])
                counts = sums.setdefault(key, {}).setdefault(at, [0.0, 0.0])
                counts[0] += bad
                counts[1] += total
        rows = tuple(
            Cell(key, _counts(found, 0, 1)[0], _counts(found, 1, len(windows))) for key, found in sorted(sums.items())
        )
        return cls(names, rows, len(windows) - 1)

    def against_itself(self) -> Cells:
        """The same with a baseline of one window: the same events, as if all had the share of bad ones of the whole."""
        bad, total = self.now
        share = bad / total if total else 0.0
        rows = [row._replace(before=(Counts(row.now.total * share, row.now.total),)) for row in self.rows]
        return Cells(self.dimensions, tuple(rows), 1)

    @property
    def now(self) -> Counts:
        """All events of the window that is explained."""
        return Counts(sum(row.now.bad for row in self.rows), sum(row.now.total for row in self.rows))

    @property
    def before(self) -> Counts:
        """All events of the baseline."""
        return Counts(
            sum(counts.bad for row in self.rows for counts in row.before),
            sum(counts.total for row in self.rows for counts in row.before),
        )


def _counts(found: Mapping[int, Sequence[float]], begin: int, end: int) -> tuple[Counts, ...]:
    return tuple([Counts(*found[at]) if at in found else _NONE for at in range(begin, end)])


def _check(labels: Mapping[str, str], bad: float, total: float) -> None:
    for name, value in (("bad", bad), ("total", total)):
        if not math.isfinite(value) or value < 0:
            raise UsageError(f"{name} is {value} for {dict(labels)}.", "A count is a number from 0 up.")
