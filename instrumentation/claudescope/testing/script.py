"""What a stand-in answers: replies made of blocks, with their pace and their faults, and how one is chosen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .blocks import (
    Block,
    compaction,
    mcp_tool_result,
    mcp_tool_use,
    redacted_thinking,
    server_tool_use,
    text,
    thinking,
    tool_use,
    unfinished,
    unknown,
    web_search_tool_result,
)
from .faults import Cut, Fault, Garbled, HTTPFault, Stall, StreamError, Unprocessed

__all__ = [
    "REALISTIC",
    "Block",
    "Cut",
    "Fault",
    "Garbled",
    "HTTPFault",
    "Pace",
    "Replies",
    "Reply",
    "Script",
    "ScriptError",
    "Stall",
    "StreamError",
    "Unprocessed",
    "Usage",
    "compaction",
    "error",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "say",
    "server_tool_use",
    "text",
    "thinking",
    "tool_use",
    "unfinished",
    "unknown",
    "web_search_tool_result",
]


class ScriptError(Exception):
    """The script has no reply left, or gave something that is none; the stand-in answers 400 with this message."""


@dataclass(frozen=True)
class Pace:
    """How fast a reply comes. Seconds: ``first`` to the first event, ``delta`` before each delta, ``block`` before each
    block but the first. ``chunk`` is the characters of a delta. ``jitter`` (0 to 1) varies times and chunks by that
    share, from the stand-in's seed. A reply that is not streamed takes the same time in all.
    """

    first: float = 0.0
    delta: float = 0.0
    block: float = 0.0
    chunk: int = 16
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if self.chunk < 1:
            raise ValueError("chunk must be at least 1 character")
        if not 0 <= self.jitter <= 1:
            raise ValueError("jitter must be between 0 and 1")


REALISTIC: Final = Pace(first=0.5, delta=0.03, block=0.12, chunk=12, jitter=0.5)
"""About 400 characters a second after half a second: the pace of a mid-sized model."""


@dataclass(frozen=True)
class Usage:
    """Token counts. ``input_tokens`` and ``output_tokens`` left out are estimated, at four characters a token.

    ``ephemeral_1h_input_tokens`` are those of ``cache_creation_input_tokens`` that are written for an hour.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    thinking_tokens: int | None = None
    web_search_requests: int | None = None
    ephemeral_1h_input_tokens: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.ephemeral_1h_input_tokens <= self.cache_creation_input_tokens:
            raise ValueError("ephemeral_1h_input_tokens must be a part of cache_creation_input_tokens")


@dataclass(frozen=True)
class Reply:
    """One answer: its content blocks, and how it ends, is paced and fails.

    ``stop_reason`` left out is ``tool_use`` where a ``tool_use`` block is, else ``end_turn``. ``refusal`` is the
    category of a refusal's ``stop_details``. ``pings`` sends a ``ping`` event after each that many deltas, beside the
    one that the API always sends after the first ``content_block_start``. ``model`` replaces the request's.
    ``limits`` are the rate limits that the headers tell, each with what remains of it, by ``requests``, ``tokens``,
    ``input_tokens`` or ``output_tokens``: ``{"tokens": (540_000, 54_000)}``; by default those of an organisation with
    nearly all left, and with ``{}`` there are none.
    """

    content: Sequence[Block] = ()
    stop_reason: str | None = None
    stop_sequence: str | None = None
    refusal: str | None = None
    usage: Usage = field(default_factory=Usage)
    pace: Pace | None = None
    fault: Fault | None = None
    pings: int = 0
    model: str | None = None
    limits: Mapping[str, tuple[int, int]] | None = None

    @property
    def reason(self) -> str:
        """The stop reason that is sent."""
        if self.stop_reason is not None:
            return self.stop_reason
        if self.stop_sequence is not None:
            return "stop_sequence"
        if self.refusal is not None:
            return "refusal"
        return "tool_use" if any(block.type == "tool_use" for block in self.content) else "end_turn"

    def failing(self, fault: Fault) -> Reply:
        """The same reply with a fault."""
        return replace(self, fault=fault)

    def paced(self, pace: Pace) -> Reply:
        """The same reply at another pace."""
        return replace(self, pace=pace)


def say(*content: Block | str, stop_reason: str | None = None, **more: Any) -> Reply:
    """A reply; a plain string among the blocks is a text block. ``more`` are fields of ``Reply``."""
    blocks = tuple(text(part) if isinstance(part, str) else part for part in content)
    return Reply(blocks, stop_reason, **more)


def error(
    status: int,
    message: str | None = None,
    *,
    type: str | None = None,
    retry_after: float | None = None,
    attempts: int | None = None,
    then: Reply | None = None,
) -> Reply:
    """An HTTP error: each time, or ``attempts`` times (1 if only ``then`` is given) and then the reply ``then``."""
    if then is not None and attempts is None:
        attempts = 1
    return replace(then or say("ok"), fault=HTTPFault(status, type, message, retry_after, attempts=attempts))


Replies = Reply | Iterable[Reply] | Callable[[dict[str, Any]], Reply]
"""One reply for every request; replies in order, one a request; or a function of the request's JSON body.

In a request that continues a thread (beta), the function sees the whole conversation, as the model does."""


class Script:
    """Chooses the reply to each request, in the order in which the requests come.

    Of an iterable each request takes the next reply; the one after the last is an error (give an endless iterable,
    such as ``itertools.cycle``, to go on). A reply whose fault has ``attempts`` answers that many requests with the
    same body and one more. A function is called once a request, on the stand-in's thread: it must return quickly.
    """

    def __init__(self, replies: Replies) -> None:
        self._choose: Callable[[dict[str, Any]], Reply] | None = None
        self._each: Reply | None = None
        if isinstance(replies, Reply):
            self._each = replies
        elif callable(replies):
            self._choose = replies
        else:
            self._queue = iter(replies)
        self._taken = 0
        self._held: dict[str, tuple[Reply, int]] = {}
        self._lock = threading.Lock()

    def reply(self, request: dict[str, Any], key: str) -> Reply:
        """The reply to a request. ``key`` is the same for the attempts at one request. Raises ScriptError."""
        with self._lock:
            reply, attempt = self._held.pop(key, (None, 0))
            if reply is None:
                reply = self._next(request)
            attempts = None if reply.fault is None else reply.fault.attempts
            if attempts is None:
                return reply
            if attempt >= attempts:
                return replace(reply, fault=None)
            self._held[key] = (reply, attempt + 1)
            return reply

    def _next(self, request: dict[str, Any]) -> Reply:
        if self._each is not None:
            return self._each
        if self._choose is not None:
            reply = self._choose(request)
        else:
            try:
                reply = next(self._queue)
            except StopIteration:
                raise ScriptError(f"The script has no reply left: it gave {self._taken}.") from None
            self._taken += 1
        if not isinstance(reply, Reply):
            raise ScriptError(f"The script gave {type(reply).__name__}, which is not a Reply.")
        return reply
