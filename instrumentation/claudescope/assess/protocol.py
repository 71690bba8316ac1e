"""What a check and a confidence estimator are. Built-in ones and plug-ins are found by the same entry points.

``claudescope.validators`` names callables without arguments that give a ``Validator``, ``claudescope.confidence`` such
that give a ``ConfidenceEstimator``. Both run on the worker thread, never on the app's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..steps.model import Call, Reason, Step

__all__ = ["Confidence", "ConfidenceEstimator", "Validator", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check on one step; ``reasons`` is empty exactly when ``valid``."""

    valid: bool
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Confidence:
    """A confidence from 0 to 1 and whether it was calibrated on labelled outcomes."""

    value: float
    calibrated: bool = False


class Validator(Protocol):
    """One check. It may keep no reference to the step or the call, and must not change them.

    It may be asked twice about one step: over its budget the first time, it is given another chance.
    """

    name: str
    """Lower-case word; the ``check`` of its reasons."""

    def check(self, step: Step, call: Call) -> Verdict | None:
        """The verdict on a step, or None when the check has nothing to say about it."""
        ...


class ConfidenceEstimator(Protocol):
    """One way to a confidence. The first estimator with an answer is taken, in the order of their names."""

    name: str
    """Lower-case word; the step's ``confidence.method``."""

    def estimate(self, step: Step, call: Call) -> Confidence | None:
        """The confidence in a step, or None when nothing says it."""
        ...
