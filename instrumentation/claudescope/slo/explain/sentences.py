"""An explanation in plain sentences, each with the counts behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ... import semconv

__all__ = ["LEAST", "Claim", "amount", "chance", "sentences", "where"]

LEAST: Final = 1e-6
"""A smaller probability is told as this one: no fit to some simulations knows better."""

_WORDS: Final = {
    semconv.STEP_INDEX: "step",
    semconv.STEP_KIND: "kind",
    semconv.TOOL_NAME: "tool",
    semconv.REQUEST_MODEL: "model",
    semconv.SERVICE_NAME: "service",
}
"""What a person says instead of an attribute's name."""


class Claim(NamedTuple):
    """What is said of a slice."""

    labels: Mapping[str, str]
    bad: float
    total: float
    expected: float
    share: float
    p: float
    alternative: bool
    examples: tuple[str, ...]
    probability: float | None = None


def sentences(claims: Sequence[Claim], bad: float, expected: float, noun: str, reason: str) -> list[str]:
    """What ``Explanation.text`` says, by line: ``bad`` of all events, of which so many were ``expected``."""
    if not claims:
        return [reason]
    excess = max(bad - expected, sum(claim.bad - claim.expected for claim in claims if not claim.alternative))
    found = []
    for claim in claims:
        place = where(claim.labels)
        counts = (
            f"{amount(claim.bad)} of its {amount(claim.total)} {noun} are bad, {amount(claim.expected)} were expected"
        )
        if claim.alternative:
            found.append(f"Nearly as good a description is {place}: {counts}.")
            continue
        found.append(
            f"{amount(claim.bad - claim.expected)} of the {amount(excess)} bad {noun} beyond what was expected"
            f" are in {place}: {counts} (chance of such a slice where nothing is wrong: {chance(claim.p)})."
        )
        if claim.probability is not None:
            found.append(
                f"  Of labelled incidents as clear as this one, {claim.probability:.0%} had their cause there."
            )
        if claim.examples:
            found.append(f"  For example: {', '.join(claim.examples)}")
    return found


def where(labels: Mapping[str, str]) -> str:
    """Labels as a person says them: ``step 7 of tool search, tier=gold``."""
    said = []
    for name, value in labels.items():
        word, shown = _printable(_word(name)), _printable(value) or "(none)"
        said.append(f"{word} {shown}" if word in _WORDS.values() else f"{word}={shown}")
    if len(said) > 1 and said[0].startswith("step "):
        return f"{said[0]} of {', '.join(said[1:])}"
    return ", ".join(said)


def amount(value: float) -> str:
    """A count: whole from 10 on, else with one decimal where it has any."""
    return f"{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def chance(p: float) -> str:
    """A probability in words' length."""
    return "under 1 in a million" if p <= LEAST else f"{p:.2g}"


def _printable(text: str) -> str:
    """Labels come from apps: a character that moves a cursor, or that XML cannot hold, is told and not sent."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _word(name: str) -> str:
    """A dimension's name without what Prometheus and OpenTelemetry put before it."""
    for attribute, word in _WORDS.items():
        if name in (attribute, attribute.replace(".", "_")):
            return word
    for prefix in (semconv.LABEL_PREFIX, semconv.LABEL_PREFIX.replace(".", "_"), "label."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
