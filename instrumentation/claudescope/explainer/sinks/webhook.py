"""Tickets to a webhook of one's own: the JSON of the ticket, posted once when it is made and once when it ends."""

from __future__ import annotations

from contextlib import suppress

from ..outbound import Caller, UnreadError, bearer
from ..ticket import Ticket

__all__ = ["WebhookSink"]


class WebhookSink:
    """A URL. ``Idempotency-Key`` is the same in each try, so that the other side tells a second one."""

    name = "webhook"
    limited = False

    def __init__(self, url: str, token: str, call: Caller) -> None:
        self._url = url
        self._headers = bearer(token)
        self._call = call

    def find(self, ticket: Ticket, since: int) -> str | None:
        """Not asked: the key says it."""
        return None

    def open(self, ticket: Ticket) -> str:
        """Posts it."""
        self._post(ticket, ticket.key)
        return ticket.key

    def close(self, ticket: Ticket, ref: str) -> None:
        """Posts it again, with its end."""
        self._post(ticket, f"{ticket.key}-resolved")

    def _post(self, ticket: Ticket, key: str) -> None:
        with suppress(UnreadError):  # any 2xx is a delivery: Slack, for one, answers "ok"
            self._call("POST", self._url, ticket.json(), {**self._headers, "Idempotency-Key": key})
