"""All checks and estimators of a process: runs them on a step, within a budget, and switches off those that fail."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal

from ..settings import Settings
from ..steps.model import Call, Reason, Step
from .protocol import Confidence, ConfidenceEstimator, Validator, Verdict

__all__ = ["CONFIDENCE_GROUP", "VALIDATORS_GROUP", "Panel", "PluginStatus"]

logger = logging.getLogger("claudescope")

VALIDATORS_GROUP: Final = "claudescope.validators"
CONFIDENCE_GROUP: Final = "claudescope.confidence"

FAILURES_MAX: Final = 10
FAILURES_WITHIN: Final = 1000
OFF_SECONDS: Final = 600.0

OnDrop = Callable[[str, str, int], object]
"""Told of assessments that are missing: reason, kind and count, as on the metric ``claudescope.dropped``."""


@dataclass(frozen=True)
class PluginStatus:
    """How one check or estimator fares, for people."""

    name: str
    kind: Literal["validator", "confidence"]
    state: Literal["on", "off", "not loaded"]
    steps: int = 0
    failures: int = 0
    last_failure: str | None = None
    """Such as ``ValueError`` or ``over budget``; never a text out of a step."""


class _Failure(Exception):  # noqa: N818 - caught where it is raised
    """What a plug-in gave is not what the protocol says."""


class _Slot:
    """One plug-in and its record. ``run`` never raises."""

    def __init__(self, plugin: Any, kind: Literal["validator", "confidence"], panel: Panel) -> None:
        self.kind = kind
        self.name: str = plugin.name
        self._panel = panel
        self._ask: Callable[[Step, Call], Any] = plugin.check if kind == "validator" else plugin.estimate
        self._checked: Callable[[object], Any] = _checked_verdict if kind == "validator" else _checked_confidence
        self._steps = 0
        self._failures = 0
        self._recent: deque[int] = deque(maxlen=FAILURES_MAX)
        self._off_until: float | None = None
        self._last_failure: str | None = None

    def run(self, step: Step, call: Call) -> Any:
        """What the plug-in says of a step; None also when it fails, takes too long, or is switched off."""
        if self._off_until is not None:
            if self._panel.now() < self._off_until:
                self._panel.drop()
                return None
            self._off_until = None
            self._recent.clear()
        self._steps += 1
        # Twice: what was slow once may have been a garbage collection, a first import, or the decoding of the request.
        for _ in range(2):
            started = self._panel.clock()
            try:
                outcome = self._checked(self._ask(step, call))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plug-in may raise anything; it ends no thread
                self._failed(str(error) if isinstance(error, _Failure) else type(error).__name__)
                return None
            if self._panel.clock() - started <= self._panel.budget:
                return outcome
        self._failed("over budget")
        return None

    def _failed(self, why: str) -> None:
        if not self._failures:
            logger.warning(
                "claudescope: the %s %r failed (%s); its verdict is left out. `claudescope doctor` shows how often.",
                "check" if self.kind == "validator" else "confidence estimator",
                self.name,
                why,
            )
        self._failures += 1
        self._last_failure = why
        self._recent.append(self._steps)
        self._panel.drop()
        if len(self._recent) == FAILURES_MAX and self._steps - self._recent[0] < FAILURES_WITHIN:
            self._off_until = self._panel.now() + OFF_SECONDS

    def status(self) -> PluginStatus:
        off = self._off_until is not None and self._panel.now() < self._off_until
        return PluginStatus(
            self.name, self.kind, "off" if off else "on", self._steps, self._failures, self._last_failure
        )


class Panel:
    """The checks and estimators in force. For the worker's thread; ``status`` from any.

    ``budget_s`` is CPU seconds of the thread for one plug-in on one step; ``clock`` measures it, ``now`` is the time in
    seconds by which a plug-in that was switched off is tried again. ``on_drop`` is told of each missing assessment.
    """

    def __init__(
        self,
        validators: Iterable[Validator] = (),
        estimators: Iterable[ConfidenceEstimator] = (),
        budget_s: float = 0.005,
        clock: Callable[[], float] = time.thread_time,
        now: Callable[[], float] = time.monotonic,
        on_drop: OnDrop | None = None,
    ) -> None:
        self.budget = budget_s
        self.clock = clock
        self.now = now
        self._on_drop = on_drop
        self._not_loaded: list[PluginStatus] = []
        self._validators = [_Slot(v, "validator", self) for v in sorted(validators, key=lambda v: v.name)]
        self._estimators = [_Slot(e, "confidence", self) for e in sorted(estimators, key=lambda e: e.name)]

    @classmethod
    def from_entry_points(cls, settings: Settings, on_drop: OnDrop | None = None) -> Panel:
        """The installed checks and estimators.

        One that cannot be loaded is logged, left out, and shown by ``status``.
        """
        not_loaded: list[PluginStatus] = []
        validators = _load(VALIDATORS_GROUP, "validator", "check", not_loaded)
        estimators = _load(CONFIDENCE_GROUP, "confidence", "estimate", not_loaded)
        panel = cls(validators, estimators, settings.assess_budget, on_drop=on_drop)
        panel._not_loaded = not_loaded
        return panel

    def assess(self, step: Step, call: Call) -> None:
        """Sets the step's ``valid``, ``reasons``, ``checks``, ``confidence``, ``confidence_method`` and ``calibrated``.

        ``valid`` is False if any check says so, else True if any says so, else None. Never raises.
        """
        reasons: list[Reason] = []
        checks: list[str] = []
        valid: bool | None = None
        for slot in self._validators:
            verdict = slot.run(step, call)
            if verdict is None:
                continue
            checks.append(slot.name)
            if not verdict.valid:
                valid = False
                reasons.extend(verdict.reasons)
            elif valid is None:
                valid = True
        step.valid, step.reasons, step.checks = valid, reasons, checks
        step.confidence = step.confidence_method = step.calibrated = None
        for slot in self._estimators:
            confidence = slot.run(step, call)
            if confidence is not None:
                step.confidence = float(confidence.value)
                step.confidence_method = slot.name
                step.calibrated = confidence.calibrated
                break

    def status(self) -> list[PluginStatus]:
        """Every check and estimator, those not loaded last."""
        return [slot.status() for slot in (*self._validators, *self._estimators)] + self._not_loaded

    def drop(self) -> None:
        """Counts one missing assessment."""
        if self._on_drop is not None:
            self._on_drop("internal_error", "assessment", 1)


def _checked_verdict(verdict: object) -> Verdict | None:
    if verdict is None:
        return None
    if not isinstance(verdict, Verdict) or not isinstance(verdict.valid, bool):
        raise _Failure("not a verdict")
    if verdict.valid is bool(verdict.reasons) or not all(isinstance(reason, Reason) for reason in verdict.reasons):
        raise _Failure("reasons do not fit the verdict")
    return verdict


def _checked_confidence(confidence: object) -> Confidence | None:
    if confidence is None:
        return None
    if not isinstance(confidence, Confidence) or not isinstance(confidence.calibrated, bool):
        raise _Failure("not a confidence")
    value: object = confidence.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise _Failure("confidence not from 0 to 1")
    return confidence


def _load(
    group: str, kind: Literal["validator", "confidence"], method: str, not_loaded: list[PluginStatus]
) -> list[Any]:
    plugins: dict[str, Any] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        why = _load_one(entry, method, plugins)
        if why is not None:
            logger.warning(
                "claudescope: the plug-in %s = %s of %s is left out: %s.", entry.name, entry.value, group, why
            )
            not_loaded.append(PluginStatus(entry.name, kind, "not loaded", last_failure=why))
    return list(plugins.values())


def _load_one(entry: EntryPoint, method: str, plugins: dict[str, Any]) -> str | None:
    try:
        plugin = entry.load()()
        name = plugin.name
        usable = isinstance(name, str) and bool(name) and callable(getattr(plugin, method))
    except Exception as error:  # noqa: BLE001 - somebody else's package
        return f"{type(error).__name__}: {error}"
    if not usable:
        return f"it has no name or no method {method}"
    if name in plugins and type(plugins[name]) is not type(plugin):
        return f"the name {name} is taken"
    plugins[name] = plugin
    return None
