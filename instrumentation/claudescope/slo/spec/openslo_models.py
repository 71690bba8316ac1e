"""The part of OpenSLO v1 that is imported, and the reasons for what is not."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator

from ..window import Window
from .durations import rolling_period
from .numbers import Percent, share_of
from .scalars import Choice, Flag, Name, Query, Text, scalar_of, wrong
from .shape import Refusals

__all__ = ["REFUSED", "Metadata", "Metric", "RatioMetric", "SliDocument", "SliSpec", "SloDocument", "Target"]

_NATIVE: Final = "Write it as prometheus/v1"
_NATIVE_TOO: Final = "write it as prometheus/v1"

REFUSED: Final[Refusals] = {
    "thresholdMetric": (
        "a threshold of a value counts no events.",
        "Write ratioMetric with the events over the threshold as `bad`.",
    ),
    "calendar": ("calendar windows are not imported.", f"{_NATIVE} with `period: month`, or make it rolling."),
    "alertPolicies": (
        "alert policies are not imported: they have one window, and the alerts here have two.",
        f"Remove it, or write your own: {_NATIVE_TOO} with `windows`.",
    ),
    "op": ("it belongs to a threshold of a value.", "Remove it: a ratio is good from `target` on."),
    "value": ("it belongs to a threshold of a value.", "Remove it: a ratio is good from `target` on."),
    "timeSliceTarget": ("time slices are not imported.", "Remove it, with `budgetingMethod: Occurrences`."),
    "timeSliceWindow": ("time slices are not imported.", "Remove it, with `budgetingMethod: Occurrences`."),
    "compositeWeight": ("composite objectives are not imported.", "Write an SLO for each part."),
    "composite": ("composite objectives are not imported.", "Write an SLO for each part."),
    "budgetAdjustments": ("adjustments of the budget are not imported.", "Remove it."),
}


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _method(value: Any) -> str:
    text = scalar_of(value, "Occurrences").text
    if text in ("Timeslices", "RatioTimeslices"):
        raise wrong(f"is {text}, which counts slices of time and not events", "Write Occurrences.")
    if text != "Occurrences":
        raise wrong(f"is {text!r}", "Write Occurrences.")
    return text


def _rolling(value: Any) -> bool:
    scalar = scalar_of(value, "true")
    if scalar.text.lower() == "false":
        raise wrong(
            "is false: calendar windows are not imported",
            f"Write true, or {_NATIVE_TOO} with `period: month`.",
        )
    if scalar.text.lower() != "true":
        raise wrong(f"is {scalar.text!r}", "Write true.")
    return True


def _duration(value: Any) -> Window:
    text = scalar_of(value, "30d").text
    days = {"M": 30, "Q": 90, "Y": 365}.get(text[-1:])
    if days and text[:-1].isdecimal() and len(text) < 4:
        raise wrong(f"is {text}, which is longer at some times than at others", f"Write {days * int(text[:-1])}d.")
    return rolling_period(value)


def _target(value: Any) -> float:
    return share_of(value, below=True)


class Metadata(_Form):
    """What a document is called."""

    name: Name
    displayName: Text = ""  # noqa: N815 - OpenSLO's spelling
    labels: dict[str, Text] | None = None
    annotations: dict[str, Text] | None = None


class _QuerySpec(_Form):
    query: Query


class _MetricSource(_Form):
    type: Annotated[str, Choice("Prometheus")]
    metricSourceRef: Text = ""  # noqa: N815
    spec: _QuerySpec


class Metric(_Form):
    """Where a number comes from."""

    metricSource: _MetricSource  # noqa: N815


class RatioMetric(_Form):
    """Good or bad events, and all of them; or their ratio."""

    counter: Flag | None = None
    good: Metric | None = None
    bad: Metric | None = None
    total: Metric | None = None
    raw: Metric | None = None
    rawType: Annotated[Literal["success", "failure"] | None, Choice("success", "failure")] = None  # noqa: N815


class SliSpec(_Form):
    """What is bad."""

    description: Text = ""
    ratioMetric: RatioMetric  # noqa: N815


class SliDocument(_Form):
    """Kind SLI."""

    apiVersion: Text  # noqa: N815
    kind: Text
    metadata: Metadata
    spec: SliSpec


class _Inline(_Form):
    metadata: Metadata | None = None
    spec: SliSpec


class _TimeWindow(_Form):
    duration: Annotated[Window, PlainValidator(_duration)]
    isRolling: Annotated[bool, PlainValidator(_rolling)]  # noqa: N815


class Target(_Form):
    """One objective of an SLO."""

    displayName: Text = ""  # noqa: N815
    target: Annotated[float, PlainValidator(_target)] | None = None
    targetPercent: Percent | None = None  # noqa: N815


class _SloSpec(_Form):
    description: Text = ""
    service: Name
    indicator: _Inline | None = None
    indicatorRef: Name | None = None  # noqa: N815
    timeWindow: list[_TimeWindow]  # noqa: N815
    budgetingMethod: Annotated[str, PlainValidator(_method)]  # noqa: N815
    objectives: list[Target]


class SloDocument(_Form):
    """Kind SLO."""

    apiVersion: Text  # noqa: N815
    kind: Text
    metadata: Metadata
    spec: _SloSpec
