"""What a stand-in answers when it has no script: deterministic, and enough for an app with a tool loop to finish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .blocks import text, thinking, tool_use
from .script import Reply

__all__ = ["answer", "example"]


def example(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Any:
    """A value that a JSON schema of the common kind accepts: required properties only, first of each choice."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return example(definitions.get(str(schema["$ref"]).rpartition("/")[2], {}), definitions)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    for union in ("anyOf", "oneOf"):
        if schema.get(union):
            return example(schema[union][0], definitions)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        return {name: example(properties.get(name, {}), definitions) for name in schema.get("required", ())}
    if kind == "array":
        return [example(schema.get("items", {}), definitions)] * max(1, int(schema.get("minItems", 1)))
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return "example".ljust(int(schema.get("minLength", 0)), ".")


def answer(request: dict[str, Any]) -> Reply:
    """Thinks when asked to; calls the first tool with an input that fits its schema, once; then answers in
    text, or in JSON where the request has a schema for it.
    """
    blocks = []
    asked = request.get("thinking")
    if isinstance(asked, dict) and asked.get("type") in ("enabled", "adaptive"):
        blocks.append(thinking("The request is clear.\n\nI can answer it in one sentence."))
    messages = [message for message in request.get("messages", ()) if isinstance(message, dict)]
    last = messages[-1].get("content") if messages else None
    answered = isinstance(last, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in last
    )
    tools = [
        tool for tool in request.get("tools") or () if isinstance(tool, dict) and tool.get("type") in (None, "custom")
    ]
    if tools and not answered:
        return Reply((*blocks, tool_use(tools[0]["name"], example(tools[0].get("input_schema", {})))))
    wanted = (request.get("output_config") or {}).get("format") or request.get("output_format") or {}
    if isinstance(wanted, dict) and isinstance(wanted.get("schema"), dict):
        return Reply((*blocks, text(json.dumps(example(wanted["schema"])))))
    return Reply((*blocks, text(f"This is the stand-in's answer to message {len(messages)}.")))
