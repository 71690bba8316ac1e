"""An objective as every part understands it, whatever file it came from: what counts, what is bad, and who is woken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from .window import Period, Window

__all__ = [
    "CALL_MEASURES",
    "MEASURES",
    "BadAndTotal",
    "Canary",
    "Indicator",
    "LoadBound",
    "Measure",
    "Notice",
    "Objective",
    "Origin",
    "Ratio",
    "Selection",
    "Severity",
    "Source",
    "Tier",
]

Severity = Literal["page", "ticket"]
Measure = Literal[
    "step_validity",
    "step_confidence",
    "step_latency",
    "errors",
    "time_to_first_chunk",
    "tool_success",
    "saturation",
]
MEASURES: Final[dict[Measure, str]] = {
    "step_validity": "Steps found invalid, of those that could be checked.",
    "step_confidence": "Steps whose confidence is below a bound, of those whose confidence is known.",
    "step_latency": "Steps longer than a bound, of those whose time was not the app's own.",
    "errors": "Calls that failed, of all calls.",
    "time_to_first_chunk": "Streamed calls whose first content came later than a bound.",
    "tool_success": "Runs of tools that failed, of all.",
    "saturation": "Calls after which more than a share of the API's rate limit was used.",
}
"""The short forms: what is bad, of what."""
CALL_MEASURES: Final[frozenset[Measure]] = frozenset({"errors", "time_to_first_chunk", "saturation"})
"""Those whose events are calls; those of the others are steps."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which steps or calls count. Several values of one field are alternatives; an empty field says nothing."""

    service: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    """Step numbers as metrics spell them: "0" to "15" and "16+"."""
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Business labels and their values, sorted by key."""


@dataclass(frozen=True, slots=True)
class LoadBound:
    """A bound that holds while the total is above a rate."""

    above: float
    """Events a second."""
    bound: float


@dataclass(frozen=True, slots=True)
class Indicator:
    """A short form on claudescope's own metrics; both Prometheus and the embedded server can count it."""

    measure: Measure
    where: Selection = Selection()
    bound: float | None = None
    """Confidence from 0 to 1, seconds, or a share of the rate limit; None where the measure has none."""
    loads: tuple[LoadBound, ...] = ()
    """Other bounds at higher load, growing; of step_latency and time_to_first_chunk."""
    unknown: Literal["exclude", "bad", "good"] = "exclude"
    """What a step is that nobody could check: of step_validity."""
    native: bool = False
    """The bound is read from a native histogram (Prometheus 3) and not from a bucket or a counter."""


@dataclass(frozen=True, slots=True)
class BadAndTotal:
    """Two PromQL expressions with ``{{.window}}`` where the window goes."""

    bad: str
    total: str
    per: Literal["second", "window"] = "second"
    """What the expressions count: ``rate`` gives events a second, ``increase`` events a window."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One PromQL expression for the share of bad events: no counts, so nothing can be said about chance."""

    expression: str


Source = Indicator | BadAndTotal | Ratio


@dataclass(frozen=True, slots=True)
class Tier:
    """A condition: the share of bad events is over ``factor`` times the budget in both windows."""

    name: str
    """Unique in its objective: ``page-fast``, ``page-slow``, ``ticket-fast``, ``ticket-slow``."""
    severity: Severity
    short: Window
    long: Window
    factor: float
    """After capping; greater than 0."""
    wait: Window
    """How long it must hold before it fires (``for``)."""
    asked: float | None = None
    """The factor that the specification asked for, where it was capped."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What an alert of one severity carries besides what all carry."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Canary:
    """A deployment that is tried, against the one that is trusted, told apart by a label of the metrics."""

    label: str
    """As Prometheus spells it."""
    canary: str
    baseline: str
    window: Window = Window(1800)
    z: float = 3.3
    """Two-proportion z-score from which the difference is not chance: one-sided p = .0005."""
    difference: float = 0.0005
    """And the difference of the shares is at least this: .05 percentage points."""
    most: float = 0.001
    """Or the canary's own share of bad events is over this, and too many to be chance."""
    min_events: int = 10
    """Bad events of the canary in the window, at least."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an objective is written."""

    path: str
    line: int
    sha256: str
    """Of the file's bytes, 64 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of one service."""

    service: str
    name: str
    """``service`` and ``name`` together are unique."""
    target: float
    """Share of good events from 0 to 1, both exclusive: .99."""
    source: Source
    tiers: tuple[Tier, ...]
    origin: Origin
    description: str = ""
    period: Period = Window(30 * 86_400)
    group_by: tuple[str, ...] = ()
    """Labels as Prometheus spells them; each of their values has a budget of its own."""
    alpha: float = 1e-4
    """Chance of as many bad events as a tier wants, while the target is just kept and one a day is expected
    (``burn.alpha_of``); 0 switches the clause off.
    """
    min_events: int = 0
    """Bad events in one of a tier's ``burn.evidence_windows``, at least, besides what ``alpha`` asks for."""
    keep_firing: Window = Window(300)
    absent_after: Window | None = Window(900)
    """How long the indicator may be without data before an alert says so; None for ever."""
    labels: Mapping[str, str] = field(default_factory=dict)
    alert: str = ""
    """The alert's name; made from the objective's where empty."""
    alert_labels: Mapping[str, str] = field(default_factory=dict)
    alert_annotations: Mapping[str, str] = field(default_factory=dict)
    page: Notice = Notice()
    ticket: Notice = Notice()
    canary: Canary | None = None

    @property
    def id(self) -> str:
        """Service and name, joined by a hyphen."""
        return f"{self.service}-{self.name}"

    @property
    def budget(self) -> float:
        """Share of events that may be bad."""
        return 1 - self.target
