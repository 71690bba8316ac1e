"""The evaluator on a clock that the test sets: when each tier fires and ends, absence, canaries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live_kit import Sender
from objectives_kit import FAST, Store, objective

from claudescope import semconv
from claudescope.live.objectives.book import Book
from claudescope.live.objectives.evaluator import Evaluator
from claudescope.live.objectives.judge import Judge
from claudescope.live.objectives.windows import find_objective
from claudescope.live.web.slometrics import slo_families
from claudescope.slo.objective import Canary, LoadBound, Notice, Objective, Selection
from claudescope.slo.window import Window

START = 1_796_040_000_000


class Bench:
    """A store, an evaluator and a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *objectives: Objective) -> None:
        self.now = START
        monkeypatch.setattr("claudescope.live.store.tables.time", SimpleNamespace(time=lambda: self.now / 1000))
        self.store = Store(folder)
        self.store.install(*objectives)
        self.book = Book()
        self.book.load(self.store.db)
        self.heard: dict[str, int] = {}
        specs: Any = SimpleNamespace(counted=[(one, Judge(one)) for one in objectives], uncounted=[])
        self.evaluator = Evaluator(
            specs,
            self.store.ledger,
            self.book,
            self._submit,
            self._ask,
            "",
            lambda: self.heard,
            lambda: self.now / 1000,
        )

    async def _submit(self, work: Any) -> None:
        self.store.do(work)

    async def _ask(self, question: Any) -> Any:
        return question(self.store.db)

    def send(self, bad: int, good: int, **more: Any) -> None:
        """Events that end now."""
        sender = Sender("app")
        for number in range(bad + good):
            attributes = {semconv.STEP_VALID: number >= bad, **{key.replace("__", "."): v for key, v in more.items()}}
            sender.step(0, attributes, end_ms=self.now)
        self.store.send(sender)

    def take(self, service: str, events: Any) -> None:
        """Events with times of their own: pairs of when they ended in ms, and whether they are bad."""
        sender = Sender(service)
        for at_ms, bad in events:
            sender.step(0, {semconv.STEP_VALID: not bad}, end_ms=at_ms)
        self.store.send(sender)

    def step(self, seconds: int = 10) -> set[str]:
        """Time passes, then an evaluation: what fires."""
        self.now += seconds * 1000
        asyncio.run(self.evaluator.evaluate(self.now))
        return {key.rule for key, entry in self.book.entries.items() if entry.alarm.state == "firing"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    benches: list[Bench] = []

    def make(*objectives: Objective) -> Bench:
        benches.append(Bench(tmp_path / str(len(benches)), monkeypatch, *objectives))
        return benches[-1]

    yield make
    for bench in benches:
        bench.store.close()


def test_a_tier_fires_with_the_evaluation_at_which_both_windows_are_over(made: Any) -> None:
    """99 %, 14.4 x: over .144 in 5 min and an hour. 10 events each 10 s; from minute 30 on all are bad.

    The hour holds 1800 good ones at minute 30; b bad ones are over .144 of it when b / (1800 + b) > .144, b > 302.8:
    with the 31st ten seconds, 310. The five minutes are over it earlier.
    """
    bench = made(objective(tiers=(FAST,), keep_firing=Window(60)))
    fired: list[int] = []
    for tick in range(1, 400):
        bench.now = START + (tick - 1) * 10_000
        bench.send(*((0, 10) if tick <= 180 or tick > 240 else (10, 0)))
        if bench.step():
            fired.append(tick)
    assert fired[0] == 180 + 31
    # After 60 ticks of bad ones the hour stays over it; the five minutes hold 30 ticks, of which x are bad: x / 30 is
    # over .144 up to 5 of 30. So the condition ends with the tick that leaves 4: 240 + 26, and 60 s are kept.
    assert fired[-1] == 240 + 25 + 6
    assert fired == list(range(fired[0], fired[-1] + 1))


def test_one_failure_an_hour_pages_nobody(made: Any) -> None:
    bench = made(objective())
    rng = random.Random(3)
    for _ in range(60):
        bench.send(1, 0) if rng.random() < 0.02 else bench.send(0, 1)
        assert bench.step(3600) == set()


def test_idle_is_not_absent(made: Any) -> None:
    where = Selection(service=("app",))
    bench = made(objective(where=where, absent_after=Window(900)), objective(name="ever", absent_after=None))
    bench.send(0, 5)
    assert bench.step(3600) == set()  # it sends spans only: whether it is idle or gone, nobody can tell
    bench.heard = {"app": bench.now}
    assert bench.step(890) == set()
    assert bench.step(10) == {"absent"}
    (key,) = bench.book.entries
    assert (key.objective, bench.book.entries[key].alert.labels["alertname"]) == ("app-good", "GoodAbsent")
    assert bench.evaluator.records()[0]["absent"]
    bench.heard = {"app": bench.now, "other": 0}
    assert bench.step() == set()
    bench.heard = {"other": 0}
    assert bench.step(3600) == set()


def test_a_canary_fires_after_a_minute(made: Any) -> None:
    rule = Canary("claudescope_label_version", "2", "1")
    bench = made(objective(canary=rule, group_by=("gen_ai_request_model",), tiers=()))
    for _ in range(12):
        bench.send(10, 90, claudescope__label__version="2", gen_ai__request__model="m")
        bench.send(1, 99, claudescope__label__version="1", gen_ai__request__model="m")
        bench.send(1, 99, claudescope__label__version="3", gen_ai__request__model="m")
        bench.send(0, 1, claudescope__label__version="2", gen_ai__request__model="n")
        fires = bench.step()
    assert fires == {"canary"}
    (record,) = bench.evaluator.records()
    assert record["state"] == "burning"
    assert record["canary"].startswith("10.00% of 1200 events of 2 were bad in 30m, and 1.00% of 1200 of 1: z = ")
    assert [(group["labels"], group["total"]) for group in record["groups"]] == [
        ({"gen_ai_request_model": "m"}, 3600),
        ({"gen_ai_request_model": "n"}, 12),
    ]
    for _ in range(230):  # the canary is well again, and half an hour passes
        bench.send(0, 100, claudescope__label__version="2", gen_ai__request__model="m")
        fires = bench.step()
    assert fires == set()


def test_a_label_set_that_is_gone_ends_its_alarm(made: Any) -> None:
    tier = replace(FAST, severity="ticket")
    bench = made(objective(tiers=(tier,), group_by=("gen_ai_request_model",), period=Window(86_400)))
    bench.send(50, 0, gen_ai__request__model="m")
    assert bench.step() == {"page-fast"}
    assert bench.step(90_000) == {"page-fast"}  # kept: the condition is over since this evaluation
    assert bench.step(10) == {"page-fast"}
    assert bench.step(300) == set()


def test_a_severity_that_is_switched_off_wakes_nobody(made: Any) -> None:
    bench = made(objective(tiers=(FAST,), page=Notice(disabled=True)))
    bench.send(50, 0)
    assert bench.step() == set()


def test_records_of_what_is_not_evaluated_yet(made: Any) -> None:
    bench = made(objective("step_latency", bound=0.8, loads=(LoadBound(50, 1.2),), where=Selection(kind=("text",))))
    (record,) = bench.evaluator.records()
    assert (record["state"], record["indicator"]) == (
        "counting",
        "steps longer than 800 ms, 1.2 s above 50/s of kind text",
    )
    assert bench.evaluator.readings() == []
    assert slo_families([]) == []
    bench.step()
    (record,) = bench.evaluator.records()
    assert (record["state"], record["budget_remaining"]) == ("no_data", None)
    names = [family.name for family in slo_families(bench.evaluator.readings())]
    assert names == ["slo:objective:ratio", "slo:error_budget:ratio", "slo:time_period:days", "claudescope_slo_info"]


def until(condition: Any, seconds: float = 30) -> Any:
    async def wait() -> None:
        end = asyncio.get_running_loop().time() + seconds
        while not condition():
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.01)

    return wait()


