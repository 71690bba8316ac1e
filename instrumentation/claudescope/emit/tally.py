"""A counter whose series are 0 before they count, so that a first event is seen by ``increase``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.metrics import Counter

__all__ = ["Tally"]

_SETS: Final = 10_000
"""Groups that are remembered; beyond it the memory starts afresh and zeros are added again (harmless)."""


class Tally:
    """Counts by groups of label sets that are born together. Their labels are made once: an add costs no dictionary."""

    def __init__(self, counter: Counter, context: Context, on_new_series: Callable[[], object]) -> None:
        """``context`` is the one of every add; ``on_new_series`` is called between the zeros and the first 1."""
        self._counter = counter
        self._context = context
        self._on_new_series = on_new_series
        self._groups: dict[Hashable, Sequence[dict[str, str]]] = {}

    def add(self, group: Hashable, labels: Callable[[], Sequence[dict[str, str]]], numbers: Sequence[int]) -> None:
        """Adds ``numbers`` to the series of ``group``, in the order of ``labels``, which is asked once a group."""
        series = self._groups.get(group)
        if series is None:
            if len(self._groups) >= _SETS:
                self._groups.clear()
            series = self._groups[group] = labels()
            for one in series:
                self._counter.add(0, one, self._context)
            self._on_new_series()
        for one, number in zip(series, numbers, strict=True):
            if number:
                self._counter.add(number, one, self._context)
