"""Cuts a thinking or text block into the steps that its own structure shows.

By rank: explicit steps ("Step 3", "第三步"), headings, numbered items and opening words, paragraphs. A part that is
still long is cut where its sentences hang together least. Inside an explicit step, a heading's section or a numbered
item that has a successor, parts of lower rank are not cut while the whole is short enough: they belong to it.

Lengths count a character of the East Asian wide scripts twice, since it says about as much as two Latin letters.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import pairwise
from typing import Final, NamedTuple

from .coherence import coherence_cuts
from .markers import HEADING, ITEM, PARAGRAPH, STEP, Marker, marker_at
from .opaque import Span, opaque_spans

__all__ = ["LONG", "LONGEST", "SHORT", "Piece", "segment"]

SHORT: Final = 300
"""A text shorter than this is one step, unless it names explicit steps."""
LONG: Final = 1500
"""Parts of a step are kept together up to this length; a passage without structure is cut above it."""
LONGEST: Final = 1_000_000
"""A text of more characters is one step: no answer of a model is as long, and the time to cut it would be seconds."""
SHORTEST: Final = {STEP: 60, HEADING: 80, ITEM: 60, PARAGRAPH: 160}
"""What must stand before a cut of a rank, and at the end of the text; explicit steps in a row have no minimum."""

_WIDE: Final = re.compile("[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]")
_STEP_WORD: Final = re.compile(
    "step|stage|phase|étape|schritt|pas[os]o|шаг|خطوة|שלב|步|ステップ|手順|단계", re.IGNORECASE
)
_ENDS_SENTENCE: Final = re.compile(r"[.!?。！？．｡…؟।:：;；][\"')\]»”’」』）*_]*\s*$")
_NO_NEW_THOUGHT: Final = re.compile(r"[ \t>]*(?:[a-zß-öø-ÿ]|[=+*/)|<]|```|~~~|\$\$|\\\[|\$)")
_TRAILING_COLON: Final = re.compile(r"[:：][*_]*\s*$")


class Piece(NamedTuple):
    """One step's part of a text, ``text[start:end]``, and its name: a number such as "step 3" or "2-4", or None."""

    start: int
    end: int
    name: str | None = None


class _Cut(NamedTuple):
    at: int
    marker: Marker
    followed: bool
    """Whether a marker of the same kind (or above) comes later."""
    least: int
    """Length that must stand before it."""


def _length(text: str, start: int, end: int) -> int:
    """Characters of ``text[start:end]``, wide ones counted twice."""
    if text.isascii():
        return end - start
    return end - start + sum(1 for _ in _WIDE.finditer(text, start, end))


def segment(text: str) -> list[Piece]:
    """The steps of a text, in order, without gaps: joined they give the text. At least one, empty for an empty text.
    A JSON document is one step, and so is a text of more than 1,000,000 characters.

    Deterministic; time is linear in the text's length, up to that ceiling.
    """
    whole = [Piece(0, len(text))]
    if len(text) > LONGEST:
        return whole
    if _length(text, 0, len(text)) < SHORT and not _STEP_WORD.search(text):
        return whole
    if _is_json(text):
        return whole
    opaque = opaque_spans(text)
    cuts = _candidates(text, opaque)
    pieces = _assemble(text, cuts)
    if _length(text, 0, len(text)) < SHORT and not any(cut.marker.rank == STEP for cut in cuts):
        return whole
    return [part for piece in pieces for part in _split_long(text, piece, opaque)]


def _is_json(text: str) -> bool:
    bare = text.strip()
    if bare[:1] + bare[-1:] not in ("{}", "[]"):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


class _Allowed:
    """Whether a place may be cut; places must be asked from left to right."""

    def __init__(self, opaque: list[Span]) -> None:
        self._opaque = opaque
        self._next = 0

    def __call__(self, at: int) -> bool:
        while self._next < len(self._opaque) and self._opaque[self._next][1] <= at:
            self._next += 1
        return self._next == len(self._opaque) or at <= self._opaque[self._next][0]


