"""The shape of a specification: sloth's ``prometheus/v1`` and what is added to it. The JSON Schema and the reference of
the fields are made from these.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .document import Scalar
from .durations import Moment, PeriodText, PositiveWindow, Seconds, WindowOrNever
from .numbers import Chance, Number, Percent, Rate, Share, Whole
from .scalars import Choice, Flag, Index, LabelName, Name, Query, Text, Texts

__all__ = [
    "MEASURE_FORMS",
    "Alert",
    "Alerting",
    "CanaryForm",
    "Confidence",
    "Errors",
    "Events",
    "FirstChunk",
    "IndicatorForm",
    "Latency",
    "Load",
    "Raw",
    "Saturation",
    "Sli",
    "Slo",
    "Spec",
    "Tools",
    "Validity",
    "Waits",
    "WindowForm",
]

Labels = dict[LabelName, Text]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


class Events(_Form):
    """Two queries: bad events and all events."""

    error_query: Annotated[Query, Field(description="PromQL for the bad events, with `[{{.window}}]`.")]
    total_query: Annotated[Query, Field(description="PromQL for all events, with `[{{.window}}]`.")]
    per: Annotated[
        Literal["second", "window"] | None,
        Choice("second", "window"),
        Field(
            description="What the queries count: events a second (`rate`) or a window (`increase`). Only needed where"
            " it cannot be seen from the functions around `[{{.window}}]`."
        ),
    ] = None


class Raw(_Form):
    """One query."""

    error_ratio_query: Annotated[
        Query, Field(description="PromQL for the share of bad events, 0 to 1, with `[{{.window}}]`.")
    ]


class Sli(_Form):
    """What is bad, in PromQL: one of the two."""

    events: Annotated[Events | None, Field(description="Bad and all events.")] = None
    raw: Annotated[Raw | None, Field(description="The share of bad events: without counts, so chance is not told from a"
                                     " burn.")] = None  # fmt: skip


class _Filters(_Form):
    service: Annotated[
        Texts | None, Field(description="Names of services; `*` for all. Default: the specification's `service`.")
    ] = None
    model: Annotated[Texts | None, Field(description="Models as requested.")] = None


class _StepFilters(_Filters):
    kind: Annotated[Texts | None, Field(description="Kinds of steps: `thinking`, `text`, `tool_use`, `tool_run`.")] = (
        None
    )
    index: Annotated[Index | None, Field(description="Numbers of steps: `0` to `15`, then `16+`.")] = None


class _Tool(_Form):
    tool: Annotated[Texts | None, Field(description="Names of tools.")] = None


class _Business(_Form):
    labels: Annotated[
        dict[str, Texts] | None,
        Field(description="Business labels and their values; the app must name them in `CLAUDESCOPE_METRIC_LABELS`."),
    ] = None


class Validity(_StepFilters, _Tool, _Business):
    """Steps found invalid."""

    unknown: Annotated[
        Literal["exclude", "bad", "good"],
        Choice("exclude", "bad", "good"),
        Field(description="What a step is that nobody could check."),
    ] = "exclude"


class Confidence(_StepFilters, _Tool, _Business):
    """Steps whose confidence is below a bound."""

    below: Annotated[Share, Field(description="The bound, over 0 and at most 1.")]
    native: Annotated[Flag, Field(description="Read it from a native histogram (Prometheus 3).")] = False


class Latency(_StepFilters, _Tool, _Business):
    """Steps that took longer than a bound."""

    over: Annotated[Seconds, Field(description="The bound, such as `800ms`.")]
    native: Annotated[Flag, Field(description="Read it from a native histogram (Prometheus 3).")] = False


class Errors(_Filters, _Business):
    """Calls that failed."""


class FirstChunk(_Filters):
    """Streamed calls whose first content came late."""

    over: Annotated[Seconds, Field(description="The bound, such as `2s`.")]
    native: Annotated[Flag, Field(description="Read it from a native histogram (Prometheus 3).")] = False


class Tools(_Filters, _Tool, _Business):
    """Runs of tools that failed."""

    index: Annotated[Index | None, Field(description="Numbers of steps: `0` to `15`, then `16+`.")] = None


class Saturation(_Filters):
    """Calls after which more than a share of the API's rate limit was used."""

    over: Annotated[Share, Field(description="The share, over 0 and at most 1.")]


class IndicatorForm(_Form):
    """What is bad, of what claudescope records: one of the seven."""

    step_validity: Annotated[Validity | None, Field(description="Steps found invalid, of those checked.")] = None
    step_confidence: Annotated[
        Confidence | None, Field(description="Steps whose confidence is below a bound, of those that have one.")
    ] = None
    step_latency: Annotated[Latency | None, Field(description="Steps that took longer than a bound.")] = None
    errors: Annotated[Errors | None, Field(description="Calls that failed.")] = None
    time_to_first_chunk: Annotated[
        FirstChunk | None, Field(description="Streamed calls whose first content came later than a bound.")
    ] = None
    tool_success: Annotated[Tools | None, Field(description="Runs of tools that failed.")] = None
    saturation: Annotated[
        Saturation | None, Field(description="Calls after which more than a share of the rate limit was used.")
    ] = None


MEASURE_FORMS = (Validity, Confidence, Latency, Errors, FirstChunk, Tools, Saturation)
"""In the order of ``IndicatorForm``."""


class Alert(_Form):
    """What the alerts of one severity have besides."""

    disable: Annotated[Flag, Field(description="No alerts of this severity.")] = False
    labels: Annotated[Labels | None, Field(description="Labels of these alerts.")] = None
    annotations: Annotated[Labels | None, Field(description="Annotations of these alerts.")] = None


