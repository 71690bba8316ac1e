"""The plan: exact chances against brute force, times by hand, the table and the command."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.cli.main import main
from claudescope.errors import UsageError
from claudescope.slo.burn import needed
from claudescope.slo.objective import BadAndTotal, Notice, Objective, Origin, Ratio
from claudescope.slo.plan.chance import evidence_chance, least_share, share_chance, tier_chances
from claudescope.slo.plan.plan import plan
from claudescope.slo.plan.simulation import expected_delay, false_alarms, sampled_delays, summary, summed
from claudescope.slo.plan.table import time_text, write
from claudescope.slo.plan.traffic import Traffic, arrivals, counter, parse_traffic
from claudescope.slo.tiers import DEFAULT_TIERS, capped
from claudescope.slo.window import Window

OBJECTIVE = Objective("a", "b", 0.99, BadAndTotal("bad", "total"), DEFAULT_TIERS, Origin("a.yml", 1, "0" * 64))
FAST, SLOW, TICKET_FAST, TICKET_SLOW = OBJECTIVE.tiers


def brute(objective, events, holds) -> float:
    """The sum over all counts of bad and good events."""

    def mass(count, mean):
        return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))

    most = int(events + 12 * math.sqrt(events) + 30)
    bads = [mass(bad, events * objective.budget) for bad in range(most)]
    goods = [mass(good, events * objective.target) for good in range(most)]
    return sum(
        one * other for bad, one in enumerate(bads) for good, other in enumerate(goods) if holds(bad, bad + good)
    )


@settings(max_examples=15, deadline=None)
@given(st.floats(0.5, 60), st.sampled_from([0.99, 0.9]), st.sampled_from([1.0, 3.0, 6.0]))
def test_chances_are_the_sum_over_all_counts(events, target, factor) -> None:
    objective, window = replace(OBJECTIVE, target=target), Window(3600)
    traffic = Traffic("x", events / 3600)
    tier = replace(FAST, factor=factor)
    bound = factor * objective.budget
    expected = brute(objective, events, lambda bad, total: bad > bound * total * (1 + 1e-12))
    assert share_chance(objective, tier, window, traffic) == pytest.approx(expected, rel=1e-8, abs=1e-14)
    enough: dict[int, int] = {}

    def evident(bad, total):
        if total not in enough:
            enough[total] = needed(total, objective, window)
        return bad >= enough[total]

    expected = brute(objective, events, evident)
    assert evidence_chance(objective, window, traffic) == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_chances_without_the_clause_and_of_a_tier() -> None:
    traffic = parse_traffic("36/h")
    # P(X >= 3; .36)
    fixed = evidence_chance(replace(OBJECTIVE, alpha=0, min_events=3), Window(3600), traffic)
    assert fixed == pytest.approx(1 - math.exp(-0.36) * (1 + 0.36 + 0.36**2 / 2))
    chance = tier_chances(OBJECTIVE, traffic)["page-fast"]
    assert set(chance.evidence) == {"5m", "30m", "1h"}
    assert chance.at_most == min(chance.short_share, chance.long_share, sum(chance.evidence.values()))


@pytest.mark.parametrize(
    ("text", "per_second"), [("10/s", 10), ("36/h", 0.01), ("1/min", 1 / 60), ("3/m", 0.05), ("5 / d", 5 / 86_400)]
)
def test_rates_that_are_read(text, per_second) -> None:
    assert parse_traffic(text).per_second == pytest.approx(per_second)


@pytest.mark.parametrize("text", ["", "10", "ten/s", "10/year", "-1/s", "0/s", "1000000/s"])
def test_rates_that_are_refused(text) -> None:
    with pytest.raises(UsageError, match="rate"):
        parse_traffic(text)


@pytest.mark.parametrize("mean", [0.0, 0.05, 3.0, 300.0])
def test_arrivals_have_their_mean_and_variance(mean) -> None:
    found = arrivals(random.Random(5), mean, 20_000)
    middle = sum(found) / len(found)
    spread = sum((one - middle) ** 2 for one in found) / len(found)
    assert middle == pytest.approx(mean, abs=5 * math.sqrt(mean / 20_000))
    assert spread == pytest.approx(mean, rel=0.1, abs=1e-9)
    assert found == arrivals(random.Random(5), mean, 20_000)
    assert counter([1, 0, 2], 5) == [5, 6, 6, 8]


def test_times_by_hand() -> None:
    """10 events a second, none failed before: p x / long > factor x budget."""
    busy = parse_traffic("10/s")
    # .2 x / 1h > .144: 43.2 minutes, 2592 s, and a minute of `for`: seen at the next evaluation
    assert expected_delay(OBJECTIVE, FAST, busy, 0.2) == pytest.approx(2592 + 60, abs=31)
    # .02 x / 3d > .01: 36 hours, and 15 minutes of `for`; recorded rates are 2m15s late
    assert expected_delay(OBJECTIVE, TICKET_SLOW, busy, 0.02) == pytest.approx(129_600 + 900 + 135, abs=60)
    assert expected_delay(OBJECTIVE, SLOW, busy, 0.02) is None
    # with exactly the target before: .01 + .19 x / 1h > .144
    assert expected_delay(OBJECTIVE, FAST, busy, 0.2, 0.01) == pytest.approx(3600 * 0.134 / 0.19 + 60, abs=60)
    assert least_share(OBJECTIVE, FAST, busy) == pytest.approx(0.144)
    # 10 an hour: 4 of 10 in an hour is the least evidence that page-fast can have
    assert least_share(OBJECTIVE, FAST, parse_traffic("10/h")) == pytest.approx(0.4)
    assert least_share(OBJECTIVE, FAST, parse_traffic("1/h")) is None


def test_samples_are_near_what_is_expected() -> None:
    busy = parse_traffic("10/s")
    found = [sampled_delays(OBJECTIVE, [FAST, SLOW], busy, 0.5, f"{seed}", 7200) for seed in range(7)]
    expected = [expected_delay(OBJECTIVE, tier, busy, 0.5) for tier in (FAST, SLOW)]
    for at, seconds in enumerate(expected):
        assert summary([row[at] for row in found]).median == pytest.approx(seconds, abs=90)
    assert sampled_delays(OBJECTIVE, [FAST], busy, 0.02, "0", 3600) == [None]
    never = summary([None, None, 5.0])
    assert never == (None, None, 3)


def test_false_alarms_add_up() -> None:
    day = false_alarms(OBJECTIVE, parse_traffic("10/h"), "7", 86_400)
    assert day.months == 1
    both = summed([day._replace(pages=1), day._replace(pages=2, tickets=1)])
    assert (both.months, both.pages, both.tickets) == (2, 3, 1 + day.tickets)
    rate, (low, high) = both.a_month("page")
    # 3 events: .6187 to 8.7673, by Garwood
    assert (rate, low, high) == pytest.approx((1.5, 0.6187 / 2, 8.7673 / 2), abs=1e-4)
    assert summed([]).months == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (20, "20s"),
        (60, "1m"),
        (90, "1.5m"),
        (2592, "43m"),
        (7200, "2h"),
        (18_720, "5.2h"),
        (130_000, "36h"),
        (200_000, "2.3d"),
    ],
)
def test_times_as_text(seconds, text) -> None:
    assert time_text(seconds) == text


def test_the_table_and_its_json() -> None:
    objective = replace(OBJECTIVE, target=0.9, tiers=tuple(capped(tier, 0.9) for tier in DEFAULT_TIERS))
    told: list[str] = []
    planned = plan(objective, [parse_traffic("10/h")], months=1, samples=2, seed=3, tell=told.append)
    text = write(planned)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("a-b: 90 % good in 30d, so 10 % may fail\n  page-fast: 14.4 times")
    assert "more than all events" in text
    assert "10/h: month 1 of 1" in told[0]
    again = plan(objective, [parse_traffic("10/h")], months=1, samples=2, seed=3)
    assert json.dumps(planned.json()) == json.dumps(again.json())
    tier = planned.json()["traffic"][0]["tiers"][0]
    assert (tier["name"], tier["factor"], tier["asked"]) == ("page-fast", pytest.approx(9), 14.4)
    assert [one["share"] for one in tier["detection"]] == [0.2, 1.0]


def test_what_has_no_counts_and_what_is_switched_off() -> None:
    share_only = plan(replace(OBJECTIVE, source=Ratio("a")), [parse_traffic("1/h")])
    assert "no counts" in write(share_only)
    quiet = replace(OBJECTIVE, ticket=Notice(disabled=True))
    planned = plan(quiet, [parse_traffic("1/s")], months=0, samples=0, shares=[0.3])
    assert "tickets are switched off" in write(planned)
    assert [each.tier.name for each in planned.traffic[0].tiers] == ["page-fast", "page-slow"]
    assert planned.traffic[0].false is None


SPEC = """\
version: prometheus/v1
service: shop
slos:
  - name: validity
    objective: 99
    indicator: {step_validity: {}}
"""


def test_the_command(tmp_path, capsys) -> None:
    path = tmp_path / "slo.yml"
    path.write_text(SPEC, "utf-8")
    words = ["slo", "plan", str(path), "--rate", "10/s", "--seeds", "0", "--samples", "0", "--failures", "20%"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "page-fast   5m 1h    14.4 %      never               never               44m" in text
    assert main([*words, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    shares = [one["share"] for one in found["traffic"][0]["tiers"][0]["detection"]]
    assert shares == [0.02, 0.1, 0.2, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "much"], "no rate"),
        (["--failures", "most"], "--failures is 'most'"),
        (["--before", "2"], "--before is '2'"),
        (["--seeds", "-1"], "--seeds is -1"),
    ],
)
def test_the_command_refuses(tmp_path, capsys, words, said) -> None:
    path = tmp_path / "slo.yml"
    path.write_text(SPEC, "utf-8")
    assert main(["slo", "plan", str(path), *words]) == 2
    assert said in capsys.readouterr().err
