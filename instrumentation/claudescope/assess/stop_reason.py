"""Whether the response was stopped inside the step."""

from __future__ import annotations

from typing import Final

from ..steps.model import Call, Reason, Step
from .protocol import Verdict

__all__ = ["StopReason"]

_STOPPED: Final = {
    code: Verdict(False, (Reason("stop_reason", code),))
    for code in ("max_tokens", "refusal", "model_context_window_exceeded")
}


class StopReason:
    """Reasons: ``stop_reason.max_tokens``, ``.refusal``, ``.model_context_window_exceeded``, on a response's last step.

    Any other stop reason says nothing about the step, so it makes none valid.
    """

    name = "stop_reason"

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on the last step of a response."""
        if not step.last or step.block is None or step.block.stop_reason is None:
            return None
        return _STOPPED.get(step.block.stop_reason)
