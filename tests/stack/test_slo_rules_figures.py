"""Figures of the rules by hand: months on the real Prometheus, canaries, bounds by load, native histograms."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace

import pytest
from slo_past import promtool_test, with_past

from rule_objectives import BY_NAME, objective  # isort: skip

from claudescope.slo.objective import BadAndTotal, Canary
from claudescope.slo.rules.calendar import days_expression, start_expression
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.window import CalendarPeriod

pytestmark = pytest.mark.stack


def moment(*parts: int) -> float:
    return dt.datetime(*parts, tzinfo=dt.timezone.utc).timestamp()


def begin(at: float, unit: str) -> dt.datetime:
    """The calendar's own answer."""
    now = dt.datetime.fromtimestamp(at, dt.timezone.utc)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - dt.timedelta(days=day.weekday())
    return day.replace(day=1, month=day.month if unit == "month" else (day.month - 1) // 3 * 3 + 1)


@pytest.mark.timeout(300)
def test_the_budget_of_a_month_across_its_end(programs, tmp_path) -> None:
    """From 25 October to 3 November: 2 % bad in October, 5 % in November, at a rate that changes."""
    own = '{claudescope_slo="app-confidence"}'
    first, boundary, last = moment(2026, 10, 25), moment(2026, 11, 1), moment(2026, 11, 3)
    times = [first + 300 * step for step in range(int(last - first) // 300 + 1)]

    def total(at: float) -> float:
        """Events a second of the five minutes that end at ``at``: more by day than by night."""
        return 2 + math.sin(at / 86_400 * 2 * math.pi)

    def bad(at: float) -> float:
        return total(at) * (0.02 if at <= boundary else 0.05)

    def hours(rate) -> list[tuple[float, float]]:
        return [(at, 300 * sum(rate(at - 300 * back) for back in range(12))) for at in times[12:]]

    period = CalendarPeriod("month")
    starts = [(at, begin(at, "month").timestamp()) for at in times]
    past = {
        f"slo:sli_total:rate5m{own}": [(at, total(at)) for at in times],
        f"slo:sli_bad:rate5m{own}": [(at, bad(at)) for at in times],
        f"slo:sli_total:events1h{own}": hours(total),
        f"slo:sli_bad:events1h{own}": hours(bad),
        f"slo:period:start_seconds{own}": starts,
        f"slo:period:hour_seconds{own}": [(at, at - at % 3600) for at in times],
    }
    program, prometheus = with_past(programs, tmp_path, past)
    try:
        rules = {rule.name: rule.expr for rule in compiled([BY_NAME["confidence"]]).groups[1].rules}
        for at, since in (
            (moment(2026, 10, 30, 12), first + 3600),  # the first hours are not recorded yet
            (moment(2026, 10, 31, 23, 55), first + 3600),
            (boundary, first + 3600),  # midnight is still the month that ends
            (moment(2026, 11, 1, 0, 5), boundary),
            (moment(2026, 11, 1, 1), boundary),
            (moment(2026, 11, 1, 13, 40), boundary),
            (moment(2026, 11, 2, 23, 55), boundary),
        ):
            if at == boundary:  # the expression calls midnight the new month, in which nothing has been yet
                assert prometheus.query(rules["slo:sli_total:eventsmonth"], time=at) == []
                continue
            wanted = [300 * sum(rate(t) for t in times if since < t <= at) for rate in (bad, total)]
            found = [
                float(prometheus.query(rules[f"slo:sli_{name}:eventsmonth"], time=at)[0]["value"][1])
                for name in ("bad", "total")
            ]
            slack = 1 if since == boundary else 1.05  # how much of the first hour the blocks have
            assert wanted[0] == pytest.approx(found[0], rel=1e-9 if slack == 1 else 0.05)
            assert wanted[1] == pytest.approx(found[1], rel=1e-9 if slack == 1 else 0.05)
            share = found[0] / found[1]
            assert share == pytest.approx(0.02 if since != boundary else 0.05, rel=1e-6)
        for unit in ("week", "month", "quarter"):
            period = CalendarPeriod(unit)
            instants = [
                moment(year, month, day, 3, 4, 5)
                for year in (1999, 2000, 2024, 2026, 2100)
                for month in range(1, 13)
                for day in (1, 15, 28)
            ]
            instants += [moment(2024, 2, 29), moment(2023, 12, 31, 23, 59, 59), moment(2026, 1, 1), moment(2026, 4, 1)]
            for at in instants:
                [answer] = prometheus.query(start_expression(period), time=at)
                assert float(answer["value"][1]) == begin(at, unit).timestamp(), (unit, at)
                [days] = prometheus.query(days_expression(period), time=at)
                after = begin(
                    begin(at, unit).timestamp() + {"week": 7, "month": 31, "quarter": 92}[unit] * 86_400, unit
                )
                assert float(days["value"][1]) == (after - begin(at, unit)).days, (unit, at)
    finally:
        program.stop()


def test_z_of_a_canary_is_that_by_hand(programs, tmp_path) -> None:
    """60 of 3,000 against 30 of 300 in half an hour: p = 90/3300, z = .08 / sqrt(p (1 - p) (1/300 + 1/3000)) = 8.11."""
    source = BadAndTotal('rate(v_total{verdict="invalid"}[{{.window}}])', "rate(v_total[{{.window}}])")
    canary = Canary("deployment", "canary", "baseline")
    one = objective("canary", source, canary=canary)
    share = 90 / 3300
    z = 0.08 / math.sqrt(share * (1 - share) * (1 / 300 + 1 / 3000))
    assert z == pytest.approx(8.11, abs=0.005)
    same = {"baseline": (98, 2), "canary": (49, 1)}
    worse = {"baseline": (98, 2), "canary": (9, 1)}

    def played(rates):
        return [
            {"series": f'v_total{{deployment="{name}",verdict="{verdict}"}}', "values": f"0+{rate}x100"}
            for name, pair in rates.items()
            for verdict, rate in zip(("valid", "invalid"), pair, strict=True)
        ]

    def firing(value):
        samples = [{"labels": "{}", "value": 1}] if value else []
        expr = 'count(ALERTS{alertstate="firing", alertname="CanaryCanaryWorse", deployment="canary"})'
        return {"expr": expr, "eval_time": "60m", "exp_samples": samples}

    def rounded(name, value):
        samples = [{"labels": "{}", "value": value}]
        return {"expr": f"round(sum(slo:canary:{name}), 0.0001)", "eval_time": "60m", "exp_samples": samples}

    bounded = replace(one, canary=replace(canary, most=0.05))  # 2 % in both: neither reason holds
    for made, rates, checks in (
        (one, worse, [rounded("zscore", round(z, 4)), rounded("difference", 0.08), firing(True)]),
        (one, same, [rounded("zscore", 0), rounded("difference", 0), firing(True)]),  # 2 % is over its own .1 %
        (bounded, same, [firing(False)]),
        (bounded, {"baseline": (98, 2), "canary": (100, 0)}, [firing(False)]),
        (one, {"canary": (9, 1)}, [firing(True)]),  # without a baseline its own bound is left
    ):
        test = {"interval": "1m", "input_series": played(rates), "promql_expr_test": checks}
        promtool_test(programs, tmp_path, text_of(compiled([made])), {"evaluation_interval": "30s", "tests": [test]})


def ratio_is(one, minute: int, value: float | None) -> dict:
    samples = [] if value is None else [{"labels": "{}", "value": value}]
    expr = f'round(sum(slo:sli_error:ratio_rate5m{{claudescope_slo="{one.id}"}}), 0.0001)'
    return {"expr": expr, "eval_time": f"{minute}m", "exp_samples": samples}


def test_the_bound_follows_the_load(programs, tmp_path) -> None:
    """A tenth takes 200 to 350 ms, a hundredth longer. At 1,000 a second both are bad; above 5,000 the second is."""
    one = BY_NAME["latency-load"]
    name = "claudescope_step_duration_seconds"

    def values(share: float) -> str:
        slow, fast = round(60_000 * share), round(360_000 * share)
        return f"0+{slow}x20 {slow * 20 + fast}+{fast}x19"

    series = {f"{name}_count": 1, f'{name}_bucket{{le="0.2"}}': 0.89, f'{name}_bucket{{le="0.35"}}': 0.99}
    test = {
        "interval": "1m",
        "input_series": [{"series": selector, "values": values(share)} for selector, share in series.items()],
        "promql_expr_test": [ratio_is(one, 18, 0.11), ratio_is(one, 38, 0.01)],
    }
    promtool_test(programs, tmp_path, text_of(compiled([one])), {"evaluation_interval": "30s", "tests": [test]})


def test_native_histograms(programs, tmp_path) -> None:
    """Eight of ten in (.25, .5] and two in (2, 4] seconds: a fifth is over 1.2 s. Then nothing more."""
    one = BY_NAME["latency-native"]
    each = "{{schema:0 count:10 sum:9 offset:-1 buckets:[8 0 0 2]}}"
    test = {
        "interval": "1m",
        "input_series": [{"series": "claudescope_step_duration_seconds", "values": f"{each}+{each}x20 _x20"}],
        "promql_expr_test": [ratio_is(one, 18, 0.2), ratio_is(one, 38, None)],
    }
    promtool_test(programs, tmp_path, text_of(compiled([one])), {"evaluation_interval": "30s", "tests": [test]})
