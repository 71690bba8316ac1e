"""The threads behind the queue: a place that is away keeps only its own waiting, tries get rarer, and a storm of alerts
is bounded in memory, in tickets and in questions to Prometheus.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from explainer_kit import FakePrometheus, Recorder, alert, ask, eventually, options, process, running, webhook

from claudescope.explainer.alert import Alert
from claudescope.explainer.database import StoreError
from claudescope.explainer.outbound import AwayError, RefusedError
from claudescope.explainer.queue import EXPLAIN, Queue
from claudescope.explainer.ticket import Links
from claudescope.explainer.worker import Workers, backoff


def test_tries_get_rarer():
    assert [backoff(failures) for failures in (1, 2, 3, 8, 9, 10, 10_000)] == [1, 2, 4, 128, 256, 300, 300]


class Analyst:
    """Explains nothing; ``fails`` is raised first, as often as it is there."""

    def __init__(self, *fails):
        self.fails, self.patient = list(fails), []

    def report(self, kept, *, patient):
        self.patient.append(patient)
        if self.fails:
            raise self.fails.pop(0)
        return {"explanation": None, "problem": "nothing to say"}


class Sink:
    """Notes what it is told; ``fails`` is raised first."""

    def __init__(self, *fails, name="jira", limited=False, finds=None):
        self.name, self.limited, self.fails, self.finds = name, limited, list(fails), finds
        self.opened, self.closed, self.asked = [], [], 0

    def find(self, ticket, since):
        self.asked += 1
        return self.finds

    def open(self, ticket):
        if self.fails:
            raise self.fails.pop(0)
        self.opened.append(ticket.key)
        return f"REF-{len(self.opened)}"

    def close(self, ticket, ref):
        self.closed.append((ticket.key, ref))


class Clock:
    """A time that tests turn on."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def bench(tmp_path):
    """Makes places whose steps are done one by one, by the test's own clock."""
    queue, clock = Queue(tmp_path / "data", 50_000), Clock()

    def make(*sinks, analyst=None, **more):
        given = options(tmp_path, **more)
        workers = Workers(queue, analyst or Analyst(), sinks, Links("http://e"), given, clock)
        return workers.places

    make.queue, make.clock = queue, clock
    yield make
    queue.close()


def fired(number=1, ends=None):
    return Alert(f"{number:016x}", 500_000, ends, {"claudescope_slo": "shop-validity"}, {})


def test_a_place_that_is_away_waits_longer_each_time_and_as_long_as_it_is_asked_to(bench):
    sink = Sink(AwayError("it answers 503"), AwayError("it answers 503"), AwayError("it answers 429", 100))
    places = bench(sink)
    bench.queue.accept([fired()], 1_000_000)
    assert places[EXPLAIN]._step() == 0
    assert [places["jira"]._step() for _ in range(1)] == [1]
    assert places["jira"].problem == "it answers 503"
    assert places["jira"]._step() == 5  # not due yet: nothing is asked
    bench.clock.now += 1
    assert places["jira"]._step() == 2
    bench.clock.now += 2
    assert places["jira"]._step() == 100
    bench.clock.now += 100
    assert places["jira"]._step() == 0
    assert places["jira"].problem == ""
    assert (sink.opened, sink.asked) == ([fired().key], 3)  # each further try asks first


def test_what_a_lost_try_has_made_is_taken(bench):
    sink = Sink(AwayError("no answer within 10 s"), finds="OPS-9")
    places = bench(sink)
    bench.queue.accept([fired()], 1)
    places[EXPLAIN]._step()
    places["jira"]._step()
    bench.clock.now += 1
    places["jira"]._step()
    bench.queue.accept([fired(ends=900_000)], 1)
    places["jira"]._step()
    assert (sink.opened, sink.closed) == ([], [(fired().key, "OPS-9")])


def test_what_is_tried_for_too_long_is_a_dead_letter_with_all_that_waited_as_long(bench):
    sink = Sink(*[AwayError("it answers 503")] * 50)
    places = bench(sink, give_up="1h")
    bench.queue.accept([fired(1), fired(2)], 1_000_000)
    bench.clock.now = 1000.0
    for _ in range(2):
        places[EXPLAIN]._step()
    places["jira"]._step()
    assert bench.queue.counts()["jira"] == {"waiting": 2}
    bench.clock.now += 3601
    places["jira"]._step()
    assert bench.queue.counts()["jira"] == {"dead": 2}
    assert {one["problem"] for one in bench.queue.dead()} == {"it answers 503"}


def test_what_is_refused_is_a_dead_letter_at_once_and_keeps_nobody_waiting(bench):
    sink = Sink(RefusedError("it answers 422"))
    places = bench(sink)
    bench.queue.accept([fired(1), fired(2)], 1_000_000)
    for _ in range(2):
        places[EXPLAIN]._step()
    assert [places["jira"]._step() for _ in range(2)] == [0, 0]
    assert bench.queue.counts()["jira"] == {"dead": 1, "done": 1}


def test_a_fault_of_our_own_ends_no_thread(bench):
    analyst = Analyst(KeyError("oops"))
    places = bench(analyst=analyst)
    bench.queue.accept([fired()], 1_000_000)
    assert places[EXPLAIN]._step() == 1
    assert places[EXPLAIN].problem == "KeyError"
    bench.clock.now += 1
    assert places[EXPLAIN]._step() == 0


