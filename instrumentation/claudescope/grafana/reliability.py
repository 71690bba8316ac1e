"""The reliability diagram: of the steps that were so sure, how many were right."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import barchart
from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig

from .. import semconv
from .palette import VERDICTS, fixed
from .promql import increase, select, total
from .reasoning import VALID
from .series import label, series
from .targets import row, with_refs
from .variables import PROMETHEUS, of_calls

__all__ = ["reliability"]

_BAND: Final = label(semconv.STEP_CONFIDENCE_BAND)
_OUTCOMES: Final = series(semconv.OUTCOMES)
_BANDS: Final = 10
_MIDDLES: Final = " or ".join(
    f'label_replace(vector({(place - 0.5) / _BANDS:g}), "{_BAND}", "{place / _BANDS:.1f}", "", "")'
    for place in range(1, _BANDS + 1)
)
"""The middle of each tenth: what a step in it says of itself."""


def _right(by: tuple[str, ...]) -> str:
    valid, every = (
        total(increase(select(_OUTCOMES, *of_calls(), matcher)), *by) for matcher in (f'{VALID}="true"', "")
    )
    return f"{valid} / ({every} > 0)"


def reliability() -> barchart.Panel:
    """Two bars for each tenth of confidence: what was stated, and the share of valid steps."""
    return (
        barchart.Panel()
        .title("Reliability: stated confidence and share that was valid")
        .description(
            "For each tenth of confidence (by its upper bound): the confidence stated, as the middle of the tenth, and"
            " the share of the steps in it that the checks found valid, over the time range. Well calibrated: both are"
            " equal. The outcome is the checks' verdict; steps without a verdict or a confidence do not count."
        )
        .datasource(PROMETHEUS)
        .targets(with_refs([row(_MIDDLES), row(_right((_BAND,)))]))
        .transformations(
            [
                DataTransformerConfig(id_val="merge", options={}),
                DataTransformerConfig(
                    id_val="organize",
                    options={
                        "excludeByName": {"Time": True},
                        "indexByName": {_BAND: 0, "Value #A": 1, "Value #B": 2},
                        "renameByName": {_BAND: "confidence up to", "Value #A": "stated", "Value #B": "valid"},
                    },
                ),
                DataTransformerConfig(id_val="sortBy", options={"fields": {}, "sort": [{"field": "confidence up to"}]}),
            ]
        )
        .unit("percentunit")
        .decimals(1)
        .min(0)
        .max(1)
        .x_field("confidence up to")
        .orientation(VizOrientation.VERTICAL)
        .stacking(StackingMode.NONE)
        .show_value(VisibilityMode.NEVER)
        .bar_width(0.9)
        .group_width(0.8)
        .fill_opacity(80)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .calcs([])
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .override_by_name("stated", fixed(VERDICTS["unknown"]))
        .override_by_name("valid", fixed(VERDICTS["valid"]))
        .no_value("No step with a confidence and a verdict in this time")
        .span(12)
        .height(9)
    )
