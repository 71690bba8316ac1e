"""What can be read off a request cheaply, without changing or keeping anything of the app's.

``options.json_data`` is the app's own dict and lists: only strings, numbers and booleans are taken from it here, at
once. Iterators are never touched, since reading one would empty the request.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from .. import semconv
from ..steps.model import ToolResult

__all__ = ["continued_by", "operation_of", "provider_of", "request_attributes"]

_SERVER_TOOL_USES: Final = ("server_tool_use", "mcp_tool_use")
_PROVIDERS: Final = {"bedrock": "aws.bedrock", "vertex": "gcp.vertex_ai"}

_PARAMETERS: Final[dict[str, tuple[str, tuple[type, ...], type]]] = {
    "max_tokens": (semconv.REQUEST_MAX_TOKENS, (int,), int),
    "temperature": (semconv.REQUEST_TEMPERATURE, (int, float), float),
    "top_p": (semconv.REQUEST_TOP_P, (int, float), float),
    "top_k": (semconv.REQUEST_TOP_K, (int, float), float),
}


@lru_cache(maxsize=256)
def operation_of(method: str, url: str) -> str | None:
    """``chat``, ``count_tokens``, ``batch`` or ``batch_results``; None for a request that is none of the Messages API.

    Bedrock and Vertex rewrite the path later, inside the SDK's ``_build_request``: here it is still the plain one.
    """
    path = url.partition("?")[0].rstrip("/")
    head, _, tail = path.rpartition("/")
    if tail == "messages":
        return "chat" if method.lower() == "post" else None
    if tail == "count_tokens" and head.endswith("/messages"):
        return "count_tokens"
    if tail == "results" and "/messages/batches/" in path:
        return "batch_results"
    if "/messages/batches" in path:
        return "batch"
    return None


@lru_cache(maxsize=64)
def provider_of(client: type) -> str:
    """The GenAI provider name for a client's class, by the SDK's sub-package that it or a base is defined in."""
    for base in client.__mro__:
        parts = base.__module__.split(".")
        if parts[:2] == ["anthropic", "lib"] and len(parts) > 2 and parts[2] in _PROVIDERS:
            return _PROVIDERS[parts[2]]
    return "anthropic"


def request_attributes(body: Any) -> dict[str, AttributeValue]:
    """The request's parameters as span attributes; a value of another type than the API's gives none."""
    attributes: dict[str, AttributeValue] = {}
    if not isinstance(body, dict):
        return attributes
    for key, (name, types, convert) in _PARAMETERS.items():
        value = body.get(key)
        if isinstance(value, types) and not isinstance(value, bool):
            attributes[name] = convert(value)
    stops = body.get("stop_sequences")
    if isinstance(stops, (list, tuple)) and stops and all(isinstance(stop, str) for stop in stops):
        attributes[semconv.REQUEST_STOP_SEQUENCES] = tuple(stops)
    if body.get("stream") is True:
        attributes[semconv.REQUEST_STREAM] = True
    return attributes


def continued_by(body: Any) -> tuple[tuple[ToolResult, ...], list[str]]:
    """What the last message of a request's body goes on from: its tool results, in order, and the ids of tool uses.

    The ids are those of the results or, in a message that is the model's own (a paused turn that goes on), those of the
    server's tools.
    """
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, (list, tuple)) or not messages:
        return (), []
    content = _field(messages[-1], "content")
    if not isinstance(content, (list, tuple)):
        return (), []
    results = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            tool_use_id = block.get("tool_use_id")
            if isinstance(tool_use_id, str):
                results.append(ToolResult(tool_use_id, block.get("is_error") is True))
    ids = [result.tool_use_id for result in results]
    if not ids and _field(messages[-1], "role") == "assistant":
        for block in content:
            if _field(block, "type") in _SERVER_TOOL_USES and isinstance(tool_use_id := _field(block, "id"), str):
                ids.append(tool_use_id)
    return tuple(results), ids


def _field(value: Any, name: str) -> Any:
    """A field of what may be a plain object or one of the SDK's models."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
