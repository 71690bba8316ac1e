"""From a condition at each evaluation to alerts: pending, firing, resolved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Alert", "alerts", "episodes"]


class Alert(NamedTuple):
    """One alert's life, in numbers of evaluations."""

    pending: int
    fired: int | None
    """None where the condition ended before ``for`` was over."""
    resolved: int | None
    """The first evaluation at which it is no longer active; None where the evaluations end before."""


def alerts(true: Iterable[int], evaluations: int, wait: int, keep: int) -> list[Alert]:
    """The alerts of a rule whose condition holds at the evaluations ``true``, growing, of ``evaluations`` in all.

    ``wait`` (``for``) and ``keep`` (``keep_firing_for``) are whole evaluations, as in rules/alerting.go of Prometheus:
    the alert fires at the first evaluation that is ``wait`` after the first true one, and is resolved at the first one
    that is ``keep`` after the first false one; when the condition holds again by then, it is still the same alert.
    """
    found: list[Alert] = []
    begin = end = fired = -1
    for index in true:
        if end >= 0 and (index == end + 1 or (fired >= 0 and index <= end + 1 + keep)):
            end = index
        else:
            if end >= 0:
                found.append(_ended(begin, fired, end, evaluations, keep))
            begin, end, fired = index, index, -1
        if fired < 0 and index - begin >= wait:
            fired = index
    if end >= 0:
        found.append(_ended(begin, fired, end, evaluations, keep))
    return found


def _ended(begin: int, fired: int, end: int, evaluations: int, keep: int) -> Alert:
    over = end + 1 + (keep if fired >= 0 else 0)
    return Alert(begin, fired if fired >= 0 else None, over if over < evaluations else None)


def episodes(several: Iterable[Iterable[Alert]], evaluations: int) -> list[tuple[int, int]]:
    """How often a person is disturbed: stretches in which at least one of several rules fires, as first evaluation and
    the one after the last.
    """
    spans = sorted(
        (alert.fired, evaluations if alert.resolved is None else alert.resolved)
        for rule in several
        for alert in rule
        if alert.fired is not None
    )
    found: list[tuple[int, int]] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found
