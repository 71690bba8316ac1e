"""Calendar periods as PromQL; that it is right at every time is proved on the real Prometheus."""

from __future__ import annotations

from rule_objectives import BY_NAME

from claudescope.slo.rules.calendar import days_expression, hour_expression, start_expression, within
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.window import CalendarPeriod, Window


def test_begins_are_whole_days_back() -> None:
    today = "(vector(time()) - vector(time()) % 86400)"
    assert start_expression(CalendarPeriod("month")) == f"{today} - 86400 * (day_of_month() - 1)"
    assert start_expression(CalendarPeriod("week")) == f"{today} - 86400 * ((day_of_week() + 6) % 7)"
    assert "day_of_year()" in start_expression(CalendarPeriod("quarter"))
    assert hour_expression() == "vector(time()) - vector(time()) % 3600"
    assert [days_expression(CalendarPeriod(unit)) for unit in ("week", "month")] == ["vector(7)", "days_in_month()"]


def test_values_after_a_moment() -> None:
    assert within("r", "s", Window(31 * 86_400), Window(3600)) == (
        "(r and on () (vector(time()) > on () s @ end()))[31d:1h]"
    )


def test_a_month_is_whole_hours_and_what_came_since() -> None:
    period = compiled([BY_NAME["confidence"]]).groups[1]
    names = [rule.name for rule in period.rules]
    assert names == [
        "slo:period:start_seconds",
        "slo:period:hour_seconds",
        "slo:sli_total:eventsmonth",
        "slo:sli_bad:eventsmonth",
        "slo:sli_error:ratio_ratemonth",
        "slo:period_burn_rate:ratio",
        "slo:period_error_budget_remaining:ratio",
    ]
    bad = period.rules[3].expr
    assert "sum_over_time((slo:sli_bad:events1h" in bad
    assert "300 * sum_over_time((slo:sli_bad:rate5m" in bad
    assert "[31d:1h]" in bad
    share = compiled([BY_NAME["raw-month"]]).groups[1].rules[2].expr
    assert share.startswith("avg_over_time((slo:sli_error:ratio_rate1h")
