"""The confidence that the model itself states: "Confidence: 0.8", "I'm 90 % sure", "<confidence>0.8</confidence>".

It is specific rather than sensitive: a number counts only where it is the model's statement about its own answer. So
"95 % confidence interval", "90 % of users are sure", code, quotations and bare integers do not count.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..steps.model import Call, Step
from ..steps.opaque import Span, opaque_spans
from .protocol import Confidence

__all__ = ["Verbalised", "stated_confidence"]

_KINDS: Final = ("text", "thinking")
_HINTS: Final = ("confiden", "sure", "certain", "信", "把握", "确", "確", "자신", "신뢰")
_BEFORE: Final = 160
_BEYOND: Final = 200
"""Characters around a hint within which every statement about it lies; a statement has at most 150."""
_DIGIT: Final = re.compile(r"\d")
_JSON_NAMES: Final = ("confidence", "confidence_score", "certainty", "置信度", "信心")

# Every repetition is bounded, so that a match takes bounded time at each place where one may start.
_SHY: Final = (
    r"(?:(?:about|around|roughly|approximately|approx\.?|some|at least|only|~|≈|约|約|大约|大約|大概)[ ]{0,2})?"
)
_NUMBER: Final = r"(?P<v>\d{1,3}(?:[.,]\d{1,4})?|[.]\d{1,4})[ \u00a0\u202f]{0,2}(?P<unit>%|％|percent\b|/[ ]?100?\b)?"
# Not the start of a longer number, a version, a range or a fraction; not an interval's level.
_AFTER: Final = (
    r"(?![.,]?\d|[ ]?[-–—~～至到][ ]?\d|[ ]?/|[ ]?[%％]|[ ]{0,2}\*{0,2}[ ]?"
    r"(?:CI\b|confidence|interval|level|的?置信|区间|區間))"
)
_START: Final = r"(?:^|[\n(（\[【,;.!?。；，！？|—–-])[ \t]{0,4}(?:[-*+>][ ])?[*_]{0,3}"
_BOLD: Final = r"[*_]{0,3}"

_LABEL: Final = re.compile(
    rf"{_START}(?:(?:my|overall|final|estimated)[ ])?(?:confidence|certainty)(?:[ ](?:score|rating|estimate))?{_BOLD}"
    rf"[ ]?(?:[ ]\(0(?:\.0)?[ ]?[-–][ ]?1(?:\.0|00%?)?\){_BOLD}[ ]?)?[:：=]{_BOLD}[ ]{{0,3}}{_BOLD}"
    rf"{_SHY}{_NUMBER}{_AFTER}",
    re.IGNORECASE,
)
_LABEL_IS: Final = re.compile(
    rf"\bmy[ ](?:(?:overall|own|current|final)[ ])?(?:confidence|certainty)(?:[ ](?:score|level|rating))?"
    rf"(?:[ ](?:in|that|of)[ ][^.,;:!?\n]{{1,60}}?)?[ ](?:is|at|of)[ :]{_BOLD}[ ]?{_SHY}{_NUMBER}{_AFTER}",
    re.IGNORECASE,
)
_FIRST_PERSON: Final = re.compile(
    rf"\bI(?:['’]m|[ ]am|[ ]feel|['’]d[ ]say[ ]I['’]m|[ ]would[ ]say[ ]I['’]m)[ ]{_BOLD}(?:now[ ])?"
    rf"{_SHY}{_NUMBER}{_BOLD}[ ](?:sure|certain|confident)\b(?![ ]interval)",
    re.IGNORECASE,
)
_SURE: Final = re.compile(
    rf"{_START}{_SHY}{_NUMBER}[ ](?:sure|certain|confident)\b(?![ ](?:interval|level|users|people|of))", re.IGNORECASE
)
_HAVE: Final = re.compile(
    rf"\bI(?:['’]d|[ ]would)?[ ](?:have|give|put|assign)[ ](?:this[ ]|it[ ]|my[ ]answer[ ])?(?:an?[ ])?{_SHY}{_NUMBER}"
    rf"[ ]confidence\b(?![ ](?:interval|level|band|region))",
    re.IGNORECASE,
)
_TAG: Final = re.compile(rf"<confidence>\s{{0,4}}{_NUMBER}\s{{0,4}}</confidence>", re.IGNORECASE)
_EAST_LABEL: Final = re.compile(
    rf"{_START}(?:我的|总体|總體|整体)?"
    r"(?:(?:置信度|置信水平|信心(?:度|水平|程度)?|确信度|確信度|把握(?:程度)?|自信度|자신감|신뢰도|확신도)"
    rf"{_BOLD}[ ]?[:：=]|(?:信心|确信度|確信度)[为は]?)"
    rf"{_BOLD}[ ]?{_BOLD}{_SHY}{_NUMBER}{_AFTER}"
)
_EAST_HAVE: Final = re.compile(
    rf"我(?:对此|对答案|對此)?(?:现在)?(?:有)?{_SHY}(?:有)?{_NUMBER}[ ]?(?:的)?"
    r"(?:把握|信心|确定|確定|肯定|确信|確信)(?!区间)"
)
_PATTERNS: Final = (_LABEL, _LABEL_IS, _FIRST_PERSON, _SURE, _HAVE, _TAG, _EAST_LABEL, _EAST_HAVE)
_NEEDS_PERCENT: Final = (_FIRST_PERSON, _SURE, _HAVE, _EAST_HAVE)

_NOT_MINE: Final = re.compile(
    r"(?:\b(?:if|unless|when|until|not|never|whether|cannot|can't)[ ]|[\"“「『'‘`][*_]{0,2})$", re.IGNORECASE
)


def stated_confidence(text: str) -> float | None:
    """The last confidence that a text states about itself, 0 to 1, or None."""
    windows = _windows(text)
    if not windows:
        return None
    document = _json_object(text)
    if document is not None:
        return _of_json(document)
    found: list[tuple[int, int, float]] = []
    for start, end in windows:
        for pattern in _PATTERNS:
            for match in pattern.finditer(text, start, end):
                value = _value(match["v"], match["unit"], pattern in _NEEDS_PERCENT)
                if value is not None and not _NOT_MINE.search(text, max(0, match.start() - 10), match.start()):
                    found.append((match.end(), match.start("v"), value))
    if not found:
        return None
    opaque = opaque_spans(text)
    stated = [(end, value) for end, at, value in found if not any(a <= at < b for a, b in opaque)]
    return max(stated)[1] if stated else None


def _windows(text: str) -> list[Span]:
    """The surroundings of the words without which nothing is stated, where they hold a digit; without overlap."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters change their length
        return [(0, len(text))]
    places: list[int] = []
    for hint in _HINTS:
        at = lowered.find(hint)
        while at >= 0:
            places.append(at)
            at = lowered.find(hint, at + 1)
    windows: list[Span] = []
    for at in sorted(places):
        start, end = max(0, at - _BEFORE), min(len(text), at + _BEYOND)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return [window for window in windows if _DIGIT.search(text, *window)]


