"""The embedded server beside a real Prometheus, on the same events: shares of all windows, and when alerts begin."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from e2e_kit import Server, free_port
from slo_prometheus import SCRAPE_S, Event, backfill, open_metrics, poisson, prometheus, samples, send, value
from stack_backends import get
from stack_native import BINARIES

from claudescope.slo.objective import Indicator, Objective, Selection
from claudescope.slo.rules import compiler
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.rules.rule import Recording
from claudescope.slo.spec.load import load

pytestmark = [pytest.mark.stack]

HOUR = 3_600_000
RATES = {"busy": 2.0, "usual": 1.0, "rare": 1 / 60, "lonely": 1 / 600}
"""Events a second of each service."""
SHARES = {"busy": 0.2, "usual": 0.1, "rare": 0.1, "lonely": 0.3}
SPEC = "".join(
    f"version: prometheus/v1\nservice: {name}\nslos:\n"
    "  - {name: good, objective: 99, indicator: {step_validity: {}}}\n---\n"
    for name in RATES
)


class Both(NamedTuple):
    """A Prometheus and a server with the same events, which end at ``end_ms``."""

    prometheus: str
    server: str
    objectives: dict[str, Objective]
    events: dict[str, list[Event]]


@pytest.fixture(scope="module")
def both(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    spec = folder / "slo.yml"
    spec.write_text(SPEC)
    rng = random.Random(11)
    end = int(time.time()) // 60 * 60_000
    start = end - 8 * HOUR
    events = {name: poisson(rng, start, end, rate, SHARES[name]) for name, rate in RATES.items()}
    backfill(folder, [open_metrics(name, samples(own, start, end + 1)) for name, own in events.items()])
    program = prometheus(folder, free_port())
    server = Server(folder / "data", free_port(), "--slo", str(spec))
    try:
        program.start()
        for name, own in events.items():
            send(server.url, name, own)
        objectives = {one.service: one for one in load([spec])}
        yield Both(program.health.removesuffix("/-/ready"), server.url, objectives, events)
    finally:
        server.stop()
        program.stop()


def settled(both: Both) -> dict[str, Any]:
    """The answer of the first evaluation after everything was stored."""
    until = time.monotonic() + 60
    stored = time.time() * 1000
    while True:
        found = get(f"{both.server}/api/slos")
        if found["evaluated_ms"] and found["evaluated_ms"] > stored:
            return found
        assert time.monotonic() < until
        time.sleep(0.5)


def recorded(objective: Objective, name: str) -> str:
    """The expression of a record, with those of the records that it reads inside: it can be asked of the past."""
    every = [rule for group in compiler.compile([objective]).groups for rule in group.rules]
    rules = {rule.name: rule for rule in every if isinstance(rule, Recording)}

    def expression(name: str) -> str:
        text = rules[name].expr
        for inner in set(re.findall(r"slo:[a-z_]+:[a-z0-9_]+", text)):
            own = re.escape(inner) + r"\{[^}]*\}"
            text = re.sub(own + r"(\[\w+)\]", lambda match, inner=inner: f"({expression(inner)}){match[1]}:30s]", text)
            text = re.sub(own, lambda match, inner=inner: f"({expression(inner)})", text)
        return text

    return expression(name)


def test_shares_of_all_windows(both: Both, record_property: Any) -> None:
    """Exact in the server at every rate; Prometheus' own error is within 1 % from an event a second and an hour on."""
    answer = settled(both)
    at = answer["evaluated_ms"]
    told = []
    for item in answer["items"]:
        name, own = item["service"], both.events[item["service"]]
        objective = both.objectives[name]
        for window in item["windows"]:
            length = next(
                tier_window.seconds
                for tier in objective.tiers
                for tier_window in (tier.short, tier.long)
                if str(tier_window) == window["window"]
            )
            bucket = 10_000 if length <= 3600 else 60_000 if length <= 2 * 86_400 else 300_000
            begin = (at - length * 1000) // bucket * bucket
            events = [event for event in own if begin <= event.at_ms < at]
            assert (window["bad"], window["total"]) == (sum(event.bad for event in events), len(events))
            real = value(both.prometheus, recorded(objective, f"slo:sli_error:ratio_rate{window['window']}"), at / 1000)
            share = window["bad"] / window["total"] if window["total"] else None
            error = None if not share or real is None else real / share - 1
            told.append(f"{name} {window['window']}: server {share}, Prometheus {real}, error {error}")
            if RATES[name] >= 1 and length >= 3600:
                assert error is not None
                # two hours are the shortest sum of recorded rates: the 5 minutes at its ends are a good part of it
                assert abs(error) < (0.03 if length == 7200 else 0.01), told[-1]
    print(*told, sep="\n")
    record_property("shares", told)


