"""The answer: which slices burn, how much of the burn is theirs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..burn import Counts
from .picture import picture
from .sentences import Claim, sentences

__all__ = ["Explanation", "Slice", "Trace", "Traces", "Verdict"]

Verdict = Literal["slices", "none", "insufficient_data"]


class Trace(NamedTuple):
    """An example: a run with bad events of a slice."""

    id: str
    """32 hexadecimal digits."""
    url: str = ""
    """Where a person sees it; empty where nobody shows traces."""


Traces = Callable[[Mapping[str, str]], Sequence[Trace]]
"""Up to three examples of bad events with these labels, of the window that is explained."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Events that share labels, with more bad ones than expected."""

    labels: Mapping[str, str]
    """In the order of the dimensions; an absent label is the empty text."""
    bad: float
    total: float
    expected: float
    """Bad events that were to be expected of this total."""
    share: float
    """Of the bad events beyond what was expected of all, from 0 to 1."""
    p: float
    """Chance that the best of all slices looks like this where nothing is wrong. Not the chance of being the cause."""
    alternative: bool = False
    """Another description of the only slice's events, nearly as good; the others have no event in common."""
    traces: tuple[Trace, ...] = ()
    probability: float | None = None
    """Of being the cause, where labelled incidents say so; of the first slice only."""

    @property
    def excess(self) -> float:
        """Bad events beyond what was expected."""
        return self.bad - self.expected

    @property
    def llr(self) -> float:
        """Poisson log likelihood ratio of these bad events against the expected ones (Kulldorff 1997)."""
        return self.bad * math.log(self.bad / self.expected) - self.excess if self.bad > self.expected else 0.0

    def json(self) -> dict[str, Any]:
        """As ``claudescope slo explain --json`` prints it; what may be absent (``alternative``, ``probability``,
        ``traces``) only where it applies.
        """
        found: dict[str, Any] = {
            "labels": dict(self.labels),
            "bad": _short(self.bad),
            "total": _short(self.total),
            "expected": _short(self.expected),
            "excess": _short(self.excess),
            "share": round(self.share, 4),
            "llr": _short(self.llr),
            "p": float(f"{self.p:.3g}"),
        }
        if self.alternative:
            found["alternative"] = True
        if self.probability is not None:
            found["probability"] = round(self.probability, 3)
        if self.traces:
            found["traces"] = [trace._asdict() for trace in self.traces]
        return found


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which slices burn, best first; none unless the verdict is ``slices``."""

    verdict: Verdict
    slices: tuple[Slice, ...]
    now: Counts
    """All events of the window that is explained."""
    expected: float
    """Bad events that were to be expected of them; 0 where there was no baseline."""
    reason: str
    """One sentence where there are no slices."""
    noun: str = "events"
    note: str = ""
    """One sentence on what it was compared with, where that is not the baseline."""

    def json(self) -> dict[str, Any]:
        """``{"verdict", "slices": [...]}``."""
        return {"verdict": self.verdict, "slices": [found.json() for found in self.slices]}

    def text(self) -> str:
        """Plain sentences, a line each, with the counts behind each claim."""
        lines = sentences(self.claims(), self.now.bad, self.expected, self.noun, self.reason)
        return "\n".join([self.note, *lines] if self.note else lines)

    def svg(self) -> str:
        """A picture of the slices' shares, that needs nothing else and follows the reader's light or dark scheme."""
        return picture(self.claims(), self.noun, self.reason)

    def claims(self) -> list[Claim]:
        """What text and picture say of each slice."""
        return [
            Claim(
                found.labels,
                found.bad,
                found.total,
                found.expected,
                found.share,
                found.p,
                found.alternative,
                tuple(trace.url or trace.id for trace in found.traces),
                found.probability,
            )
            for found in self.slices
        ]


def _short(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)
