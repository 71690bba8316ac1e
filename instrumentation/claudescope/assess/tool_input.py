"""Whether a tool's input conforms to the schema that the request gave for it."""

from __future__ import annotations

from ..steps.model import Call, Reason, Step
from .json_text import parsed, value_span
from .protocol import Verdict
from .schemas import Schemas, Undecided
from .tools import tool_entry

__all__ = ["ToolInput"]


class ToolInput:
    """Reason: ``tool_input.schema_mismatch`` with the span of the value that breaks the schema.

    Silent for tools without ``input_schema`` (the API's own typed tools), schemas that cannot decide, and input that
    is not JSON (``tool_json`` says so).
    """

    name = "tool_input"

    def __init__(self) -> None:
        self._schemas = Schemas()

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on a ``tool_use`` step."""
        if step.kind != "tool_use":
            return None
        tool = tool_entry(call, step.tool_name)
        if tool is None or "input_schema" not in tool:
            return None
        if not step.text.strip() and step.block is not None and step.block.incomplete:
            return None
        value, broken = parsed(step.text if step.text.strip() else "{}")
        if broken is not None:
            return None
        try:
            path = self._schemas.violation(tool["input_schema"], value)
        except Undecided:
            return None
        if path is None:
            return Verdict(True)
        start, end = value_span(step.text, path)
        return Verdict(False, (Reason(self.name, "schema_mismatch", start, end),))