# --------------------------------------------------------------------------------------------------- when it fires


def firing_in_promtool(folder: Path, objective: Objective, taken: list[tuple[int, int, int]]) -> dict[str, list[int]]:
    """The seconds at which each tier fires, by Prometheus' own engine: it is told to expect nothing, and says what is.

    Times count from the first sample.
    """
    rules = folder / "rules.yml"
    rules.write_text(text_of(compiler.compile([objective]), "prometheus"))
    end = (len(taken) - 1) * SCRAPE_S
    series = {
        verdict: " ".join(str(sample[place]) for sample in taken) for verdict, place in (("false", 1), ("true", 2))
    }
    lines = [
        "rule_files: [rules.yml]",
        "evaluation_interval: 30s",
        "tests:",
        f"  - interval: {SCRAPE_S}s",
        "    input_series:",
        *(
            f'      - {{series: \'claudescope_steps_total{{service_name="app",claudescope_step_valid="{verdict}"}}\','
            f" values: '{values}'}}"
            for verdict, values in series.items()
        ),
        "    promql_expr_test:",
        *(
            f"      - {{expr: 'ALERTS{{alertstate=\"firing\"}}', eval_time: {at}s, exp_samples: []}}"
            for at in range(0, end, 30)
        ),
    ]
    (folder / "test.yml").write_text("\n".join(lines))
    done = subprocess.run(
        [BINARIES / "promtool", "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, timeout=300
    )
    said = done.stdout + done.stderr
    found: dict[str, list[int]] = {}
    for time_, got in re.findall(r"time: (\S+),\s+exp:nil\s+got:(.*)", said) or _by_lines(said):
        for tier in re.findall(r'burnrate_tier="([^"]+)"', got):
            found.setdefault(tier, []).append(_seconds(time_))
    return found


def _by_lines(said: str) -> list[tuple[str, str]]:
    return re.findall(r"time: ([0-9hms]+),[^\n]*\n(.*?)(?=\n\s*expr:|\Z)", said, re.DOTALL)


def _seconds(text: str) -> int:
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    assert parts is not None, text
    return sum(int(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))


def firing_in_server(folder: Path, spec: Path, events: list[Event], start: int, end: int) -> dict[str, list[int]]:
    """The same, by the embedded server's ledger and evaluator with a clock that runs as the events do."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "live"))
    from test_objectives_evaluator import Bench  # the harness of its unit tests

    with pytest.MonkeyPatch.context() as patch:
        bench = Bench(folder / "data", patch, *load([spec]))
        found: dict[str, list[int]] = {}
        place = 0
        for now in range(start, end, 10_000):
            bench.now = now
            upto = place
            while upto < len(events) and events[upto].at_ms < now + 10_000:
                upto += 1
            bench.take("app", events[place:upto])
            place = upto
            for tier in bench.step():
                found.setdefault(tier, []).append((bench.now - start) // 1000)
        bench.store.close()
    return found


@pytest.mark.parametrize(("per_s", "burst"), [(2.0, 0.3), (1.0, 0.18), (10.0, 0.2)])
def test_alerts_begin_at_the_same_evaluation(programs: Path, tmp_path: Path, per_s: float, burst: float) -> None:
    spec = tmp_path / "slo.yml"
    spec.write_text(
        "version: prometheus/v1\nservice: app\nslos:\n"
        "  - {name: good, objective: 99, indicator: {step_validity: {}}, absent_after: never}\n"
    )
    rng = random.Random(int(per_s * 10))
    start = 1_796_040_000_000
    calm, end = start + 90 * 60_000, start + 180 * 60_000
    events = [*poisson(rng, start, calm, per_s, 0.005), *poisson(rng, calm, end, per_s, burst)]
    (objective,) = load([spec])
    assert isinstance(objective.source, Indicator)
    assert objective.source.where == Selection(service=("app",))
    real = firing_in_promtool(tmp_path, objective, samples(events, start, end))
    ours = firing_in_server(tmp_path, spec, events, start, end)
    assert set(real) == set(ours)
    assert {"page-fast", "page-slow"} <= set(ours)
    later = {tier.name: real[tier.name][0] - ours[tier.name][0] for tier in objective.tiers}
    print(per_s, burst, "Prometheus fires later by s:", later)
    # An evaluation of Prometheus is 30 s, and its counters are those of the last scrape, up to 15 s before.
    assert -30 <= later["page-fast"] <= 30 + SCRAPE_S
    # Windows over an hour are sums of recorded rates, which hold an event only when 5 minutes have passed over it.
    smeared = 150 + 30 + SCRAPE_S
    assert all(-30 <= seconds <= smeared for seconds in later.values()), later
