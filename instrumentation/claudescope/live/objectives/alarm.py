"""Whether a condition has held long enough to tell somebody, and whether it is over: as Prometheus has it.

``for`` and ``keep_firing_for`` count from the evaluation that first found the condition true, or false.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

__all__ = ["Alarm", "State"]

State = Literal["inactive", "pending", "firing"]
_OUTAGE_MS: Final = 3_600_000
"""After longer without an evaluation, what was pending begins anew."""
_GAP_MS: Final = 120_000


@dataclass(slots=True)
class Alarm:
    """One condition of one label set. Times are those of evaluations, in ms."""

    active_ms: int | None = None
    """Since when the condition holds."""
    fired_ms: int | None = None
    """Since when it fires."""
    quiet_ms: int | None = None
    """Since when it fires and the condition does not hold."""
    resolved_ms: int | None = None
    """When it last ended."""
    seen_ms: int = 0
    """The latest evaluation."""

    @property
    def state(self) -> State:
        """What it is now."""
        if self.fired_ms is not None:
            return "firing"
        return "pending" if self.active_ms is not None else "inactive"

    def step(self, holds: bool, now_ms: int, wait_ms: int, keep_ms: int) -> bool:
        """Takes one evaluation; whether the state changed."""
        before = self.state
        gap, self.seen_ms = (now_ms - self.seen_ms if self.seen_ms else 0), now_ms
        if holds:
            self.quiet_ms = None
            if self.active_ms is None or (self.fired_ms is None and gap > _OUTAGE_MS):
                self.active_ms = now_ms
            elif self.fired_ms is None and gap > _GAP_MS:
                self.active_ms += gap  # nobody saw whether it held meanwhile
            if self.fired_ms is None and now_ms - self.active_ms >= wait_ms:
                self.fired_ms, self.resolved_ms = now_ms, None
        elif self.fired_ms is None:
            self.active_ms = None
        else:
            if self.quiet_ms is None:
                self.quiet_ms = now_ms
            if now_ms - self.quiet_ms >= keep_ms:
                self.end(now_ms)
        return self.state != before

    def end(self, now_ms: int) -> None:
        """It is over, whatever the condition."""
        if self.fired_ms is not None:
            self.resolved_ms = now_ms
        self.active_ms = self.fired_ms = self.quiet_ms = None

    def dump(self) -> dict[str, Any]:
        """As the store keeps it."""
        return asdict(self)

    @classmethod
    def load(cls, data: dict[str, Any]) -> Alarm:
        """What ``dump`` gave."""
        return cls(data["active_ms"], data["fired_ms"], data["quiet_ms"], data["resolved_ms"], data["seen_ms"])
