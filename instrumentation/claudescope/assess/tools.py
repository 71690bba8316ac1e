"""The tools that a request offers, by name."""

from __future__ import annotations

from typing import Any

from ..steps.model import Call

__all__ = ["offered_tools", "tool_entry"]


def offered_tools(call: Call) -> list[dict[str, Any]]:
    """The entries of the request's ``tools`` that are objects."""
    tools = call.request_json.get("tools")
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def tool_entry(call: Call, name: str | None) -> dict[str, Any] | None:
    """The request's entry for a tool, or None."""
    return next((tool for tool in offered_tools(call) if tool.get("name") == name), None) if name else None
