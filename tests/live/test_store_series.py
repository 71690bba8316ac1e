"""Series: what steps are counted by, and how many of them there can be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Sender
from store_kit import Store, job, open_store

from claudescope import semconv
from claudescope.live.records import Dims
from claudescope.live.store import series
from claudescope.live.store.series import OVERFLOW, counted_series


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data") as made:
        yield made


def labelled(value: str, tool: str = "") -> Sender:
    sender = Sender()
    attributes = {semconv.LABEL_PREFIX + "user": value, semconv.LABEL_PREFIX + "a": "b"}
    sender.step(0, {**attributes, **({semconv.TOOL_NAME: tool} if tool else {})}, trace=bytes([1] * 16))
    return sender


def test_new_series_are_told_once(store: Store) -> None:
    (first,) = store.write(labelled("x"))
    ((number, dims),) = first.series
    assert dims == Dims("app", "", "thinking", "", "", '{"a":"b","user":"x"}')
    assert [stored.series for stored in first.steps] == [number]
    (again, other) = store.write(labelled("x"), labelled("y"))
    assert again.series == []
    assert [stored.series for stored in again.steps] == [number]
    assert [found[1].labels for found in other.series] == ['{"a":"b","user":"y"}']
    assert counted_series(store.db) == [*first.series, *other.series]
    assert [row for _, row, _ in (*first.steps, *again.steps, *other.steps)] == [1, 2, 3]


def test_too_many_series_are_counted_as_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MAX_COUNTED", 3)
    monkeypatch.setattr(series, "_FOLDED", 2)
    monkeypatch.setattr(series, "_REMEMBERED", 2)
    own = [store.write(labelled(f"user-{number}"))[0] for number in range(3)]
    assert [stored.series[0][0] for stored in own] == [stored.steps[0].series for stored in own]
    folded = [store.write(labelled(f"late-{number}", f"tool-{number % 3}"))[0] for number in range(9)]
    counted = dict(counted_series(store.db))
    names = [counted[stored.steps[0].series] for stored in folded]
    # two more with their tool, then those without
    assert names[0] == names[3] == names[6] == Dims("app", "", "thinking", "tool-0", "", OVERFLOW)
    assert names[1] == names[4] == Dims("app", "", "thinking", "tool-1", "", OVERFLOW)
    assert names[2] == names[5] == names[8] == Dims("app", "", "thinking", "", "", OVERFLOW)
    assert len(counted) == 3 + 3
    for number in range(4):  # other services find no room but that of all the rest
        sender = Sender(f"service-{number}")
        sender.step(0)
        store.write(sender)
    assert len(counted_series(store.db)) == 3 + 2 + 2 + 1
    assert Dims("", "", "", "", "", OVERFLOW) in dict(counted_series(store.db)).values()
    # each step has its own series all the same
    sql = "SELECT count(DISTINCT labels) FROM series JOIN steps ON steps.series = series.id WHERE labels LIKE '%late%'"
    assert store.one(sql) == (9,)
    assert store.one("SELECT count(*) FROM steps") == (16,)


def test_a_transaction_that_failed_leaves_no_series(store: Store) -> None:
    store.db.execute("BEGIN")
    store.tables.write([job(labelled("x"))])
    store.db.execute("ROLLBACK")
    store.tables.forget()
    (stored,) = store.write(labelled("x"))
    assert stored.series == [(1, stored.series[0][1])]
    assert stored.steps[0].row == 2
    assert store.one("SELECT count(*) FROM series") == (1,)


def test_rows_of_steps_are_never_given_twice(tmp_path: Path) -> None:
    with open_store(tmp_path / "data") as store:
        store.write(labelled("x"))
        store.db.execute("INSERT INTO meta VALUES ('rollup_watermark', 40)")  # counted so far, and gone since
        store.db.execute("INSERT INTO meta VALUES ('last_run', 9)")
        store.db.execute("DELETE FROM steps")
        store.db.execute("DELETE FROM runs")
        store.db.execute("DELETE FROM spans")
    with open_store(tmp_path / "data") as store:
        (stored,) = store.write(labelled("x"))
        assert stored.steps[0].row == 41
        assert store.one("SELECT max(id) FROM runs") == (10,)
