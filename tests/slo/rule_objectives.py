"""Objectives of every kind, for tests of their rules."""

from __future__ import annotations

from claudescope.slo.objective import (
    BadAndTotal,
    Canary,
    Indicator,
    LoadBound,
    Objective,
    Origin,
    Ratio,
    Selection,
    Source,
)
from claudescope.slo.tiers import DEFAULT_TIERS, capped, scaled
from claudescope.slo.window import CalendarPeriod, Window

ORIGIN = Origin("specs/app.yml", 7, "ab" * 32)
SLOTH = BadAndTotal(
    'sum(rate(http_request_duration_seconds_count{job="myservice",code=~"(5..|429)"}[{{.window}}]))',
    'sum(rate(http_request_duration_seconds_count{job="myservice"}[{{.window}}]))',
)
DAYS_30 = Window(30 * 86_400)


def objective(name: str, source: Source, target: float = 0.99, **more: object) -> Objective:
    """One of service ``app`` with the default tiers of its period."""
    period = more.get("period", DAYS_30)
    tiers = tuple(capped(tier, target) for tier in scaled(DEFAULT_TIERS, period.seconds))
    given = {"service": "app", "origin": ORIGIN, "tiers": tiers, **more}
    return Objective(name=name, target=target, source=source, **given)


VALIDITY = objective(
    "step-validity",
    Indicator("step_validity", Selection(service=("app",))),
    group_by=("gen_ai_request_model", "service_name"),
    description="Steps are {{valid}}.",
)
EVERY = [
    VALIDITY,
    objective("validity-strict", Indicator("step_validity", unknown="bad")),
    objective("validity-kind", Indicator("step_validity", unknown="good")),
    objective("confidence", Indicator("step_confidence", bound=0.7), 0.9, period=CalendarPeriod("month")),
    objective("confidence-between", Indicator("step_confidence", bound=0.75), 0.9, period=CalendarPeriod("quarter")),
    objective(
        "latency-load",
        Indicator("step_latency", bound=0.2, loads=(LoadBound(5000, 0.35),)),
        period=CalendarPeriod("week"),
    ),
    objective("latency-whole", Indicator("step_latency", bound=1), min_events=20),
    objective("latency-between", Indicator("step_latency", bound=1.2), group_by=("gen_ai_tool_name",)),
    objective("latency-native", Indicator("step_latency", bound=1.2, native=True)),
    objective("errors", Indicator("errors"), 0.999, alpha=0),
    objective("errors-few", Indicator("errors"), 0.999, alpha=0, min_events=5),
    objective("first-chunk", Indicator("time_to_first_chunk", bound=2.56), 0.95),
    objective(
        "tools",
        Indicator("tool_success", Selection(tool=("search", "a.b"), labels=(("tier", ("gold",)),))),
        0.95,
        group_by=("gen_ai_tool_name",),
    ),
    objective("rate-limit", Indicator("saturation", bound=0.9), 0.95),
    objective(
        "requests-availability",
        SLOTH,
        0.999,
        service="myservice",
        labels={"owner": "myteam"},
        alert="MyServiceHighErrorRate",
        canary=Canary("deployment", "canary", "baseline"),
    ),
    objective("counted", BadAndTotal("increase(b[{{.window}}]) # bad", "increase(t[{{.window}}])", "window")),
    objective("raw", Ratio("sum(rate(b[{{.window}}])) / sum(rate(t[{{.window}}]))"), 0.999),
    objective("raw-month", Ratio("avg_over_time(r[{{.window}}]) # a share"), 0.999, period=CalendarPeriod("month")),
]
BY_NAME = {one.name: one for one in EVERY}
