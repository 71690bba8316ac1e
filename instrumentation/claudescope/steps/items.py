"""What the app's thread hands to the worker, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import TypeAlias

from opentelemetry.trace import Span

from .chains import Asked
from .model import Block, Call, Step, ToolResult

__all__ = ["Barrier", "BatchLines", "BlockEnded", "CallEnded", "Item", "ManualEnded", "MessageCame", "ToolsReturned"]


@dataclass(frozen=True, slots=True)
class ToolsReturned:
    """A request carries tool results: the tools that earlier calls asked for have run, until ``at`` (ns)."""

    call: Call
    results: tuple[tuple[ToolResult, Asked], ...]
    at: int


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """A block of a stream is over. Its times are those of ``perf_counter_ns``; ``offset`` makes them epoch times."""

    call: Call
    block: Block
    offset: int


@dataclass(frozen=True, slots=True)
class MessageCame:
    """A whole response came: its body as received."""

    call: Call
    body: bytes
    started: int
    ended: int


@dataclass(frozen=True, slots=True)
class BatchLines:
    """Whole lines of a batch's results, as received: each is a JSON object with a message's id and outcome."""

    call: Call
    body: bytes
    at: int


@dataclass(frozen=True, slots=True)
class CallEnded:
    """Nothing more will come of this call."""

    call: Call


@dataclass(frozen=True, slots=True)
class ManualEnded:
    """A step made by hand is over; the worker ends its span."""

    call: Call
    step: Step
    span: Span


@dataclass(frozen=True, slots=True)
class Barrier:
    """Everything put before it has been worked on once ``passed`` is set."""

    passed: Event


Item: TypeAlias = ToolsReturned | BlockEnded | MessageCame | BatchLines | CallEnded | ManualEnded | Barrier
