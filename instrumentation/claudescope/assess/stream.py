"""Whether the stream failed inside the step."""

from __future__ import annotations

from typing import Final

from ..steps.model import Call, Reason, Step
from .protocol import Verdict

__all__ = ["StreamFailure"]

_FAILED: Final = Verdict(False, (Reason("stream", "failed"),))


class StreamFailure:
    """Reason: ``stream.failed``. A stream that the app closed, dropped or cancelled says nothing about the step."""

    name = "stream"

    def check(self, step: Step, call: Call) -> Verdict | None:
        """Verdict on the last step of a block that never ended."""
        return _FAILED if step.incomplete == "failed" else None