def test_a_queue_that_fails_is_tried_again(bench, monkeypatch):
    places = bench()
    stopping = places[EXPLAIN]._stopping
    steps = []

    def step():
        steps.append(None)
        if len(steps) == 2:
            stopping.set()
        raise StoreError("disk full")

    monkeypatch.setattr(places[EXPLAIN], "_step", step)
    monkeypatch.setattr("claudescope.explainer.worker.backoff", lambda failures: 0.01)
    places[EXPLAIN].run()
    assert places[EXPLAIN].problem == "the queue fails: disk full"
    assert len(steps) == 2


def test_prometheus_is_waited_for_only_so_long(bench):
    analyst = Analyst()
    places = bench(analyst=analyst, explain_within="10m")
    bench.queue.accept([fired(1), fired(2)], 1_000_000)
    places[EXPLAIN]._step()
    bench.clock.now += 600
    places[EXPLAIN]._step()
    assert analyst.patient == [True, False]


def test_no_more_tickets_than_an_hours_limit_and_none_for_what_has_ended(bench):
    sink = Sink(limited=True)
    places = bench(sink, tickets_per_hour=2)
    bench.queue.accept([fired(number) for number in range(5)], 1_000_000)
    for _ in range(5):
        places[EXPLAIN]._step()
    assert [places["jira"]._step() for _ in range(3)] == [0, 0, 5]
    assert len(sink.opened) == 2
    bench.queue.accept([fired(0, ends=900_000), fired(2, ends=900_000)], 1_000_000)
    assert [places["jira"]._step() for _ in range(3)] == [0, 0, 5]  # one is closed, of the other nothing was made
    assert sink.closed == [(fired(0).key, "REF-1")]
    bench.clock.now += 3601
    assert [places["jira"]._step() for _ in range(3)] == [0, 0, 5]
    assert len(sink.opened) == 4
    (note,) = (one for one in bench.queue.states(3) if one["place"] == "jira" and one["phase"] == "open")
    assert (note["state"], note["problem"], note["ref"]) == ("done", "the alert ended before a ticket was made", "")


def test_a_place_that_hangs_keeps_no_other_waiting(tmp_path):
    held = threading.Event()

    def hang(asked):
        held.wait(30)
        return 200, {}

    answers = FakePrometheus()
    with Recorder(answers) as prometheus, Recorder(hang) as slow:
        more = {"prometheus": prometheus.url, "webhook": slow.url, "tickets": tmp_path / "tickets"}
        with running(tmp_path, **more, timeout=30) as it:
            ask(f"{it.url}/alerts", webhook(*(alert(number) for number in range(1, 21))))
            assert eventually(lambda: len(list((tmp_path / "tickets").glob("*.json"))) == 20)
            assert eventually(lambda: len(slow.asked) == 1)
            held.set()
            assert eventually(lambda: ask(f"{it.url}/healthz")[1]["waiting"] == 0)


STORM = 10_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_storm_of_ten_thousand_alerts_is_bounded(tmp_path):
    """Of one webhook and of many: all are taken, questions to Prometheus are few, and so are issues."""
    answers, half = FakePrometheus(), STORM // 2
    github = Recorder(lambda asked: (201, {"number": 7}))
    with github, Recorder(answers) as prometheus:
        more = {"GITHUB": github.url, "GITHUB_REPO": "a/b", "GITHUB_TOKEN": "t", "TICKETS_PER_HOUR": "5"}
        with process(tmp_path, PROMETHEUS=prometheus.url, **more) as it:
            alerts = [alert(number, unit=str(number)) for number in range(STORM)]
            assert ask(f"{it.url}/alerts", webhook(*alerts[:half]))[1]["new"] == half
            for first in range(half, STORM, 100):
                assert ask(f"{it.url}/alerts", webhook(*alerts[first : first + 100]))[1]["new"] == 100
            assert ask(f"{it.url}/alerts", webhook(*alerts[:half]))[1]["known"] == half
            assert eventually(lambda: ask(f"{it.url}/healthz")[1]["places"][EXPLAIN] == {"done": STORM}, 300, 1)
            # alerts of one minute, objective and service share an answer: bad and total
            ends = [given["end"][0] for path, given in answers.queries if path == "query_range"]
            assert len(ends) == 2 * len(set(ends))
            assert len(set(ends)) < 10
            assert eventually(lambda: len(github.asked) == 5)
            ended = [alert(number, ended=True, unit=str(number)) for number in range(STORM)]
            for first in range(0, STORM, 2000):
                assert ask(f"{it.url}/alerts", webhook(*ended[first : first + 2000]))[1]["ended"] == 2000
            assert eventually(lambda: ask(f"{it.url}/healthz")[1]["waiting"] == 0, 300, 1)
            high = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{it.process.pid}/status").read_text())
            assert int(high[1]) < 250 * 1024
            print(f"at most {int(high[1]) >> 10} MiB resident")
        assert len(github.of("POST", "/repos/a/b/issues")) == 5


def test_a_full_queue_has_alertmanager_come_again(tmp_path):
    answers = FakePrometheus()
    answers.status = 503
    with Recorder(answers) as prometheus, running(tmp_path, prometheus=prometheus.url, queue=3) as it:
        assert ask(f"{it.url}/alerts", webhook(*(alert(number) for number in range(3))))[0] == 200
        status, answer, headers = ask(f"{it.url}/alerts", webhook(alert(9)))
        assert (status, answer["error"]["code"], headers["retry-after"]) == (503, "busy", "5")
