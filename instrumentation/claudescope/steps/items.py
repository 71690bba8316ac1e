"""What the app's thread hands to the worker, in the order in which it happened.

Not frozen: a frozen dataclass costs the app's thread three times as much to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import TypeAlias

from opentelemetry.trace import Span

from .chains import Asked
from .model import Block, Call, Step, ToolResult

__all__ = ["Barrier", "BatchLines", "BlockEnded", "CallEnded", "Item", "ManualEnded", "ToolsReturned"]


@dataclass(slots=True, eq=False)
class ToolsReturned:
    """A request carries tool results: the tools that earlier calls asked for have run, until ``at`` (ns)."""

    call: Call
    results: tuple[tuple[ToolResult, Asked], ...]
    at: int


@dataclass(slots=True, eq=False)
class BlockEnded:
    """A block of a stream is over. Its times are those of ``perf_counter_ns``; ``offset`` makes them epoch times."""

    call: Call
    block: Block
    offset: int


@dataclass(slots=True, eq=False)
class BatchLines:
    """Whole lines of a batch's results, as received: each is a JSON object with a message's id and outcome."""

    call: Call
    body: bytes
    at: int


@dataclass(slots=True, eq=False)
class CallEnded:
    """Nothing more will come of this call. ``body`` is the response as received, where it came whole."""

    call: Call
    body: bytes | None = None


@dataclass(slots=True, eq=False)
class ManualEnded:
    """A step made by hand is over; the worker ends its span."""

    call: Call
    step: Step
    span: Span


@dataclass(slots=True, eq=False)
class Barrier:
    """Everything put before it has been worked on once ``passed`` is set."""

    passed: Event


Item: TypeAlias = ToolsReturned | BlockEnded | BatchLines | CallEnded | ManualEnded | Barrier
