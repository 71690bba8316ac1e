"""What a call and its steps are, between the app's thread, the worker and the emitted spans.

Times are nanoseconds since the epoch. Offsets are characters into a step's text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentelemetry.trace import Span, SpanContext, TracerProvider
from opentelemetry.util.types import AttributeValue

__all__ = ["SUB_STEPS_MAX", "Block", "Call", "CallError", "Chain", "Delta", "Reason", "Step", "ToolResult"]

SUB_STEPS_MAX: Final = 64
"""Steps that the blocks of one call are cut into; a block beyond it is still one step."""

LatencySource = Literal["measured", "consumer", "apportioned"]
Incomplete = Literal["failed", "closed", "dropped", "cancelled"]
StreamEnd = Literal["completed", "failed", "closed", "dropped", "cancelled"]

Delta = tuple[int, int, str]
"""One piece of a streamed block: when the app asked for it, when it came (ns), and its text or JSON fragment."""


@dataclass(eq=False, slots=True)
class Chain:
    """One agent run: the calls that answer each other's tool uses, or those inside ``claudescope.run``.

    ``keep``, ``next_index`` and ``confidence`` are the worker's; the rest is set on the app's thread.
    """

    id: str = field(default_factory=lambda: f"{random.getrandbits(128):032x}")
    name: str | None = None
    root: SpanContext | None = None
    """Span that a follow-up call without an active span is a child of: the chain's first call."""
    previous: SpanContext | None = None
    """Span of the latest call, for the link of the next one."""
    labels: dict[str, str] = field(default_factory=dict)
    keep: bool = False
    next_index: int = 0
    confidence: float | None = None
    """Product of the known step confidences so far; None while none is known."""

    def take_index(self) -> int:
        """The next step number."""
        index = self.next_index
        self.next_index = index + 1
        return index


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call failed: a short low-cardinality type and, where there was one, the HTTP status."""

    type: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A ``tool_result`` block of a request's last message."""

    tool_use_id: str
    is_error: bool


@dataclass(slots=True)
class Block:
    """One content block as it came: streamed with the times of its deltas, or whole (no deltas).

    ``fields`` is what the block's start (streamed) or the whole block (not streamed) holds, without later changes.
    """

    index: int
    type: str
    fields: dict[str, Any]
    started: int
    ended: int
    deltas: list[Delta] = field(default_factory=list)
    streamed: bool = False
    incomplete: Incomplete | None = None
    stop_reason: str | None = None
    """The response's stop reason, on its last block only."""


@dataclass(eq=False, slots=True)
class Call:
    """One API call. Made on the app's thread, finished and read by the worker; never shared with the app."""

    chain: Chain
    started: int
    span: Span
    """The span that the steps are children of: the SDK's, an instrumentation's, or ours."""
    owned: bool
    """Whether ``span`` is ours to end."""
    operation: str = "chat"
    model: str = ""
    provider: str = "anthropic"
    base_url: Any = None
    """The client's, as the SDK's HTTP library has it: it never changes, so it may be read later."""
    streamed: bool = False
    tracer_provider: TracerProvider | None = None
    """The client's own provider, where it has one; its steps go there too."""
    labels: dict[str, str] = field(default_factory=dict)
    ended: int = 0
    first_chunk: int | None = None
    """When the first content of a stream came."""
    chunks: int = 0
    request: bytes | None = None
    """The body as sent."""
    headers: Mapping[str, AttributeValue] = field(default_factory=dict)
    """What the API's response headers say, by the attribute that it becomes; not changed once it is set."""
    response_id: str | None = None
    response_model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    """The API's ``usage`` object as it stands at the end: token counts are never summed over events."""
    error: CallError | None = None
    stream_end: StreamEnd | None = None
    sub_steps_left: int = SUB_STEPS_MAX
    """How many more sub-steps segmentation may make of this call's blocks; the worker counts down."""
    has_content: bool = False
    """Whether a content block has been worked on; the worker's."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    """The response's content as far as it came; kept with content mode ``full`` only."""
    _decoded: dict[str, Any] | None = None

    @property
    def context(self) -> SpanContext:
        """Context of the span that the steps are children of."""
        return self.span.get_span_context()

    @property
    def server_address(self) -> str:
        """The API's host, or the empty string."""
        return self.base_url.host if self.base_url is not None else ""

    @property
    def server_port(self) -> int:
        """The API's port."""
        url = self.base_url
        return 443 if url is None else url.port or (80 if url.scheme == "http" else 443)

    @property
    def request_json(self) -> dict[str, Any]:
        """The request's body, decoded once, on the worker; empty when it is not a JSON object."""
        if self._decoded is None:
            try:
                body = json.loads(self.request or b"{}")
            except ValueError:
                body = {}
            self._decoded = body if isinstance(body, dict) else {}
        return self._decoded


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step is invalid. Spelled ``check.code`` or ``check.code@start-end``; never a quotation."""

    check: str
    code: str
    start: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        spot = "" if self.start is None else f"@{self.start}-{self.end}"
        return f"{self.check}.{self.code}{spot}"


@dataclass(slots=True)
class Step:
    """One reasoning step. The worker sets ``index`` and the verdicts; an unknown verdict stays None."""

    kind: str
    started: int
    ended: int
    latency_source: LatencySource | None
    """None: the step has no time at all, as in a batch's result."""
    text: str = ""
    """Thinking or text of the step; for a tool use its input as JSON, as it came."""
    name: str | None = None
    index: int = -1
    block: Block | None = None
    """The block that the step is, or is a part of; None for a tool run or a step made by hand."""
    last: bool = False
    """Whether this is the last (sub-)step of its block."""
    tool_name: str | None = None
    tool_call_id: str | None = None
    is_error: bool | None = None
    """For a tool's result: whether it says it is an error."""
    merged: int = 0
    """Sub-steps beyond the cap that this one holds."""
    labels: dict[str, str] = field(default_factory=dict)
    valid: bool | None = None
    reasons: list[Reason] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    confidence: float | None = None
    confidence_method: str | None = None
    calibrated: bool | None = None
    chain_confidence: float | None = None
    error_type: str | None = None

    @property
    def incomplete(self) -> Incomplete | None:
        """Why the step's block never ended, or None."""
        return self.block.incomplete if self.block is not None and self.last else None

    @property
    def seconds(self) -> float:
        """Duration in seconds, never negative."""
        return max(0, self.ended - self.started) / 1e9
