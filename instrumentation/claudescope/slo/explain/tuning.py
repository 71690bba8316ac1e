"""The constants of the search for slices: what each means, and where its figure is from."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["DEFAULT", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """Chosen on the labelled cases of ``bench/explain.py``, where each has a wide plateau (docs/slo-explain.md)."""

    prior: float = 2.0
    """Bad events at the whole's rate that are added to the history of each cell: one without any is as the whole."""
    shapes: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """Shapes that are tried; 1 / sqrt(shape) is how far a rate strays from window to window, as a share of itself."""
    one_window: float = 4.0
    """The shape where the baseline has one window, which says nothing about it: rates stray by half."""
    burning: float = 1.5
    """A window of the baseline with more than this many times the median rate burned itself and is left out."""
    label_cost: float = 1.0
    """Log likelihood that each label of a slice must be worth: of two slices that say the same, the shorter one."""
    least_bad: float = 5.0
    """Bad events of a slice, at least."""
    least_factor: float = 1.5
    """How many times its expected bad events a slice has, at least."""
    least_rise: float = 0.05
    """Excess of a slice, as a share of all bad events that were expected, at least."""
    weight: float = 2.0
    """Score times rise, at least: what hardly raised the whole needs more evidence than what doubled it."""
    alpha: float = 0.001
    """Chance of a slice like this where nothing is wrong, at most."""
    near: float = 0.8
    """Another description of the only slice is told where its score is at least this share of that one's."""
    others: int = 1
    """So many other descriptions, at most."""
    least_share: float = 0.1
    """Of the whole excess: what a slice after the first one explains, at least."""
    most: int = 3
    """Slices without events in common, at most."""
    simulations: int = 100
    """Of no change, at most: the cells' number makes it less, 20 at least."""

    def in_one_window(self) -> Tuning:
        """For slices compared with one another: rates stray by a tenth only, and as a whole nothing rose."""
        return replace(self, one_window=100.0, weight=0.0)


DEFAULT = Tuning()
