"""A plan as a table for a terminal, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from ..objective import Severity
from .plan import Detection, ObjectivePlan, TierPlan, TrafficPlan
from .simulation import FalseAlarms

__all__ = ["time_text", "write"]

_WIDTH: Final = 98
_HEAD: Final = 35
_CELL: Final = 20


def time_text(seconds: float) -> str:
    """In the unit that a person would take: ``45s``, ``43m``, ``5.2h``, ``1.5d``."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 1.995 * size or (unit == "m" and seconds >= 60):
            text = f"{seconds / size:.1f}"
            return f"{text.removesuffix('.0')}{unit}" if seconds < 9.95 * size else f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def write(planned: ObjectivePlan) -> str:
    """All of it as text, with a line end after the last line."""
    objective = planned.objective
    share = f"{objective.target * 100:.10g} %"
    lines = [f"{objective.id}: {share} good in {objective.period}, so {_percent(objective.budget)} may fail"]
    if planned.why_not:
        lines += textwrap.wrap(planned.why_not, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    for note in planned.notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    for each in planned.traffic:
        lines += ["", *_at(each)]
    return "\n".join(lines) + "\n"


def _at(each: TrafficPlan) -> Iterable[str]:
    shares = [one.share for one in each.tiers[0].detections] if each.tiers else []
    yield f"  at {each.traffic.text}{'':<{max(1, _HEAD - 5 - len(each.traffic.text))}}fires after, when so many fail"
    heads = "".join(f"{_percent(share):<{_CELL}}" for share in shares)
    yield f"  {'tier':<12}{'windows':<9}{'from':<12}{heads}".rstrip()
    for tier in each.tiers:
        yield from _tier(tier)
    if each.false is not None:
        yield f"  at exactly the target: {_false(each.false)}"


def _tier(each: TierPlan) -> Iterable[str]:
    tier = each.tier
    windows = f"{tier.short} {tier.long}"
    least = "never" if each.least is None else _percent(each.least)
    cells = [_cell(one) for one in each.detections]
    yield f"  {tier.name:<12}{windows:<9}{least:<12}{''.join(f'{text:<{_CELL}}' for text in cells)}".rstrip()
    told = []
    bound = tier.factor * each.budget
    if each.least is None or each.least > bound * 1.001:  # chance asks for more than the tier's own share
        likely = {window: both for window, both in each.needs.items() if both[1] <= both[0]} or each.needs
        told.append("needs " + " or ".join(f"{bad} bad of {_events(n)} in {w}" for w, (n, bad) in likely.items()))
    if each.chance.at_most > 1e-9:
        told.append(f"at any moment by chance: at most {each.chance.at_most:.1g}")
    yield from textwrap.wrap("; ".join(told), _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _cell(one: Detection) -> str:
    expected = "never" if one.expected is None else time_text(one.expected)
    if one.sampled is None:
        return expected
    if one.sampled.median is None or one.sampled.interval is None:
        return f"{expected} (seldom)"
    low, high = one.sampled.interval
    to = "never" if high == float("inf") else time_text(high)
    return f"{expected} ({time_text(low)} to {to})"


def _events(events: float) -> str:
    return f"{events:.2g}" if events < 10 else f"{events:.0f}"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _false(false: FalseAlarms) -> str:
    severities: tuple[Severity, ...] = ("page", "ticket")
    texts = []
    for severity in severities:
        rate, (low, high) = false.a_month(severity)
        texts.append(f"{rate:.2g} {severity}s a month ({low:.2g} to {high:.2g})")
    return f"{', '.join(texts)}, of {false.months} months"
