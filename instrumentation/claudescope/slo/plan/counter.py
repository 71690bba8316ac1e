"""What ``rate()`` makes of a counter whose samples lie on a regular grid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise, repeat
from operator import gt, mul, sub

__all__ = ["Samples", "rates"]

Samples = Sequence[float | None]
"""A counter's value at each evaluation, scraped just then; None where there is no sample."""


def rates(samples: Samples, seconds: int, step: int) -> list[float]:
    """Events a second over the last ``seconds`` at each of the samples' times, which are ``step`` seconds apart.

    As ``extrapolatedRate`` of Prometheus 3 (promql/functions.go) computes it, in the same order: the window is open on
    the left, a counter that falls was reset, the increase between the first and the last sample is extrapolated to the
    window's ends or half a step beyond the samples, and never to before the counter was 0. 0 stands for no result
    (fewer than two samples), which no rule here tells from 0. Raises ValueError for a window of fewer than two steps.
    """
    width = seconds // step
    if width < 2:
        raise ValueError(f"a window of {seconds} s holds fewer than two samples that are {step} s apart")
    found = [0.0] * len(samples)
    values = [value for value in samples if value is not None]
    first = len(samples) - len(values)
    whole = first < len(samples) and None not in samples[first:] and not any(map(gt, values, values[1:]))
    if not whole:
        _each(found, samples, seconds, step, len(samples))
        return found
    # From some sample on, no window reaches to before the counter was 0: all have one factor.
    increases = list(map(sub, values[width - 1 :], values))
    steady = bisect_left(values, max(increases, default=0) / (width - 1)) if increases else len(values)
    _each(found, samples, seconds, step, min(len(samples), first + steady + width - 1))
    span = (width - 1) * step
    factor = (span + step) / span / seconds
    found[first + steady + width - 1 :] = map(mul, increases[steady:], repeat(factor))
    return found


def _each(found: list[float], samples: Samples, seconds: int, step: int, upto: int) -> None:
    """The definition, one evaluation at a time."""
    at = [index for index in range(upto) if samples[index] is not None]
    values = [value for value in samples[:upto] if value is not None]
    gains = (now - before if now >= before else now for before, now in pairwise(values))
    grown = list(accumulate(gains, initial=0.0))
    first = last = 0
    for index in range(at[0] if at else upto, upto):
        while last < len(at) and at[last] <= index:
            last += 1
        while first < last and (index - at[first]) * step >= seconds:
            first += 1
        if last - first < 2 or not (increase := grown[last - 1] - grown[first]):
            continue
        span = (at[last - 1] - at[first]) * step
        apart = span / (last - 1 - first)
        start = float(seconds - (index - at[first]) * step)
        end = float((index - at[last - 1]) * step)
        if start >= apart * 1.1:
            start = apart / 2
        start = min(start, span * (values[first] / increase))
        if end >= apart * 1.1:
            end = apart / 2
        found[index] = increase * ((span + start + end) / span / seconds)
