"""Whether a tool that the model asks the app to run was offered in the request."""

from __future__ import annotations

from typing import Final

from ..steps.model import Call, Reason, Step
from .protocol import Verdict
from .tools import offered_tools

__all__ = ["ToolName"]

_UNKNOWN: Final = Verdict(False, (Reason("tool_name", "unknown"),))


class ToolName:
    """Reason: ``tool_name.unknown``. Server and MCP tools are not checked: the API chooses them.

    Silent where the request names no tools, or offers a set of tools without naming each.
    """

    name = "tool_name"

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on a ``tool_use`` step."""
        if step.kind != "tool_use" or step.tool_name is None:
            return None
        tools = offered_tools(call)
        names = [tool.get("name") for tool in tools]
        if step.tool_name in names:
            return Verdict(True)
        return None if not tools or None in names else _UNKNOWN
