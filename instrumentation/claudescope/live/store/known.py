"""Which spans a store has: asked by who writes it, and by who wants to know what is new."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["KnownSpans"]

_MARKS: Final = 256


class KnownSpans:
    """The spans of a store by trace, and those that were added since. ``db`` only needs to read.

    About ``most`` span ids are remembered, so that a trace that is asked for over and over is read once.
    """

    def __init__(self, db: sqlite3.Connection, most: int) -> None:
        self._db = db
        self._most = most
        self._traces: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._size = 0

    def count_new(self, spans: Sequence[tuple[bytes, bytes]]) -> int:
        """How many of these (trace id, span id) are new; from then on they are known."""
        self.recall(dict.fromkeys(trace for trace, _ in spans))
        new = sum(self.add(trace, span) for trace, span in spans)
        self.trim()
        return new

    def add(self, trace: bytes, span: bytes) -> bool:
        """Whether a span is new, of a trace that was recalled; from then on it is known."""
        known = self._traces[trace]
        if span in known:
            return False
        known.add(span)
        self._size += 1
        return True

    def trim(self) -> None:
        """Forgets the traces that were not asked for for the longest time, when there are too many spans."""
        while self._size > self._most and len(self._traces) > 1:
            _, ids = self._traces.popitem(last=False)
            self._size -= len(ids)

    def forget(self) -> None:
        """Forgets all, since some of it may not be there."""
        self._traces.clear()
        self._size = 0

    def recall(self, traces: Iterable[bytes]) -> None:
        """Reads the spans of traces that are not remembered."""
        missing = []
        for trace in traces:
            if trace in self._traces:
                self._traces.move_to_end(trace)
            else:
                missing.append(trace)
                self._traces[trace] = set()
        for at in range(0, len(missing), _MARKS):
            part = missing[at : at + _MARKS]
            marks = ", ".join("?" * len(part))
            for trace, ids in self._db.execute(
                f"SELECT trace_id, span_ids FROM spans WHERE trace_id IN ({marks})", part
            ):
                found = {ids[i : i + 8] for i in range(0, len(ids), 8)}
                self._size += len(found - self._traces[trace])
                self._traces[trace] |= found