def _json_object(text: str) -> dict[str, Any] | None:
    """The text as a JSON object, bare or in one fence, or None."""
    bare = text.strip()
    if bare.startswith("```json") and bare.endswith("```"):
        bare = bare[7:-3].strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        document = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _of_json(document: dict[str, Any]) -> float | None:
    """The confidence of an answer given as an object: a number from 0 to 1, or a string with one or a percentage."""
    for name in _JSON_NAMES:
        value = document.get(name)
        if isinstance(value, str) and (match := re.fullmatch(_NUMBER, value.strip())):
            return _value(match["v"], match["unit"], percent=False)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
    return None


def _value(number: str, unit: str | None, percent: bool) -> float | None:
    value = float(number.replace(",", "."))
    if unit is None:
        # A bare integer may be on any scale.
        return value if not percent and ("." in number or "," in number) and value <= 1 else None
    scale = 10 if unit.replace(" ", "") == "/10" else 100
    if percent and unit.startswith("/"):
        return None
    return value / scale if value <= scale else None


class Verbalised:
    """Confidence as stated in a thinking or text step; the last statement wins. Not calibrated."""

    name = "verbalised"

    def estimate(self, step: Step, call: Call) -> Confidence | None:
        """The stated confidence, or None."""
        if step.kind not in _KINDS:
            return None
        value = stated_confidence(step.text)
        return None if value is None else Confidence(value)
