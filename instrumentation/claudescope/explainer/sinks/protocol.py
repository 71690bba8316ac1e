"""What a place is to the explainer."""

from __future__ import annotations

from typing import Protocol

from ..ticket import Ticket

__all__ = ["Sink"]


class Sink(Protocol):
    """A place where a ticket is made when an alert is explained, and closed when it ends.

    All raise AwayError where it may work later, and RefusedError where it will not.
    """

    @property
    def name(self) -> str:
        """Its name in the queue."""
        ...

    @property
    def limited(self) -> bool:
        """Whether people are told of each ticket: then no more are made than an hour's limit."""
        ...

    def find(self, ticket: Ticket, since: int) -> str | None:
        """What was made for the ticket by a try from ``since`` (Unix ms) on whose end is not known; None for nothing.

        A place that takes the same ticket twice as one says None.
        """
        ...

    def open(self, ticket: Ticket) -> str:
        """Makes it; what names it there, not empty."""
        ...

    def close(self, ticket: Ticket, ref: str) -> None:
        """Says at what ``open`` or ``find`` named that the alert has ended. May be called again after a kill."""
        ...
