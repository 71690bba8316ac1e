"""Colours that people with any kind of colour vision tell apart, and the thresholds in them."""

from __future__ import annotations

from typing import Any, Final

from grafana_foundation_sdk.builders.dashboard import FieldColor, ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import (
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)

from .thresholds import Limits

__all__ = ["PLAIN", "VERDICTS", "colour", "fixed", "limits", "ordinal"]

_WELL: Final = "#009E73"
_WATCH: Final = "#E69F00"
_WRONG: Final = "#D55E00"
_BLUE: Final = "#0072B2"
_GREY: Final = "#8C8C8C"
VERDICTS: Final = {"valid": _BLUE, "invalid": _WRONG, "unknown": _GREY}
"""Okabe and Ito's palette, as are the thresholds."""


def limits(bounds: Limits | None) -> ThresholdsConfig:
    """Thresholds of a panel: one neutral colour where there are no bounds."""
    if bounds is None:
        steps = [Threshold(None, _BLUE)]
    elif bounds.low:
        steps = [Threshold(None, _WRONG), Threshold(bounds.wrong, _WATCH), Threshold(bounds.watch, _WELL)]
    elif bounds.watch == bounds.wrong:
        steps = [Threshold(None, _WELL), Threshold(bounds.wrong, _WRONG)]
    else:
        steps = [Threshold(None, _WELL), Threshold(bounds.watch, _WATCH), Threshold(bounds.wrong, _WRONG)]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


PLAIN: Final = limits(None)


def colour(by_limits: bool) -> FieldColor:
    """Colour by threshold, or one of a palette for each series by its name."""
    return FieldColor().mode(FieldColorModeId.THRESHOLDS if by_limits else FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def fixed(value: str) -> list[DynamicConfigValue]:
    """Override of a series' colour."""
    return [DynamicConfigValue("color", {"mode": "fixed", "fixedColor": value})]


def ordinal(*, worse_is_low: bool = False) -> dict[str, Any]:
    """Options of a heat map's colours: a sequential scale, the strongest colour for the worst value."""
    return {"scheme": "YlOrRd", "reverse": worse_is_low, "steps": 64}
