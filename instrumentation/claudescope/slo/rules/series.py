"""The names of what the rules record, and the labels that all of it has."""

from __future__ import annotations

import re
from typing import Final

from ..objective import Indicator, Objective
from .promql import equal, selector

__all__ = [
    "ID",
    "bad_events",
    "bad_rate",
    "camel",
    "error_ratio",
    "identity",
    "needed_events",
    "of",
    "total_events",
    "total_rate",
]

ID: Final = "claudescope_slo"
"""The label with ``Objective.id``: whatever an objective records is found by it."""
_WORDS: Final = re.compile(r"[A-Za-z0-9]+")


def identity(objective: Objective) -> dict[str, str]:
    """Labels of every record and alert. Those of sloth come besides where the objective is written as its are."""
    labels = {ID: objective.id, f"{ID}_name": objective.name, f"{ID}_service": objective.service}
    if not isinstance(objective.source, Indicator):
        labels |= {"sloth_id": objective.id, "sloth_service": objective.service, "sloth_slo": objective.name}
    return labels


def of(objective: Objective, name: str) -> str:
    """The objective's own series of a name."""
    return selector(name, equal(ID, objective.id))


def bad_rate(objective: Objective) -> str:
    """Bad events a second, over 5 minutes."""
    return of(objective, "slo:sli_bad:rate5m")


def total_rate(objective: Objective) -> str:
    """All events a second, over 5 minutes; no series while there are none."""
    return of(objective, "slo:sli_total:rate5m")


def bad_events(objective: Objective, window: object) -> str:
    """Bad events within a window."""
    return of(objective, f"slo:sli_bad:events{window}")


def total_events(objective: Objective, window: object) -> str:
    """All events within a window; no series where there are none."""
    return of(objective, f"slo:sli_total:events{window}")


def error_ratio(objective: Objective, window: object) -> str:
    """Share of bad events within a window."""
    return of(objective, f"slo:sli_error:ratio_rate{window}")


def needed_events(objective: Objective, window: object) -> str:
    """Bad events that a window must hold before a tier may fire."""
    return of(objective, f"slo:sli_bad:needed{window}")


def camel(text: str) -> str:
    """``step-validity`` as alerts are named: ``StepValidity``."""
    return "".join(word[0].upper() + word[1:] for word in _WORDS.findall(text))