class Alerting(_Form):
    """What alerts are called and carry."""

    name: Annotated[Text, Field(description="Name of the alerts. Default: made from the objective's name.")] = ""
    labels: Annotated[Labels | None, Field(description="Labels of all its alerts.")] = None
    annotations: Annotated[Labels | None, Field(description="Annotations of all its alerts.")] = None
    page_alert: Annotated[Alert | None, Field(description="Of those that wake somebody.")] = None
    ticket_alert: Annotated[Alert | None, Field(description="Of those that can wait.")] = None


class WindowForm(_Form):
    """One condition: the share of bad events is over `factor` times the budget in both windows."""

    name: Annotated[
        Name | None, Field(description="Label `burnrate_tier` of the alert. Default: severity, `short` and `long`.")
    ] = None
    severity: Annotated[Literal["page", "ticket"], Choice("page", "ticket"), Field(description="`page` or `ticket`.")]
    short: Annotated[PositiveWindow, Field(description="The window that ends the alert soon after the burn ends.")]
    long: Annotated[PositiveWindow, Field(description="The window that must have burned, so that a blip is none.")]
    factor: Annotated[Number, Field(description="Times the budget. 1 uses up exactly the budget in a period.")]
    for_: Annotated[
        Moment | None, Field(alias="for", description="How long it must hold. Default: the objective's `for`.")
    ] = None


class Waits(_Form):
    """How long a condition must hold, by severity; one duration is for both."""

    page: Annotated[Moment | None, Field(description="Of pages.")] = None
    ticket: Annotated[Moment | None, Field(description="Of tickets.")] = None

    @model_validator(mode="before")
    @classmethod
    def _both(cls, value: Any) -> Any:
        return dict.fromkeys(("page", "ticket"), value) if isinstance(value, (Scalar, list)) else value


class Load(_Form):
    """A bound at higher load."""

    above: Annotated[Rate, Field(description="Events a second from which the bound holds.")]
    over: Annotated[Seconds, Field(description="The bound then, such as `350ms`.")]


class CanaryForm(_Form):
    """A deployment that is tried, against the one that is trusted."""

    label: Annotated[LabelName, Field(description="The label that tells them apart, as Prometheus spells it.")]
    canary: Annotated[Text, Field(description="Its value at the deployment that is tried.")]
    baseline: Annotated[Text, Field(description="Its value at the one that is trusted.")]
    window: Annotated[PositiveWindow | None, Field(description="How far back both are compared. Default: 30m.")] = None
    z: Annotated[Number | None, Field(description="z-score of two proportions that is no chance. Default: 3.3.")] = None
    difference: Annotated[
        Share | None, Field(description="Smallest difference of the shares that matters. Default: 0.0005.")
    ] = None
    most: Annotated[
        Share | None, Field(description="A share of bad events that is too much in any case. Default: 0.001.")
    ] = None
    min_events: Annotated[Whole | None, Field(description="Bad events of the canary, at least. Default: 10.")] = None


class Slo(_Form):
    """One objective."""

    name: Annotated[Name, Field(description="Name, unique with the service's over all files.")]
    description: Annotated[Text, Field(description="A sentence for whoever is woken.")] = ""
    objective: Annotated[Percent, Field(description="Percentage of good events.")]
    labels: Annotated[Labels | None, Field(description="Labels of all its rules, besides the specification's.")] = None
    sli: Annotated[Sli | None, Field(description="What is bad, in PromQL. Either this or `indicator`.")] = None
    indicator: Annotated[IndicatorForm | None, Field(description="What is bad, in one line.")] = None
    alerting: Annotated[Alerting | None, Field(description="What its alerts are called and carry.")] = None
    group_by: Annotated[
        Texts | None,
        Field(
            description="Labels whose values have a budget each: `service`, `model`, `kind`, `tool`, `index`,"
            " `label.KEY`, or a label as Prometheus spells it."
        ),
    ] = None
    period: Annotated[
        PeriodText | None,
        Field(description="What the budget is for: `30d` rolls, `week`, `month`, `quarter` begin anew. Default: 30d."),
    ] = None
    windows: Annotated[
        list[WindowForm] | None, Field(min_length=1, description="Conditions instead of the four default ones.")
    ] = None
    for_: Annotated[
        Waits | None,
        Field(alias="for", description="How long a condition must hold: `2m`, or by severity. Default: 1m and 5m."),
    ] = None
    keep_firing_for: Annotated[
        Moment | None, Field(description="How long an alert goes on after its condition ended. Default: 5m.")
    ] = None
    absent_after: Annotated[
        WindowOrNever,
        Field(description="How long without data until an alert says so, or `never`. Default: 15m."),
    ] = None
    alpha: Annotated[
        Chance | None,
        Field(
            description="Chance of as many bad events as an alert needs, while the objective is just kept and one bad"
            " event a day is expected; `off`. Default: 0.0001."
        ),
    ] = None
    min_events: Annotated[
        Whole | None, Field(description="Bad events that an alert needs at least, besides what `alpha` asks for.")
    ] = None
    load: Annotated[list[Load] | None, Field(min_length=1, description="Other bounds at higher load, growing.")] = None
    canary: Annotated[CanaryForm | None, Field(description="Compare two deployments besides.")] = None


class Spec(_Form):
    """A document."""

    version: Annotated[
        Literal["prometheus/v1"], Choice("prometheus/v1"), Field(description="`prometheus/v1`, sloth's form.")
    ]
    service: Annotated[Name, Field(description="The service whose objectives these are.")]
    labels: Annotated[Labels | None, Field(description="Labels of all rules.")] = None
    slos: Annotated[list[Slo], Field(min_length=1, description="The objectives.")]
