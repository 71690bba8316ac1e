"""Whether an answer that was asked for as JSON is JSON and conforms to the schema asked for."""

from __future__ import annotations

from typing import Any, Final

from ..steps.blocks import text_of
from ..steps.model import Call, Reason, Step
from .json_text import parsed, value_span
from .protocol import Verdict
from .schemas import Schemas, Undecided

__all__ = ["StructuredOutput"]

_FINAL: Final = ("end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded")
"""Stop reasons after which the last text is the answer; before a tool's result the model may still talk."""


class StructuredOutput:
    """Reasons: ``structured_output.not_json`` from where it stops to be JSON, ``.schema_mismatch`` with the span of the
    value that breaks the schema. Judges the last text block of an answer to a request with ``output_config.format`` (or
    ``output_format``). Offsets are into the step, which holds the block's end.
    """

    name = "structured_output"

    def __init__(self) -> None:
        self._schemas = Schemas()

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on the last step of a text block."""
        if step.kind != "text" or not step.last or step.block is None or step.block.stop_reason not in _FINAL:
            return None
        if call.request is None or b'"output_' not in call.request:
            return None  # spares decoding the request for every plain answer
        asked = _format(call.request_json)
        if asked is None:
            return None
        text = text_of(step.block)
        before = len(text) - len(step.text)

        def spot(start: int, end: int) -> tuple[int, int]:
            return max(0, start - before), max(0, end - before)

        value, broken = parsed(text)
        if broken is not None:
            return Verdict(False, (Reason(self.name, "not_json", *spot(broken.start, broken.end)),))
        if "schema" not in asked:
            return Verdict(True)
        try:
            path = self._schemas.violation(asked["schema"], value)
        except Undecided:
            return None
        if path is None:
            return Verdict(True)
        return Verdict(False, (Reason(self.name, "schema_mismatch", *spot(*value_span(text, path))),))


def _format(request: dict[str, Any]) -> dict[str, Any] | None:
    config = request.get("output_config")
    asked = config.get("format") if isinstance(config, dict) else None
    asked = asked or request.get("output_format")
    return asked if isinstance(asked, dict) and asked.get("type") in ("json_schema", "json") else None
