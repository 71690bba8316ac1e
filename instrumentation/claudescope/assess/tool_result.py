"""Whether a tool's result says that it is an error."""

from __future__ import annotations

from typing import Final

from ..steps.model import Call, Reason, Step
from .protocol import Verdict

__all__ = ["ToolResultError"]

_ERROR: Final = Verdict(False, (Reason("tool_result", "is_error"),))


class ToolResultError:
    """Reason: ``tool_result.is_error``, on tools that the app ran and on results of server and MCP tools."""

    name = "tool_result"

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on a ``tool_run`` or ``*_tool_result`` step."""
        if step.is_error is None or not (step.kind == "tool_run" or step.kind.endswith("tool_result")):
            return None
        return _ERROR if step.is_error else Verdict(True)
