"""A scripted reply as the Messages API words it: a message object, or the events of a stream with their times."""

from __future__ import annotations

import json
import math
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .blocks import Block
from .script import Pace, Reply

__all__ = ["Event", "Message", "estimate_tokens", "token"]

_ALPHABET = string.digits + string.ascii_letters


def token(rng: random.Random, prefix: str, length: int = 22) -> str:
    """An identifier such as the API's: the prefix and ``length`` letters and digits."""
    return prefix + "".join(rng.choices(_ALPHABET, k=length))


def estimate_tokens(characters: int) -> int:
    """Tokens of a text of that many characters, at four a token, at least 1."""
    return max(1, math.ceil(characters / 4))


@dataclass(frozen=True)
class Event:
    """One SSE event, the seconds to wait before it, and the points of ``faults`` that it reaches."""

    name: str
    data: dict[str, Any]
    delay: float = 0.0
    marks: tuple[str, ...] = ()


class Message:
    """One reply to one request. The same reply, request size, model and ``rng`` state give the same bytes."""

    def __init__(self, reply: Reply, *, model: str, request_bytes: int, pace: Pace, rng: random.Random) -> None:
        self._reply = reply
        self._pace = reply.pace or pace
        self._rng = rng
        self.id = token(rng, "msg_01")
        self.model = reply.model or model
        self._request_bytes = request_bytes
        self._latest_use = ""
        self._content = [self._finish(block) for block in reply.content]

    def _finish(self, block: Block) -> dict[str, Any]:
        """The whole block, with what the script left out filled in."""
        whole = {"type": block.type, **block.fields}
        for name, prefix in block.filled:
            if name not in whole:
                whole[name] = token(self._rng, prefix, 22 if prefix.endswith("_01") else 64) if prefix else ""
                if name == "tool_use_id":
                    whole[name] = self._latest_use
        if block.type in ("server_tool_use", "mcp_tool_use"):
            self._latest_use = whole["id"]
        return whole

    @property
    def input_usage(self) -> dict[str, Any]:
        """The part of ``usage`` that is known when a stream starts."""
        usage = self._reply.usage
        tokens = estimate_tokens(self._request_bytes) if usage.input_tokens is None else usage.input_tokens
        return {
            "input_tokens": tokens,
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        }

    @property
    def output_usage(self) -> dict[str, Any]:
        """The part of ``usage`` that is known when the message ends: cumulative output tokens and their details."""
        usage = self._reply.usage
        tokens = usage.output_tokens
        if tokens is None:
            tokens = sum(estimate_tokens(len(_streamed_text(block))) for block in self._reply.content)
        output: dict[str, Any] = {"output_tokens": tokens}
        if usage.thinking_tokens is not None:
            output["output_tokens_details"] = {"thinking_tokens": usage.thinking_tokens}
        searches = usage.web_search_requests
        if searches is None:
            searches = sum(
                block.type == "server_tool_use" and block.fields.get("name") == "web_search"
                for block in self._reply.content
            )
        if searches:
            output["server_tool_use"] = {"web_search_requests": searches}
        return output

    @property
    def _tail(self) -> dict[str, Any]:
        reply = self._reply
        tail: dict[str, Any] = {"stop_reason": reply.reason, "stop_sequence": reply.stop_sequence}
        if reply.reason == "refusal":
            tail["stop_details"] = {
                "type": "refusal",
                "category": reply.refusal,
                "explanation": "This request was refused due to policy.",
            }
        return tail

    def _head(self, content: list[dict[str, Any]], tail: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
        used = self._reply.usage
        hour = used.ephemeral_1h_input_tokens
        return {
            "model": self.model,
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "content": content,
            **tail,
            "usage": {
                **self.input_usage,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": used.cache_creation_input_tokens - hour,
                    "ephemeral_1h_input_tokens": hour,
                },
                **output,
                "service_tier": "standard",
                "inference_geo": "global",
            },
        }

    def whole(self) -> dict[str, Any]:
        """The message object of an answer that is not streamed."""
        return self._head(self._content, self._tail, self.output_usage)

    def events(self) -> Iterator[Event]:
        """The events of a streamed answer, in order."""
        pace, rng = self._pace, self._rng
        start = self._head([], {"stop_reason": None, "stop_sequence": None}, {"output_tokens": 1})
        yield Event("message_start", {"type": "message_start", "message": start}, _vary(pace.first, pace, rng))
        deltas_sent = 0
        for index, (block, whole) in enumerate(zip(self._reply.content, self._content, strict=True)):
            deltas = list(self._deltas(block, whole))
            marks: tuple[str, ...] = (f"start {index}",)
            if not deltas:
                marks += (f"delta {index}", f"deltas {index}")
            yield Event(
                "content_block_start",
                {"type": "content_block_start", "index": index, "content_block": _opened(block, whole)},
                _vary(pace.block, pace, rng) if index else 0.0,
                marks,
            )
            if index == 0:
                yield Event("ping", {"type": "ping"})
            first = True
            for number, delta in enumerate(deltas):
                filled = delta.get("partial_json") != ""
                marks = (f"delta {index}",) if first and filled else ()
                first = first and not filled
                if number == len(deltas) - 1:
                    marks += (f"delta {index}", f"deltas {index}") if first else (f"deltas {index}",)
                yield Event(
                    "content_block_delta",
                    {"type": "content_block_delta", "index": index, "delta": delta},
                    _vary(pace.delta, pace, rng),
                    marks,
                )
                deltas_sent += 1
                if self._reply.pings and deltas_sent % self._reply.pings == 0:
                    yield Event("ping", {"type": "ping"})
            if block.stopped:
                yield Event(
                    "content_block_stop", {"type": "content_block_stop", "index": index}, 0.0, (f"stop {index}",)
                )
        usage = {**self.input_usage, **self.output_usage}
        yield Event("message_delta", {"type": "message_delta", "delta": self._tail, "usage": usage})
        yield Event("message_stop", {"type": "message_stop"})

    def _deltas(self, block: Block, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if block.delta == "input_json_delta":
            yield {"type": block.delta, "partial_json": ""}  # the API opens every tool input with an empty fragment
            for piece in self._pieces(_streamed_text(block)):
                yield {"type": block.delta, "partial_json": piece}
        elif block.delta == "compaction_delta":
            yield {"type": block.delta, "content": whole["content"]}
        elif block.delta is not None and block.streamed is not None:
            for piece in self._pieces(_streamed_text(block)):
                yield {"type": block.delta, block.streamed: piece}
        if block.type == "thinking":
            yield {"type": "signature_delta", "signature": whole["signature"]}
        for citation in whole.get("citations", ()) if block.type == "text" else ():
            yield {"type": "citations_delta", "citation": citation}

    def _pieces(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            size = max(1, round(_vary(self._pace.chunk, self._pace, self._rng)))
            yield text[at : at + size]
            at += size


def _vary(value: float, pace: Pace, rng: random.Random) -> float:
    return value * rng.uniform(1 - pace.jitter, 1 + pace.jitter) if pace.jitter and value else value


def _streamed_text(block: Block) -> str:
    """What the block's deltas join to; for a block that comes whole, its JSON."""
    if block.raw is not None:
        return block.raw
    if block.streamed == "input":
        return json.dumps(block.fields["input"], ensure_ascii=False)
    if block.streamed is not None:
        return block.fields[block.streamed] or ""
    return json.dumps(dict(block.fields), ensure_ascii=False)


def _opened(block: Block, whole: dict[str, Any]) -> dict[str, Any]:
    """The block as its ``content_block_start`` has it: what comes in deltas is still empty."""
    if block.streamed is None:
        return whole
    empty: Any = {} if block.streamed == "input" else None if block.type == "compaction" else ""
    opened = {**whole, block.streamed: empty}
    if block.type == "thinking":
        opened["signature"] = ""
    if "citations" in opened:
        opened["citations"] = []
    return opened
