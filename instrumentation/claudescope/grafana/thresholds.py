"""Where a figure turns from well to watch and to wrong: the same numbers that the alerts have."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..settings import SETTINGS

__all__ = [
    "BUDGET_LEFT",
    "BURN_RATE",
    "CALL_ERRORS",
    "DROPS",
    "INVALID_SHARE",
    "LOW_CONFIDENCE",
    "LOW_SHARE",
    "QUEUE_SHARE",
    "RATE_LIMIT_USED",
    "SLOW_STEP",
    "TOOL_ERRORS",
    "Limits",
]


class Limits(NamedTuple):
    """``watch`` and ``wrong`` bounds in the figure's own unit; ``low`` where a small figure is the bad one."""

    watch: float
    wrong: float
    low: bool = False


INVALID_SHARE: Final = Limits(0.01, 0.05)
"""Share of invalid steps among all."""
LOW_CONFIDENCE: Final = Limits(0.8, float(SETTINGS["keep_below"].default), low=True)
"""A confidence; below the second figure a run is kept by sampling, and shown red on the page."""
LOW_SHARE: Final = Limits(0.1, 0.25)
"""Share of steps whose confidence is low."""
SLOW_STEP: Final = Limits(0.8, 5.0)
"""Seconds of a step."""
CALL_ERRORS: Final = Limits(0.01, 0.05)
"""Share of calls that failed."""
RATE_LIMIT_USED: Final = Limits(0.8, 0.95)
"""Share of the API's rate limit that is used."""
TOOL_ERRORS: Final = Limits(0.05, 0.2)
"""Share of tool runs that failed."""
QUEUE_SHARE: Final = Limits(0.2, 0.5)
"""How full a queue of the collector is; the alert QueueFilling has the second figure."""
BUDGET_LEFT: Final = Limits(0.5, 0.1, low=True)
"""Share of an objective's error budget that is left of its period."""
BURN_RATE: Final = Limits(1, 6)
"""How many times as fast as allowed a budget is used: above 1 it does not last, and at 6 somebody is woken."""
DROPS: Final = Limits(1e-9, 1e-9)
"""Anything lost at all is wrong: the alerts AppDropping, CollectorDropping, CollectorRefusing."""
