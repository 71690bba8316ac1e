"""The message batches that a stand-in holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

__all__ = ["Batch", "Batches", "timestamp"]

Outcome = dict[str, Any]
"""The ``result`` object of one request of a batch."""


def timestamp(ns: int) -> str:
    """Nanoseconds since the epoch in RFC 3339 with whole seconds, UTC."""
    return datetime.fromtimestamp(ns // 1_000_000_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Batch:
    """One batch: its requests and, for each, the outcome. It ends after ``polls`` looks at it, cancelled or not."""

    id: str
    created: int
    outcomes: list[tuple[str, Outcome]]
    """Each request's ``custom_id`` and outcome, in the order of the requests."""
    polls: int
    cancelled: bool = False

    @property
    def ended(self) -> bool:
        """Whether results are there."""
        return self.polls <= 0

    def cancel(self) -> None:
        """Cancels what has not ended: every request of it counts as canceled."""
        if not self.ended:
            self.cancelled = True
            self.outcomes = [(custom_id, {"type": "canceled"}) for custom_id, _ in self.outcomes]

    def look(self, base_url: str) -> dict[str, Any]:
        """The ``message_batch`` object as it stands; the batch is one look nearer to its end afterwards."""
        seen = self.describe(base_url)
        self.polls -= 1
        return seen

    def describe(self, base_url: str) -> dict[str, Any]:
        """The ``message_batch`` object as it stands."""
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        for _, outcome in self.outcomes:
            counts[outcome["type"] if self.ended else "processing"] += 1
        day = timedelta(days=1) // timedelta(microseconds=1) * 1000
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "canceling" if self.cancelled else "in_progress",
            "request_counts": counts,
            "ended_at": timestamp(self.created) if self.ended else None,
            "created_at": timestamp(self.created),
            "expires_at": timestamp(self.created + day),
            "archived_at": None,
            "cancel_initiated_at": timestamp(self.created) if self.cancelled else None,
            "results_url": f"{base_url}/v1/messages/batches/{self.id}/results" if self.ended else None,
        }

    def results(self) -> bytes:
        """The results as JSON lines."""
        return b"".join(
            json.dumps({"custom_id": custom_id, "result": outcome}, separators=(",", ":"), ensure_ascii=False).encode()
            + b"\n"
            for custom_id, outcome in self.outcomes
        )


class Batches:
    """All batches, newest last. ``polls`` is how often a new one is retrieved in progress before it has ended."""

    def __init__(self, polls: int = 0) -> None:
        self._polls = polls
        self._batches: dict[str, Batch] = {}

    def create(self, id: str, created: int, requests: list[Any], outcome: Callable[[dict[str, Any]], Outcome]) -> Batch:
        """Makes a batch; ``outcome`` gives the result for the ``params`` of a request."""
        outcomes = [(str(request["custom_id"]), outcome(request["params"])) for request in requests]
        self._batches[id] = batch = Batch(id, created, outcomes, self._polls + 1)
        return batch

    def get(self, id: str) -> Batch | None:
        """The batch with that id."""
        return self._batches.get(id)

    def delete(self, id: str) -> bool:
        """Forgets a batch; False when there is none."""
        return self._batches.pop(id, None) is not None

    def page(self, base_url: str) -> dict[str, Any]:
        """All batches, newest first, as one page."""
        data = [batch.describe(base_url) for batch in reversed(list(self._batches.values()))]
        return {
            "data": data,
            "has_more": False,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
        }
