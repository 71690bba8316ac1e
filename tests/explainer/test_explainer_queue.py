"""The queue: each alert once for each time that it fired, each thing to do once, on disk before it is answered."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from claudescope.errors import UsageError
from claudescope.explainer.alert import Alert
from claudescope.explainer.database import StoreError
from claudescope.explainer.queue import EXPLAIN, FullError, Queue

FINGERPRINT = "00000000000000aa"


def alert(starts=1000, ends=None, fingerprint=FINGERPRINT, **labels):
    return Alert(fingerprint, starts, ends, {"claudescope_slo": "a-b", **labels}, {}, "http://p")


@pytest.fixture
def queue(tmp_path):
    opened = Queue(tmp_path / "data", 100)
    yield opened
    opened.close()


def explain(queue, places=("jira",), now=2000):
    task = queue.take(EXPLAIN, now)
    queue.explained(task, {"text": "found"}, places, now)
    return task


def test_it_is_all_there_after_it_was_opened_again(tmp_path):
    first = Queue(tmp_path, 100)
    assert first.accept([alert(tier="gold")], 1500) == (1, 0, 0)
    explain(first)
    task = first.take("jira", 2000)
    assert (task.phase, task.tries, task.since, task.kept.alert) == ("open", 1, 2000, alert(tier="gold"))
    first.close()
    again = Queue(tmp_path, 100)  # what was begun and has no end is begun again, and says so
    task = again.take("jira", 2000)
    assert (task.phase, task.tries, task.kept.report) == ("open", 2, {"text": "found"})
    again.done(task, 2500, "ABC-1")
    assert again.take("jira", 3000) is None
    again.close()


def test_only_one_process_has_it_and_the_file_is_the_owners(queue, tmp_path):
    with pytest.raises(UsageError, match="another explainer has it"):
        Queue(tmp_path / "data", 100)
    assert (tmp_path / "data" / "explainer.sqlite").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be one" * 100, "other version"])
def test_a_damaged_file_is_said(tmp_path, content):
    file = tmp_path / "explainer.sqlite"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with sqlite3.connect(file) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
    with pytest.raises(UsageError, match=r"the queue in it is damaged .*Move its files away"):
        Queue(tmp_path, 100)


def test_a_folder_that_cannot_be_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used: "):
        Queue(tmp_path / "file" / "data", 100)


def test_the_same_alert_is_known_and_a_later_start_is_another_one(queue):
    assert queue.accept([alert(), alert()], 1) == (1, 0, 1)
    assert queue.accept([alert(starts=900)], 2) == (0, 0, 1)  # two Prometheus, merged: the earlier start
    assert queue.accept([alert(starts=5000)], 3) == (1, 0, 0)  # the end of the first was never told
    assert queue.find(FINGERPRINT, 1000).alert.ends == 5000
    assert queue.find(FINGERPRINT).alert == alert(starts=5000)
    assert queue.accept([alert(starts=5000, ends=6000), alert(starts=5000, ends=6000)], 4) == (0, 1, 1)
    assert queue.accept([alert(starts=1, ends=2, fingerprint="bb" * 8)], 5) == (0, 0, 1)  # never told of its start


def test_to_close_waits_for_what_is_to_be_opened(queue):
    queue.accept([alert()], 1)
    explain(queue, ("jira", "file"))
    opening = queue.take("jira", 2000)
    queue.later(opening, 4000, "it answers 500")
    queue.accept([alert(ends=3000)], 3000)
    assert queue.take("jira", 3500) is None
    again = queue.take("jira", 4000)
    assert (again.phase, again.tries, again.kept.alert.ends) == ("open", 2, 3000)
    queue.done(opening, 4100, "ABC-1")  # as of one that had no end yet
    closing = queue.take("jira", 4200)
    assert (closing.phase, closing.ref, closing.tries) == ("close", "ABC-1", 1)
    queue.done(closing, 4300)
    assert [(one["place"], one["phase"], one["state"], one["ref"]) for one in queue.states(closing.kept.id)] == [
        (EXPLAIN, "open", "done", ""),
        ("jira", "open", "done", "ABC-1"),
        ("file", "open", "waiting", ""),
        ("jira", "close", "done", ""),
        ("file", "close", "waiting", ""),
    ]


def test_what_is_opened_with_its_end_needs_no_closing(queue):
    queue.accept([alert()], 1)
    queue.accept([alert(ends=3000)], 3000)
    explain(queue, ("file",), 3100)
    queue.done(queue.take("file", 3200), 3200, "x.json")
    assert queue.take("file", 9000) is None
    assert queue.counts() == {EXPLAIN: {"done": 1}, "file": {"done": 2}}


def test_only_what_has_ended_while_no_more_tickets_may_be_made(queue):
    queue.accept([alert(), alert(fingerprint="bb" * 8)], 1)
    explain(queue)
    explain(queue)
    queue.accept([alert(fingerprint="bb" * 8, ends=2500)], 2500)
    assert queue.take("jira", 3000, only_ended=True).kept.alert.fingerprint == "bb" * 8
    queue.done(queue.take("jira", 3000), 3000, "ABC-1")
    assert queue.made("jira", 3000) == [3000]
    assert queue.made("jira", 3001) == []


def test_a_full_queue_takes_nothing_of_a_webhook(tmp_path):
    queue = Queue(tmp_path, 2)
    with pytest.raises(FullError):
        queue.accept([alert(fingerprint=f"{number:016x}") for number in range(3)], 1)
    assert queue.counts() == {}
    queue.accept([alert(fingerprint=f"{number:016x}") for number in range(2)], 1)
    with pytest.raises(FullError):
        queue.accept([alert(fingerprint="cc" * 8)], 1)
    assert queue.accept([alert(fingerprint=f"{1:016x}", ends=5000)], 2) == (0, 1, 0)  # an end always
    queue.close()


def test_dead_letters_are_kept_and_come_back(queue):
    queue.accept([alert(), alert(fingerprint="bb" * 8)], 1)
    explain(queue)
    explain(queue, now=2500)
    queue.bury(queue.take("jira", 2500), "it answers 400")
    assert queue.bury_old("jira", 2500, "too long") == 0
    assert queue.bury_old("jira", 2501, "too long") == 1
    assert [(one["key"], one["problem"]) for one in queue.dead()] == [
        ("b" * 16 + "-1000", "too long"),
        (f"{FINGERPRINT}-1000", "it answers 400"),
    ]
    assert queue.take("jira", 9000) is None
    assert queue.revive(9000) == 2
    assert queue.take("jira", 9000).since == 9000


def test_a_try_that_sent_nothing_does_not_count(queue):
    queue.accept([alert()], 1)
    queue.later(queue.take(EXPLAIN, 1), 5, "", begun=False)
    assert queue.take(EXPLAIN, 5).tries == 1


def test_places_that_are_not_configured_any_more_are_given_up(queue):
    queue.accept([alert()], 1)
    explain(queue, ("jira", "file"))
    assert queue.drop_places(["file"]) == 1
    assert queue.take("jira", 9000) is None
    assert queue.take("file", 9000) is not None


def test_old_ones_are_forgotten_when_they_have_ended(queue):
    queue.accept([alert(), alert(fingerprint="bb" * 8)], 1000)
    queue.accept([alert(ends=2000)], 1000)
    assert queue.prune(1000, 0) == 0
    assert queue.prune(1001, 0) == 1
    assert queue.find(FINGERPRINT) is None
    assert [kept.alert.fingerprint for kept in queue.latest(10)] == ["bb" * 8]
    assert queue.prune(1001, 1001) == 1  # its end was never told
    assert queue.counts() == {}


def test_no_more_than_so_many_that_have_ended_are_kept(queue):
    queue.accept([alert(fingerprint=f"{number:016x}") for number in range(5)], 1000)
    queue.accept([alert(fingerprint=f"{number:016x}", ends=2000) for number in (0, 1, 4)], 1000)
    assert queue.prune(0, 0, most=3) == 2
    assert [kept.alert.fingerprint[-1] for kept in queue.latest(10)] == ["4", "3", "2"]


def test_labels_find_alerts_whatever_is_in_them(queue):
    strange = "a\"b\\c'd"
    queue.accept([alert(tool=strange), alert(fingerprint="bb" * 8, tool="other")], 1)
    assert [kept.alert.labels["tool"] for kept in queue.latest(10, {"tool": strange})] == [strange]
    assert queue.latest(10, {"missing": ""}) == []


def test_a_failing_file_is_an_error_of_its_own_and_takes_nothing(queue):
    queue._database._db.execute("DROP TABLE tasks")
    with pytest.raises(StoreError):
        queue.accept([alert()], 1)
    assert queue.find(FINGERPRINT) is None


def test_who_waits_is_woken_even_by_what_came_before_it_began_to_wait(queue):
    version = queue.version
    queue.accept([alert()], 1)
    queue.wait(version, 60)  # returns at once
    woken = threading.Event()

    def wait():
        queue.wait(queue.version, 60)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not woken.wait(0.01):
        queue.wake()
    thread.join()