async def test_it_goes_on_when_the_store_takes_nothing_for_a_while(
    made: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("claudescope.live.objectives.evaluator._RETRY_S", 0.01)
    monkeypatch.setattr("claudescope.live.objectives.evaluator._EXPIRE_S", 0.05)
    one, two = objective(tiers=(FAST,)), objective(name="two", tiers=(FAST,))
    bench = made(one)
    bench.send(50, 0)
    gone = bench.book.entry("app-gone", "page-fast", {})[1]
    gone.alarm.step(True, 1, 0, 0)
    failing = [True]
    tried: list[int] = []
    submit = bench.evaluator._submit

    async def sometimes(work: Any) -> None:
        tried.append(1)
        if failing[0]:
            raise OSError("disk full")
        await submit(work)

    news: asyncio.Queue[bool] = asyncio.Queue()
    specs = bench.evaluator.specs
    specs.changed, specs.error = news.get, None
    bench.evaluator._submit = sometimes
    bench.now += 10_000
    running = asyncio.ensure_future(bench.evaluator.run())
    await until(lambda: len(tried) > 2)  # nothing is counted yet, so nothing is evaluated
    assert bench.evaluator.evaluated_ms is None
    failing[0] = False
    await until(lambda: bench.evaluator.evaluated_ms == bench.now)
    assert gone.alarm.state == "inactive"
    assert [alert["labels"]["claudescope_slo"] for alert in bench.evaluator.firing] == ["app-good"]

    failing[0] = True
    specs.error = "slo.yml:1: bad"
    await news.put(False)
    await until(lambda: "the objectives stay as they were: slo.yml:1: bad" in caplog.text)
    specs.counted = [(two, Judge(two))]
    await news.put(True)
    before = len(tried)
    await until(lambda: len(tried) > before + 2)
    failing[0] = False
    await until(lambda: not bench.evaluator.firing)
    await until(lambda: find_objective(bench.store.db, "app-two").waiting == 0)  # type: ignore[union-attr]
    assert bench.evaluator.objective("app-good") is None
    assert [record["id"] for record in bench.evaluator.records()] == ["app-two"]
    bench.now += 10_000
    await bench.evaluator.evaluate(bench.now)
    assert [alert["labels"]["claudescope_slo"] for alert in bench.evaluator.firing] == ["app-two"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_an_evaluation_that_fails_is_not_the_last(
    made: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = made(objective(tiers=(FAST,)))
    bench.send(50, 0)
    bench.now += 10_000
    asked: list[int] = []
    ask = bench.evaluator._ask

    async def sometimes(question: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise OSError("no answer")
        return await ask(question)

    monkeypatch.setattr("claudescope.live.objectives.evaluator.INTERVAL_MS", 10)
    monkeypatch.setattr("claudescope.live.objectives.evaluator._SETTLE_S", 0)
    bench.evaluator._ask = sometimes
    running = asyncio.ensure_future(bench.evaluator._evaluate_for_ever())
    await until(lambda: bench.evaluator.firing)
    assert "the objectives were not evaluated once" in caplog.text

    async def fail(work: Any) -> None:
        raise OSError("disk full")

    bench.evaluator._submit = fail  # what cannot be saved is kept in memory
    bench.now += 3_600_000
    await until(lambda: bench.evaluator.evaluated_ms == bench.now)
    assert bench.evaluator.firing
    bench.now += 300_000
    await until(lambda: not bench.evaluator.firing)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
