"""How often the pages of an objective are false, and how soon they come, beside those of sloth's rules.

    python bench/slo_pages.py [--seeds N] [--seed S] [--rate 36/h ...] [--target .99] [--failures .5]

A month at exactly the target is drawn for each seed, and both sets of rules are evaluated on the same events, with
Prometheus's arithmetic (`tests/stack/test_slo_plan_real.py` holds it against the real one). A page is a stretch in
which any page tier fires. For the delays, a share of all events begins to fail after a day at exactly the target; the
time to the first page, in minutes. Intervals are at 95 %: exact Poisson for the pages, by ranks for the median.
"""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from operator import add
from typing import NamedTuple

from claudescope.cli.progress import Progress
from claudescope.signals.intervals import median_interval, poisson_interval
from claudescope.slo.objective import BadAndTotal, Notice, Objective, Origin
from claudescope.slo.plan.alerts import alerts, episodes
from claudescope.slo.plan.counter import rates
from claudescope.slo.plan.evaluator import STEP, Evaluation
from claudescope.slo.plan.simulation import MONTH, enabled
from claudescope.slo.plan.traffic import Traffic, arrivals, counter, parse_traffic
from claudescope.slo.tiers import DEFAULT_TIERS, capped

RATES = ("1/h", "10/h", "36/h", "1/s")
BARS = {"1/h": (0.1, 290), "10/h": (0.1, 40), "36/h": (0.1, 20), "1/s": (0.1, 18)}
DAY = 86_400


class Work(NamedTuple):
    objective: Objective
    traffic: Traffic
    seed: str
    failures: float


class Found(NamedTuple):
    ours: float
    sloth: float


def objective_of(target: float) -> Objective:
    tiers = tuple(capped(tier, target) for tier in DEFAULT_TIERS)
    objective = Objective("bench", "pages", target, BadAndTotal("bad", "total"), tiers, Origin("bench", 1, "0" * 64))
    return replace(objective, ticket=Notice(disabled=True))


def sloth_pages(bad: list[float], good: list[float], budget: float) -> list[tuple[int, int]]:
    """(5m and 1h > 14.4 x budget) or (30m and 6h > 6 x), each share of the counters' own rates; no `for`."""

    def over(window: int, factor: float) -> list[bool]:
        failing, rest = rates(bad, window, STEP), rates(good, window, STEP)
        return [part > factor * budget * total for part, total in zip(failing, map(add, failing, rest), strict=True)]

    fast = map(bool.__and__, over(300, 14.4), over(3600, 14.4))
    slow = map(bool.__and__, over(1800, 6), over(21_600, 6))
    true = [at for at, holds in enumerate(map(bool.__or__, fast, slow)) if holds]
    return episodes([alerts(true, len(bad), 0, 0)], len(bad))


def our_pages(bad: list[float], good: list[float], objective: Objective) -> list[tuple[int, int]]:
    evaluation = Evaluation([bad], [good])
    return episodes((evaluation.alerts(objective, tier) for tier in enabled(objective)), len(bad))


def month(work: Work) -> Found:
    """False pages."""
    chance, mean = random.Random(f"{work.seed} month"), work.traffic.events(STEP)
    bad = counter(arrivals(chance, mean * work.objective.budget, MONTH // STEP))
    good = counter(arrivals(chance, mean * work.objective.target, MONTH // STEP))
    return Found(len(our_pages(bad, good, work.objective)), len(sloth_pages(bad, good, work.objective.budget)))


def delay(work: Work) -> Found:
    """Seconds to the first page, infinite where none comes in two days."""
    chance, mean, budget = random.Random(f"{work.seed} delay"), work.traffic.events(STEP), work.objective.budget
    history, phase = DAY // STEP, chance.random()
    steps = (2 * DAY if work.traffic.per_second < 0.001 else DAY // 2) // STEP
    both = []
    for before, after in ((budget, work.failures), (1 - budget, 1 - work.failures)):
        events = arrivals(chance, mean * before, history) + arrivals(chance, mean * after, steps)
        events[history] = sum(arrivals(chance, mean * (before * phase + after * (1 - phase)), 1))
        both.append(counter(events))
    found = []
    for pages in (our_pages(*both, work.objective), sloth_pages(*both, budget)):
        first = next((begin for begin, end in pages if end > history), None)
        found.append(float("inf") if first is None else max(0.0, first - history - phase) * STEP)
    return Found(*found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200, help="Months, and delays, for each rate. Default: 200.")
    parser.add_argument("--seed", type=int, default=0, help="Where chance begins. Default: 0.")
    parser.add_argument("--rate", action="append", default=[], help="36/h, 1/s ... Default: 1/h, 10/h, 36/h and 1/s.")
    parser.add_argument("--target", type=float, default=0.99)
    parser.add_argument("--failures", type=float, default=0.5, help="The share that fails for the delays. Default: .5.")
    parser.add_argument("--alpha", type=float, help="Instead of the default one.")
    arguments = parser.parse_args()
    objective = objective_of(arguments.target)
    if arguments.alpha is not None:
        objective = replace(objective, alpha=arguments.alpha)
    progress, missed = Progress(), 0
    print(f"{arguments.target:.4g} good, {arguments.seeds} months and delays, {arguments.failures:.0%} failures")
    print(f"{'events':<8}{'':<8}{'false pages a month':<28}{'minutes to the first page':<30}")
    with ProcessPoolExecutor() as pool:
        for text in arguments.rate or RATES:
            traffic = parse_traffic(text)
            works = [
                Work(objective, traffic, f"{arguments.seed} {text} {seed}", arguments.failures)
                for seed in range(arguments.seeds)
            ]
            pages, delays = [], []
            for found in pool.map(month, works, chunksize=4):
                pages.append(found)
                progress.tell(f"{text}: {len(pages)} of {len(works)} months")
            for found in pool.map(delay, works, chunksize=4):
                delays.append(found)
                progress.tell(f"{text}: {len(delays)} of {len(works)} delays")
            progress.clear()
            for name in Found._fields:
                count = int(sum(getattr(one, name) for one in pages))
                low, high = (bound / len(works) for bound in poisson_interval(count))
                times = sorted(getattr(one, name) / 60 for one in delays)
                middle, (early, late) = times[(len(times) - 1) // 2], median_interval(times)
                bar = ""
                if name == "ours" and text in BARS and arguments.target == 0.99 and arguments.failures == 0.5:
                    most_pages, most_minutes = BARS[text]
                    met = count / len(works) <= most_pages and middle <= most_minutes
                    missed += not met
                    bar = f"{'met' if met else 'MISSED'}: <= {most_pages} and <= {most_minutes}"
                alarms = f"{count / len(works):.3g} ({low:.2g} to {high:.2g})"
                print(
                    f"{text:<8}{name:<8}{alarms:<28}{f'{middle:.1f} ({early:.1f} to {late:.1f})':<30}{bar}", flush=True
                )
    raise SystemExit(int(missed > 0))


if __name__ == "__main__":
    main()
