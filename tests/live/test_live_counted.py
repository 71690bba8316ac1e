"""What the stream's figures say of themselves: up to which event they count."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from live_kit import Sender, Stream, running


def number(event_id: str) -> int:
    return int(event_id.rpartition("-")[2])


def test_figures_name_the_last_event_that_they_count(tmp_path: Path) -> None:
    with running(tmp_path / "data") as live:
        stream = Stream(live.url)
        try:
            sender = Sender()
            sender.step(0)
            sender.step(0)
            live.send(sender)
            last = [number(stream.next("step")[2]) for _ in range(2)][-1]
            while (stats := stream.next("stats")[1])["through"] < last:
                assert stats["cells"] == []
            assert [cell["count"] for cell in stats["cells"]] == [2]
        finally:
            stream.close()


def test_a_step_that_is_not_stored_yet_is_not_counted(tmp_path: Path) -> None:
    with running(tmp_path / "data") as live:
        stream = Stream(live.url)
        other = sqlite3.connect(tmp_path / "data" / "store.sqlite", isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")  # so that the writer has to wait
            sender = Sender()
            sender.step(3)
            sending = threading.Thread(target=live.send, args=(sender,))
            sending.start()
            shown = number(stream.next("step")[2])
            stats = stream.next("stats")[1]
            assert stats["through"] < shown
            assert stats["cells"] == []
            other.execute("ROLLBACK")
            sending.join()
            while (stats := stream.next("stats")[1])["through"] < shown:
                pass
            assert [(cell["step_index"], cell["count"]) for cell in stats["cells"]] == [("3", 1)]
        finally:
            other.close()
            stream.close()
