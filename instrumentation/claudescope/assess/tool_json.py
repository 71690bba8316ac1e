"""Whether the input of a tool use, put together from a stream's fragments, is a JSON object."""

from __future__ import annotations

from ..steps.model import Call, Reason, Step
from .json_text import parsed
from .protocol import Verdict

__all__ = ["ToolJson"]


class ToolJson:
    """Reasons: ``tool_json.malformed``, ``tool_json.truncated``, each from where it stops to be JSON to the end, and
    ``tool_json.not_object``. Of a response that was not streamed there is nothing to check: the API parsed it.
    """

    name = "tool_json"

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on a streamed tool use; no text at all means ``{}``."""
        if not step.kind.endswith("tool_use") or step.block is None or not step.block.streamed:
            return None
        if not step.text.strip():
            # A stream that broke before the first fragment says nothing about the input.
            return None if step.block.incomplete else Verdict(True)
        value, broken = parsed(step.text)
        if broken is not None:
            return Verdict(False, (Reason(self.name, broken.code, broken.start, broken.end),))
        if not isinstance(value, dict):
            return Verdict(False, (Reason(self.name, "not_object", 0, len(step.text)),))
        return Verdict(True)
