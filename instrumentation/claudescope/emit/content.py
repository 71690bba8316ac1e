"""What of prompts and answers goes on spans, by ``CLAUDESCOPE_CONTENT``: nothing, a hash, or redacted, capped text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from .. import semconv
from ..redact import redact, redact_value
from ..settings import Settings
from ..steps.model import Call, Step

__all__ = ["Value", "call_content", "capped", "encodable", "request_sha256", "step_content"]

Value = str | int

_DEEPEST: Final = 64
"""Levels of a tool's input or result that are shown."""
_MARGIN: Final = 8192
"""Characters beyond the cap that are redacted with the rest, so that no secret is cut in two before it is found."""


def step_content(step: Step, settings: Settings) -> dict[str, Value]:
    """Attributes of a step: none (off), SHA-256 and length of its text (hash), or the text itself (full)."""
    if settings.content == "hash":
        return {
            semconv.STEP_TEXT_SHA256: _sha256(step.text.encode("utf-8", "surrogatepass")),
            semconv.STEP_TEXT_LENGTH: len(step.text),
        }
    if settings.content == "full" and step.text:
        return {semconv.STEP_TEXT: encodable(capped(step.text, settings.content_max))}
    return {}


def call_content(call: Call, settings: Settings) -> dict[str, Value]:
    """Attributes of a call with content mode ``full``: its messages and system prompt as JSON in the GenAI format.

    Each text is redacted and cut to ``CLAUDESCOPE_CONTENT_MAX``; binary data (images, documents) is left out.
    """
    if settings.content != "full":
        return {}
    body = call.request_json
    limit = settings.content_max
    found: dict[str, Value] = {}
    if isinstance(messages := body.get("messages"), list):
        inputs = [
            {"role": _role(message), "parts": _parts(message.get("content"), limit)}
            for message in messages
            if isinstance(message, Mapping)
        ]
        found[semconv.INPUT_MESSAGES] = _json(inputs)
    if system := body.get("system"):
        found[semconv.SYSTEM_INSTRUCTIONS] = _json(_parts(system, limit))
    if call.blocks:
        output = {"role": "assistant", "parts": _parts(call.blocks, limit), "finish_reason": call.stop_reason or ""}
        found[semconv.OUTPUT_MESSAGES] = _json([output])
    return found


def request_sha256(call: Call) -> str | None:
    """``sha256:`` and 64 hex digits of the request's bytes as sent; None when they are not known. In every mode."""
    return None if call.request is None else _sha256(call.request)


def capped(text: str, limit: int) -> str:
    """The text redacted and then cut to ``limit`` characters, with a marker that says how many were cut."""
    whole = len(text)
    if whole <= limit:
        shown = redact(text)
        return shown if len(shown) <= limit else _cut(shown, limit, len(shown))
    shown = redact(text[: limit + _MARGIN])
    if whole > limit + _MARGIN:
        shown = shown[:-_MARGIN]  # its end may be the beginning of a secret that was cut before it was found
    return _cut(shown[:limit], limit, whole)


def _cut(shown: str, limit: int, whole: int) -> str:
    return f"{shown[:limit]}[cut: {whole - limit} of {whole} characters]"


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: object) -> str:
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def encodable(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can spell and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _role(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list) and content and all(_type(block) == "tool_result" for block in content):
        return "tool"
    return str(message.get("role", ""))


def _type(block: object) -> str:
    return str(block.get("type", "")) if isinstance(block, Mapping) else ""


def _parts(content: object, limit: int) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "content": capped(content, limit)}]
    if not isinstance(content, list):
        return []
    return [_part(block, limit) for block in content if isinstance(block, Mapping)]


def _part(block: Mapping[str, Any], limit: int) -> dict[str, Any]:
    kind = _type(block)
    if kind == "text":
        return {"type": "text", "content": capped(str(block.get("text", "")), limit)}
    if kind == "thinking":
        return {"type": "reasoning", "content": capped(str(block.get("thinking", "")), limit)}
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return {
            "type": "tool_call",
            "id": block.get("id"),
            "name": block.get("name"),
            "arguments": _trimmed(block.get("input"), limit),
        }
    if kind.endswith("tool_result"):
        return {
            "type": "tool_call_response",
            "id": block.get("tool_use_id"),
            "response": _trimmed(block.get("content"), limit),
        }
    if kind in ("image", "document"):
        source = block.get("source")
        source = source if isinstance(source, Mapping) else {}
        part = {"type": "blob" if source.get("type") == "base64" else "uri", "modality": kind}
        if media := source.get("media_type"):
            part["mime_type"] = str(media)
        if source.get("type") == "url":
            part["uri"] = capped(str(source.get("url", "")), limit)
        return part
    return {"type": kind or "unknown"}  # redacted thinking and what comes next: nothing of it is readable


def _trimmed(value: object, limit: int, name: str = "", depth: int = 0) -> object:
    """A JSON value with its texts redacted and capped and its binary data left out."""
    if isinstance(value, str):
        whole = redact_value(name, value)  # a secret is often told by the name beside it
        return whole if whole == "[redacted:secret]" else capped(value, limit)
    if depth >= _DEEPEST and isinstance(value, (Mapping, list)):
        return f"[cut: nested over {_DEEPEST} levels]"
    if isinstance(value, Mapping):
        if value.get("type") == "base64" and "data" in value:
            return {key: item for key, item in value.items() if key != "data"}
        return {str(key): _trimmed(item, limit, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_trimmed(item, limit, "", depth + 1) for item in value]
    return value
