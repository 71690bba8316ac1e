"""An answer that takes too long is given up, and the next one is given."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from live_kit import Client, Sender, running

from claudescope.live.store import deadline
from claudescope.live.store.deadline import SlowAnswerError, answer_until

ENDLESS = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_an_endless_query_is_interrupted() -> None:
    db = sqlite3.connect(":memory:")
    with pytest.raises(SlowAnswerError):
        answer_until(time.monotonic() + 0.1, db, lambda db: db.execute(ENDLESS).fetchone())
    assert answer_until(time.monotonic() + 60, db, lambda db: db.execute("SELECT 1").fetchone()) == (1,)
    with pytest.raises(SlowAnswerError):  # its time was over before its turn came
        answer_until(time.monotonic() - 1, db, lambda db: 1)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        answer_until(time.monotonic() + 60, db, lambda db: db.execute("SELECT * FROM none"))
    db.close()


def test_the_server_says_503_and_answers_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "data") as live:
        sender = Sender()
        sender.step(0)
        live.send(sender)
        with monkeypatch.context() as patched:
            patched.setattr(deadline, "ANSWER_S", 0.2)
            patched.setattr(
                "claudescope.live.store.reader.find_steps", lambda db, query: db.execute(ENDLESS).fetchone()
            )
            statuses: list[Any] = []
            threads = [
                threading.Thread(target=lambda: statuses.append(_code(live))) for _ in range(6)
            ]  # more than there are threads that read
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert statuses == [(503, "query_too_slow", "1")] * 6
        assert len(live.items("/api/steps")) == 1


def _code(live: Client) -> tuple[int, str, str]:
    answer = live.get("/api/steps")
    return answer.status, answer.json["error"]["code"], answer.headers["retry-after"]
