"""The panels that all dashboards are made of. Each has a title and a description; widths are of the 24 columns."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import bargauge, heatmap, stat, timeseries
from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BarGaugeNamePlacement,
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    GraphThresholdsStyleMode,
    HeatmapCellLayout,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale

from .palette import VERDICTS, colour, fixed, limits, ordinal
from .targets import Target, with_refs
from .thresholds import Limits
from .variables import PROMETHEUS

__all__ = ["bars", "bucket_heatmap", "figure", "graph", "step_heatmap", "verdict_colours"]

_SHARE: Final = "percentunit"


def figure(
    title: str,
    description: str,
    target: Target,
    unit: str,
    *,
    bounds: Limits | None = None,
    decimals: int | None = None,
    width: int = 3,
    none: str = "No steps",
    name: bool = False,
) -> stat.Panel:
    """One number with its course behind it. ``none`` stands where there is no value; ``name`` shows the legend."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .targets(with_refs([target]))
        .unit(unit)
        .thresholds(limits(bounds))
        .color_scheme(colour(True))
        .color_mode(BigValueColorMode.NONE if bounds is None else BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.AREA)
        .text_mode(BigValueTextMode.NAME if name else BigValueTextMode.VALUE)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(none)
        .span(width)
        .height(4)
    )
    return panel if decimals is None else panel.decimals(decimals)


def graph(
    title: str,
    description: str,
    targets: list[Target],
    unit: str,
    *,
    bounds: Limits | None = None,
    decimals: int | None = None,
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
    share: bool = False,
    top: float | None = None,
    none: str = "No steps in this time",
) -> timeseries.Panel:
    """Lines over time, or areas on each other; ``share`` stacks to 100 %, ``bounds`` are dashed lines."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .targets(with_refs(targets))
        .unit(unit)
        .min(0)
        .color_scheme(colour(False))
        .thresholds(limits(bounds))
        .line_width(1)
        .fill_opacity(40 if stacked or share else 8)
        .show_points(VisibilityMode.AUTO)
        .span_nulls(False)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs(["mean", "max", "lastNotNull"])
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .no_value(none)
        .span(width)
        .height(height)
    )
    if bounds is not None:
        panel.thresholds_style(GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))
    if stacked or share:
        panel.stacking(StackingConfig().mode(StackingMode.PERCENT if share else StackingMode.NORMAL).group("A"))
    if decimals is not None:
        panel.decimals(decimals)
    if top is not None:
        panel.max(top)
    return panel


def verdict_colours(panel: timeseries.Panel) -> timeseries.Panel:
    """Gives the series valid, invalid and unknown their colours."""
    for name, value in VERDICTS.items():
        panel.override_by_name(name, fixed(value))
    return panel


def _heat(title: str, description: str, target: Target, width: int, height: int) -> heatmap.Panel:
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .targets(with_refs([target]))
        .calculate(False)
        .cell_gap(1)
        .show_value(VisibilityMode.NEVER)
        .show_legend()
        .mode(TooltipDisplayMode.SINGLE)
        .show_color_scale(True)
        .exemplars_color("rgba(255,0,255,0.7)")
        .no_value("No steps in this time")
        .span(width)
        .height(height)
    )


def step_heatmap(
    title: str,
    description: str,
    target: Target,
    unit: str,
    *,
    low: float,
    high: float | None = None,
    worse_is_low: bool = False,
    decimals: int = 2,
    width: int = 24,
    height: int = 10,
) -> heatmap.Panel:
    """A row for each step number, a column for each time, the figure as colour: the stronger the worse."""
    scale = ordinal(worse_is_low=worse_is_low)
    colours = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme(scale["scheme"])
        .reverse(scale["reverse"])
        .steps(scale["steps"])
        .scale(HeatmapColorScale.LINEAR if worse_is_low else HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .fill("dark-orange")
        .min(low)
    )
    if high is not None:
        colours.max(high)
    return (
        _heat(title, description, target, width, height)
        .color(colours)
        # 0 is a value here: Grafana's own default hides it, and an empty filter is filled with that default
        .filter_values(heatmap.FilterValueRange().le(-1))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(HeatmapCellLayout.UNKNOWN).value(title))
        .cell_values(heatmap.CellValues().unit(unit).decimals(decimals))
        .y_axis(heatmap.YAxisConfig().axis_label("step number"))
    )


def bucket_heatmap(
    title: str, description: str, target: Target, unit: str, *, what: str = "steps", width: int = 16, height: int = 10
) -> heatmap.Panel:
    """A histogram's buckets over time; the colour is how many ``what`` fell into each."""
    colours = (
        heatmap.HeatmapColorOptions()
        .mode(HeatmapColorMode.SCHEME)
        .scheme("Viridis")
        .reverse(False)
        .steps(64)
        .scale(HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .fill("dark-orange")
    )
    return (
        _heat(title, description, target, width, height)
        .color(colours)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(HeatmapCellLayout.AUTO).value(what))
        .cell_values(heatmap.CellValues().unit("short").decimals(1))
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .show_y_histogram()
    )


def bars(
    title: str,
    description: str,
    target: Target,
    unit: str,
    *,
    bounds: Limits | None = None,
    decimals: int | None = None,
    width: int = 8,
    height: int = 8,
    none: str = "No steps in this time",
) -> bargauge.Panel:
    """One bar a series."""
    panel = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .targets(with_refs([target]))
        .unit(unit)
        .min(0)
        .thresholds(limits(bounds))
        .color_scheme(colour(True))
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.BASIC)
        .name_placement(BarGaugeNamePlacement.LEFT)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(none)
        .span(width)
        .height(height)
    )
    return panel if decimals is None else panel.decimals(decimals)
