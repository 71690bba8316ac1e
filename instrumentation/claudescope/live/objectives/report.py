"""An objective as the API and the page tell it: budget, burn rates, tiers, groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...slo.burn import Counts, burn_rate, needed
from ...slo.objective import Indicator, Objective, Tier
from ..records import label_json
from .alarm import Alarm
from .alerts import ABSENT, CANARY
from .book import Book, Key
from .reading import PERIOD, GroupReading, Reading, windows_of

__all__ = ["describe", "record", "uncounted_record"]

_RANK: Final = {"inactive": 0, "pending": 1, "firing": 2}
_STILL: Final = Alarm()


def describe(objective: Objective) -> str:
    """What is bad, in words."""
    source = objective.source
    if not isinstance(source, Indicator):
        return "a PromQL expression"
    bound = source.bound
    words = {
        "step_validity": "invalid steps",
        "step_confidence": f"steps with a confidence below {bound:g}" if bound is not None else "",
        "step_latency": f"steps longer than {_seconds(bound)}",
        "errors": "failed calls",
        "time_to_first_chunk": f"calls whose first content came after {_seconds(bound)}",
        "tool_success": "failed tools",
        "saturation": f"calls with over {bound or 0:.0%} of the rate limit used",
    }[source.measure]
    for load in source.loads:
        words += f", {_seconds(load.bound)} above {load.above:g}/s"
    where = source.where
    fields = {name: getattr(where, name) for name in ("service", "model", "kind", "tool")}
    narrowed = [
        *(f"{name} {'/'.join(values)}" for name, values in fields.items() if values),
        *([f"step {'/'.join(where.index)}"] if where.index else []),
        *(f"{key} {'/'.join(values)}" for key, values in where.labels),
    ]
    return f"{words} of {', '.join(narrowed)}" if narrowed else words


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def record(objective: Objective, reading: Reading, book: Book) -> dict[str, Any]:
    """The record of an objective that the server counts."""
    known = reading.known
    groups = [_group(objective, group, book) for group in reading.groups]
    total = _figures(objective, reading.total)
    tiers = [_worst(tier, [group["tiers"][place] for group in groups]) for place, tier in enumerate(objective.tiers)]
    absent = book.entries.get(Key(objective.id, ABSENT, label_json({})))
    canary = [entry for key, entry in book.of(objective.id) if key.rule == CANARY and entry.alarm.state == "firing"]
    states = [tier["state"] for tier in tiers]
    waiting = known.waiting if known is not None else 0
    if known is None or waiting:
        state = "counting"
    elif "firing" in states or canary:
        state = "burning"
    elif not reading.total.windows[PERIOD].total:
        state = "no_data"
    elif (total["budget_remaining"] or 0) < 0:
        state = "exhausted"
    elif "pending" in states:
        state = "pending"
    else:
        state = "ok"
    return {
        **_head(objective),
        "state": state,
        "counted": True,
        "why_not": None,
        "since_ms": known.since_ms if known is not None else None,
        "waiting": waiting,
        "evaluated_ms": reading.now_ms,
        "period_from_ms": reading.period_ms,
        "last_event_ms": reading.total.last_ms,
        "absent": absent is not None and absent.alarm.state == "firing",
        "canary": canary[0].alert.annotations["description"] if canary and canary[0].alert is not None else None,
        **total,
        "tiers": tiers,
        "groups": groups if objective.group_by else [],
        "spark": reading.spark,
    }


def uncounted_record(objective: Objective, why: str) -> dict[str, Any]:
    """The record of an objective that needs a Prometheus."""
    return {
        **_head(objective),
        "state": "uncounted",
        "counted": False,
        "why_not": why,
        "since_ms": None,
        "waiting": 0,
        "evaluated_ms": None,
        "period_from_ms": None,
        "last_event_ms": None,
        "absent": False,
        "canary": None,
        "bad": 0,
        "total": 0,
        "budget_remaining": None,
        "windows": [],
        "tiers": [],
        "groups": [],
        "spark": [],
    }


def _head(objective: Objective) -> dict[str, Any]:
    source = objective.source
    return {
        "id": objective.id,
        "service": objective.service,
        "name": objective.name,
        "description": objective.description,
        "indicator": describe(objective),
        "measure": source.measure if isinstance(source, Indicator) else None,
        "target": objective.target,
        "period": str(objective.period),
        "group_by": list(objective.group_by),
        "file": objective.origin.path,
        "line": objective.origin.line,
    }


def _figures(objective: Objective, group: GroupReading) -> dict[str, Any]:
    """Counts and burn rates of one label set."""
    counts = group.windows.get(PERIOD, Counts(0, 0))
    burn = burn_rate(counts, objective.budget)
    return {
        "bad": int(counts.bad),
        "total": int(counts.total),
        "budget_remaining": None if burn is None else 1 - burn,
        "windows": [
            {
                "window": name,
                "bad": int(one.bad),
                "total": int(one.total),
                "burn_rate": burn_rate(one, objective.budget),
            }
            for name, one in ((str(window), group.windows.get(str(window))) for window in windows_of(objective))
            if one is not None
        ],
    }


def _group(objective: Objective, group: GroupReading, book: Book) -> dict[str, Any]:
    return {
        "labels": dict(group.labels),
        **_figures(objective, group),
        "tiers": [_tier(objective, tier, group, book) for tier in objective.tiers],
    }


def _tier(objective: Objective, tier: Tier, group: GroupReading, book: Book) -> dict[str, Any]:
    entry = book.entries.get(Key(objective.id, tier.name, label_json(dict(group.labels))))
    alarm = entry.alarm if entry is not None else _STILL
    short, long = group.windows[str(tier.short)], group.windows[str(tier.long)]
    return {
        **_tier_head(tier),
        "burn_short": burn_rate(short, objective.budget),
        "burn_long": burn_rate(long, objective.budget),
        "bad_long": int(long.bad),
        "needed": needed(long.total, objective, tier.long),
        "state": alarm.state,
        "since_ms": alarm.fired_ms if alarm.fired_ms is not None else alarm.active_ms,
    }


def _tier_head(tier: Tier) -> dict[str, Any]:
    """What a tier is, whatever was counted."""
    return {
        "name": tier.name,
        "severity": tier.severity,
        "short": str(tier.short),
        "long": str(tier.long),
        "factor": tier.factor,
        "asked": tier.asked,
        "wait_s": tier.wait.seconds,
    }


def _worst(tier: Tier, of_groups: list[Mapping[str, Any]]) -> dict[str, Any]:
    """A tier over all groups: that of the group in which it is nearest to firing."""
    if not of_groups:
        nothing = dict.fromkeys(("burn_short", "burn_long", "since_ms"))
        return {**_tier_head(tier), **nothing, "bad_long": 0, "needed": 0, "state": "inactive"}
    return dict(max(of_groups, key=lambda one: (_RANK[one["state"]], one["burn_long"] or 0.0)))