def _candidates(text: str, opaque: list[Span]) -> list[_Cut]:
    """Every line that opens something, outside what must not be cut, in order."""
    allowed = _Allowed(opaque)
    found: list[tuple[int, Marker, int]] = []
    followed: set[int] = set()
    latest: dict[str, tuple[int, int]] = {}  # style -> its latest number, and where in `found`
    loose = "\n\n" in text or "\n\r\n" in text  # else a line that ends a sentence ends a paragraph
    position, before = 0, ""
    blank, titled = True, False
    for line in text.split("\n"):
        here, position = position, position + len(line) + 1
        if not line or line.isspace():
            blank = True
            continue
        marker = None
        if allowed(here):
            ended = blank or bool(_ENDS_SENTENCE.search(before[-12:]))
            marker = marker_at(text, here, ended)
            if marker is not None and marker.style and marker.rank != STEP:
                # "2." opens an item only after a "1.": numbers stand at the start of lines by chance too.
                number, index = latest.get(marker.style, (-1, -1))
                if marker.number in (0, 1) or marker.number == number + 1:
                    latest[marker.style] = (marker.number, len(found))
                    if index >= 0 and marker.number == number + 1:
                        followed.add(index)
                else:
                    marker = Marker(HEADING) if marker.rank == HEADING else None
            if marker is None and ended and (blank or not loose) and here:
                introduced = bool(_TRAILING_COLON.search(before[-6:]))
                if not introduced and not titled and not _NO_NEW_THOUGHT.match(text, here):
                    marker = Marker(PARAGRAPH)
            if marker is not None:
                least = SHORTEST[marker.rank]
                if marker.rank == ITEM and _TRAILING_COLON.search(before[-6:]):
                    least = SHORTEST[PARAGRAPH]  # a short sentence that introduces a list goes with its first item
                elif titled and marker.rank != STEP:
                    least = len(text) * 2 + 1  # a title stands with what follows
                found.append((here, marker, least))
                if marker.rank >= HEADING:  # a list ends here; numbered headings go on
                    latest = {style: seen for style, seen in latest.items() if found[seen[1]][1].rank >= HEADING}
        titled = marker is not None and marker.rank == HEADING
        before, blank = line, False
    cuts: list[_Cut] = []
    highest = PARAGRAPH
    for index in range(len(found) - 1, -1, -1):
        at, marker, least = found[index]
        cuts.append(_Cut(at, marker, index in followed or HEADING <= marker.rank <= highest, least))
        highest = max(highest, marker.rank)
    cuts.reverse()
    return cuts


def _assemble(text: str, cuts: list[_Cut]) -> list[Piece]:
    """Takes the cuts that leave meaningful pieces, from left to right."""
    pieces: list[tuple[int, list[Marker]]] = []
    markers: list[Marker] = []
    owner: _Cut | None = None
    start = size = previous = 0
    for cut in cuts:
        size += _length(text, previous, cut.at)
        previous = cut.at
        rank = cut.marker.rank
        own = owner.marker.rank if owner else PARAGRAPH
        inside = owner is not None and owner.followed and size < LONG and _lower(cut.marker, owner.marker)
        explicit = rank == STEP and own == STEP
        if cut.at > start and not inside and (explicit or size >= cut.least):
            pieces.append((start, markers))
            start, size, owner, markers = cut.at, 0, None, []
        if rank > PARAGRAPH and not inside:
            if rank >= own:
                owner = cut
            if cut.marker.style:
                markers.append(cut.marker)
    size += _length(text, previous, len(text))
    rank = owner.marker.rank if owner else PARAGRAPH
    if pieces and rank != STEP and size < SHORTEST[rank]:
        start, before = pieces.pop()
        markers = before + markers
    pieces.append((start, markers))
    ends = [*(start for start, _ in pieces[1:]), len(text)]
    return [Piece(start, end, _name(markers)) for (start, markers), end in zip(pieces, ends, strict=True)]


def _lower(marker: Marker, owner: Marker) -> bool:
    """Whether a marker belongs inside what another opened: its rank is lower, or it numbers a list within an item."""
    return marker.rank < owner.rank or (marker.rank == owner.rank == ITEM and marker.style != owner.style != "")


def _name(markers: list[Marker]) -> str | None:
    if not markers:
        return None
    rank = max(marker.rank for marker in markers)
    named = [marker for marker in markers if marker.rank == rank]
    first, last = named[0], named[-1]
    if first.style == last.style and last.number > first.number:
        return f"{first.name}-{last.number}"
    return first.name


def _split_long(text: str, piece: Piece, opaque: list[Span]) -> list[Piece]:
    if piece.end - piece.start < LONG // 2 or (size := _length(text, piece.start, piece.end)) < LONG:
        return [piece]
    # In characters of this passage: fewer where they are wide.
    scale = (piece.end - piece.start) / size
    first = max(0, bisect_left(opaque, (piece.start, 0)) - 1)
    allowed = _Allowed(opaque[first : bisect_left(opaque, (piece.end, 0))])
    cuts = coherence_cuts(text, piece.start, piece.end, int(LONG / 4 * scale), int(LONG * scale), allowed)
    bounds = [piece.start, *cuts, piece.end]
    return [Piece(start, end, piece.name if start == piece.start else None) for start, end in pairwise(bounds)]
