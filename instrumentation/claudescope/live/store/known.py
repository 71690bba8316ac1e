"""Which spans a store has, asked by somebody who does not write it."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

__all__ = ["KnownSpans"]

_REMEMBERED: Final = 500_000
"""Span ids; a trace that is asked for over and over is read once."""
_MARKS: Final = 256


class KnownSpans:
    """The spans of a store, and those that were counted since. ``db`` only needs to read."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._traces: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._size = 0

    def count_new(self, spans: Iterable[tuple[bytes, bytes]]) -> int:
        """How many of these (trace id, span id) are new; from then on they are known."""
        listed = list(spans)
        self._recall(list(dict.fromkeys(trace for trace, _ in listed)))
        new = 0
        for trace, span in listed:
            known = self._traces[trace]
            if span not in known:
                known.add(span)
                new += 1
        self._size += new
        while self._size > _REMEMBERED and len(self._traces) > 1:
            _, ids = self._traces.popitem(last=False)
            self._size -= len(ids)
        return new

    def _recall(self, traces: list[bytes]) -> None:
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
