"""The content blocks of a scripted reply, made by one function a block type.

An id, signature or encrypted payload that is left out is filled in from the stand-in's seed when the reply is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "Block",
    "compaction",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "server_tool_use",
    "text",
    "thinking",
    "tool_use",
    "unfinished",
    "unknown",
    "web_search_tool_result",
]


@dataclass(frozen=True)
class Block:
    """One content block of a reply.

    ``fields`` is the finished block without its type. ``streamed`` names the field that comes in deltas, and
    ``delta`` the delta type that carries it; without them the block comes whole in its ``content_block_start``.
    """

    type: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    streamed: str | None = None
    delta: str | None = None
    raw: str | None = None
    """For a tool's input: the JSON text to stream, where it differs from the text of ``fields["input"]``."""
    filled: tuple[tuple[str, str], ...] = ()
    """Fields that the stand-in fills in when absent, each with the prefix of its value."""
    stopped: bool = True
    """Whether a stream sends the block's ``content_block_stop``."""


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def thinking(thinking: str, signature: str | None = None) -> Block:
    """A ``thinking`` block. An empty text with a signature is what a model with omitted thinking sends."""
    return Block(
        "thinking",
        _given(thinking=thinking, signature=signature),
        "thinking",
        "thinking_delta",
        filled=(("signature", "Er"),),
    )


def redacted_thinking(data: str | None = None) -> Block:
    """A ``redacted_thinking`` block: opaque data, sent whole."""
    return Block("redacted_thinking", _given(data=data), filled=(("data", "Em"),))


def text(text: str, citations: Sequence[Mapping[str, Any]] | None = None) -> Block:
    """A ``text`` block, with its citations where there are some."""
    return Block("text", _given(text=text, citations=list(citations) if citations else None), "text", "text_delta")


def _use(type: str, prefix: str, raw: str | None, input: Mapping[str, Any] | None, fields: dict[str, Any]) -> Block:
    if input is None:
        try:
            parsed = json.loads(raw or "{}")
        except ValueError:
            parsed = {}
        whole: Mapping[str, Any] = parsed if isinstance(parsed, dict) else {}
    else:
        whole = input
    return Block(type, {**fields, "input": dict(whole)}, "input", "input_json_delta", raw=raw, filled=(("id", prefix),))


def tool_use(
    name: str, input: Mapping[str, Any] | None = None, id: str | None = None, *, raw: str | None = None
) -> Block:
    """A ``tool_use`` block. ``raw`` is streamed instead of the JSON of ``input``: truncated or malformed JSON.

    A reply that is not streamed always carries an object: ``input``, else ``raw`` if it parses, else ``{}``.
    """
    return _use("tool_use", "toolu_01", raw, input, _given(id=id, name=name))


def server_tool_use(
    name: str = "web_search",
    input: Mapping[str, Any] | None = None,
    id: str | None = None,
    *,
    raw: str | None = None,
) -> Block:
    """A ``server_tool_use`` block: a tool that the API runs itself."""
    return _use("server_tool_use", "srvtoolu_01", raw, input, _given(id=id, name=name))


def web_search_tool_result(
    results: Sequence[tuple[str, str]] = (), tool_use_id: str | None = None, *, error_code: str | None = None
) -> Block:
    """A ``web_search_tool_result`` block of ``(title, url)`` pairs, or of an error such as ``max_uses_exceeded``.

    Without ``tool_use_id`` it answers the latest server tool use of the reply.
    """
    content: Any = [
        {
            "type": "web_search_result",
            "title": title,
            "url": url,
            "encrypted_content": "EqgfCioIARgB",
            "page_age": None,
        }
        for title, url in results
    ]
    if error_code is not None:
        content = {"type": "web_search_tool_result_error", "error_code": error_code}
    return Block(
        "web_search_tool_result", {**_given(tool_use_id=tool_use_id), "content": content}, filled=(("tool_use_id", ""),)
    )


def mcp_tool_use(
    name: str,
    server_name: str,
    input: Mapping[str, Any] | None = None,
    id: str | None = None,
    *,
    raw: str | None = None,
) -> Block:
    """An ``mcp_tool_use`` block (beta): a tool of an MCP server that the API calls."""
    return _use("mcp_tool_use", "mcptoolu_01", raw, input, _given(id=id, name=name, server_name=server_name))


def mcp_tool_result(content: str, tool_use_id: str | None = None, *, is_error: bool = False) -> Block:
    """An ``mcp_tool_result`` block (beta); without ``tool_use_id`` it answers the latest MCP tool use."""
    fields = {
        **_given(tool_use_id=tool_use_id),
        "is_error": is_error,
        "content": [{"type": "text", "text": content}],
    }
    return Block("mcp_tool_result", fields, filled=(("tool_use_id", ""),))


def compaction(content: str | None) -> Block:
    """A ``compaction`` block (beta): a summary of the conversation so far, or None where compaction failed."""
    return Block("compaction", {"content": content}, "content", "compaction_delta")


def unknown(type: str, **fields: Any) -> Block:
    """A block of any other type, sent whole: what a newer API may send to an older SDK."""
    return Block(type, fields)


def unfinished(block: Block) -> Block:
    """The same block without its ``content_block_stop``, as a stream that hit ``max_tokens`` may leave it."""
    return replace(block, stopped=False)
