"""How many events there are, and events as they might come."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ...errors import UsageError

__all__ = ["DEFAULT_TRAFFIC", "Traffic", "arrivals", "counter", "parse_traffic"]

_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([a-z]+)")
_FEW: Final = 0.3
"""Events a step up to which they are drawn one by one."""


class Traffic(NamedTuple):
    """Events at a steady rate, by chance and independent of each other."""

    text: str
    """As a person wrote it: ``36/h``."""
    per_second: float

    def events(self, seconds: float) -> float:
        """Expected within a time."""
        return self.per_second * seconds


DEFAULT_TRAFFIC: Final = (
    Traffic("1/h", 1 / 3600),
    Traffic("10/h", 10 / 3600),
    Traffic("1/min", 1 / 60),
    Traffic("1/s", 1.0),
)


def parse_traffic(text: str) -> Traffic:
    """``10/s``, ``36/h``, ``1/min`` or ``5/d``. UsageError for anything else, none, and over 100,000/s."""
    match = _RATE.fullmatch(text.strip())
    unit = _UNITS.get(match.group(2)) if match else None
    if match is None or unit is None:
        raise UsageError(f"{text!r} is no rate of events.", "Write 10/s, 1/min, 36/h or 5/d.")
    per_second = float(match.group(1)) / unit
    if not 1e-9 <= per_second <= 100_000:
        raise UsageError(f"A rate of {text} cannot be planned for.", "It is more than none and at most 100000/s.")
    return Traffic(text.strip().replace(" ", ""), per_second)


def arrivals(chance: random.Random, mean: float, steps: int) -> list[int]:
    """Events in each of so many steps, Poisson with ``mean`` expected in each."""
    if mean <= 0:
        return [0] * steps
    if mean < _FEW:
        found = [0] * steps
        at = chance.expovariate(mean)
        while at < steps:
            found[int(at)] += 1
            at += chance.expovariate(mean)
        return found
    first, weights = _distribution(mean)
    return chance.choices(range(first, first + len(weights)), cum_weights=weights, k=steps)


def _distribution(mean: float) -> tuple[int, list[float]]:
    """The smallest count that matters, and the probability of at most it and each one above."""
    spread = 9 * math.sqrt(mean) + 20
    first, last = max(0, int(mean - spread)), int(mean + spread)
    masses = [math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) for count in range(first, last + 1)]
    return first, list(accumulate(masses))


def counter(events: Sequence[float], before: float = 0.0) -> list[float]:
    """A counter's samples at each evaluation, from the events of the steps that end there. It begins with a sample of
    ``before``, so there is one sample more than steps.
    """
    return list(accumulate(events, initial=before))
