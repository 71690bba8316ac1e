"""Which agent run a request continues: the tool uses seen, by id, with the chain and the call that asked for them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final, NamedTuple

from opentelemetry.trace import SpanContext

from .model import Chain

__all__ = ["Asked", "ChainBook", "asking_types"]

_ASKING: Final = ("tool_use",)
_ASKING_PAUSED: Final = ("tool_use", "server_tool_use", "mcp_tool_use")


def asking_types(stop_reason: object) -> tuple[str, ...]:
    """Types of the blocks of a response by whose ids the next request of the run is known.

    A response that stopped with ``pause_turn`` is sent back as it is, with the uses of the server's own tools.
    """
    return _ASKING_PAUSED if stop_reason == "pause_turn" else _ASKING


class Asked(NamedTuple):
    """A tool use: its chain, the span of the call that asked, when its block ended (ns since the epoch), the tool."""

    chain: Chain
    context: SpanContext
    ended: int
    tool_name: str


class ChainBook:
    """The tool uses of the last hour, at most 10,000: the one that was not used for longest leaves first.

    Safe from any thread. ``clock`` gives seconds and never runs backwards. An entry stays when it is claimed, since
    a request may be sent again; a claim counts as a use, but no entry lives beyond its hour.
    """

    def __init__(
        self, capacity: int = 10_000, lifetime: float = 3600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = capacity
        self._lifetime = lifetime
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, Asked]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def register(self, tool_use_id: str, asked: Asked) -> None:
        """Notes a tool use whose block has ended."""
        now = self._clock()
        with self._lock:
            self._entries[tool_use_id] = (now + self._lifetime, asked)
            self._entries.move_to_end(tool_use_id)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def claim(self, tool_use_ids: Iterable[str]) -> dict[str, Asked]:
        """Those of the ids that are known and not too old, in the order given; the entries stay."""
        now = self._clock()
        claimed: dict[str, Asked] = {}
        with self._lock:
            for tool_use_id in tool_use_ids:
                entry = self._entries.get(tool_use_id)
                if entry is None:
                    continue
                if entry[0] <= now:
                    del self._entries[tool_use_id]
                    continue
                self._entries.move_to_end(tool_use_id)
                claimed[tool_use_id] = entry[1]
        return claimed

    def reset_lock(self) -> None:
        """For the child of a fork: another thread of the parent may have held the lock."""
        self._lock = Lock()
