"""Steps counted by whether they are beyond bounds that are no bucket boundary, with the verdict at record time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from .. import semconv
from .tally import Tally

__all__ = ["Bounds"]


class Bounds:
    """One count a step and bound. The series of a label set are all born at 0 together, so shares are exact."""

    def __init__(self, tally: Tally, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self._tally = tally
        self._marks = [
            {semconv.STEP_BOUND: semconv.bound_label(bound), semconv.STEP_BEYOND: semconv.valid_label(beyond)}
            for bound in bounds
            for beyond in (True, False)
        ]

    def count(self, group: Hashable, labels: Callable[[], Mapping[str, str]], beyond: Iterable[bool]) -> None:
        """Counts one step of ``group``, whose ``labels`` are asked once: ``beyond`` says it for each bound."""
        numbers = [number for one in beyond for number in (int(one), int(not one))]
        self._tally.add(group, lambda: [{**labels(), **mark} for mark in self._marks], numbers)
