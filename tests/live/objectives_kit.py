"""Objectives, and a store whose ledger counts them, for the tests of the embedded server's objectives."""

from __future__ import annotations

import http.server
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from live_kit import Sender

from claudescope.live.objectives.judge import Judge
from claudescope.live.objectives.ledger import Ledger
from claudescope.live.objectives.windows import counts_by_group, find_objective
from claudescope.live.records import Batch, read_spans
from claudescope.live.store.jobs import Job
from claudescope.live.store.schema import connect
from claudescope.live.store.tables import Tables
from claudescope.slo.objective import Indicator, Objective, Origin, Tier
from claudescope.slo.tiers import DEFAULT_TIERS
from claudescope.slo.window import Window

ORIGIN = Origin("slo.yml", 1, "0" * 64)
FAST = Tier("page-fast", "page", Window(300), Window(3600), 14.4, Window(0))


def objective(
    measure: str = "step_validity", *, name: str = "good", tiers: tuple[Tier, ...] = DEFAULT_TIERS, **more: Any
) -> Objective:
    """An objective of the service ``app`` on one of our measures; ``more`` of the indicator or of the objective."""
    own = {key: more.pop(key) for key in ("where", "bound", "loads", "unknown") if key in more}
    source = Indicator(measure, **own)  # type: ignore[arg-type]
    return Objective("app", name, more.pop("target", 0.99), source, tiers, ORIGIN, **more)


class Store:
    """A store without a server: requests and work in transactions, as the writer does them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.db = connect(folder)
        self.ledger = Ledger()
        self.tables = Tables(self.db, None, self.ledger)

    def send(self, *senders: Sender) -> None:
        jobs = []
        for sender in senders:
            batch = Batch()
            for _ in read_spans(sender.request, batch):
                pass
            jobs.append(Job(batch=batch))
        self._write(jobs)

    def do(self, work: Callable[[sqlite3.Connection], object]) -> None:
        self._write([Job(work=lambda db: work(db) and None)])

    def _write(self, jobs: list[Job]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.tables.write(jobs)
        self.db.execute("COMMIT")

    def install(self, *objectives: Objective) -> None:
        self.do(lambda db: self.ledger.install(db, [(one, Judge(one)) for one in objectives]))

    def work(self, now_ms: int) -> int:
        """Counts what is to be counted afterwards; how many pieces that were."""
        pieces = 0
        more = [True]
        while more[-1]:
            self.do(lambda db: more.append(self.ledger.work(db, now_ms)))
            pieces += more[-1]
        return pieces

    def counts(self, one: Objective, from_ms: int, to_ms: int, now_ms: int) -> dict[tuple[str, ...], tuple[int, int]]:
        """Bad and all events by the values of the group's labels."""
        known = find_objective(self.db, one.id)
        assert known is not None
        names = {group.number: tuple(group.labels.values()) for group in known.groups}
        found = counts_by_group(self.db, known.number, from_ms, to_ms, now_ms)
        return {names[number]: (int(counts.bad), int(counts.total)) for number, counts in found.items()}

    def close(self) -> None:
        self.db.close()


class Receiver(http.server.ThreadingHTTPServer):
    """Notes what it gets; answers with the statuses that it is told, then with 200."""

    def __init__(self) -> None:
        self.notices: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), _Take)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Take(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.tokens.append(self.headers["Authorization"])
        status = server.answers.pop(0) if server.answers else 200
        if status == 200:
            server.notices.append(body)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass
