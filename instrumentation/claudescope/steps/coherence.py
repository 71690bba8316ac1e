"""Cuts for a long passage without structure: where its sentences hang together least.

A window is three sentences; its coherence is the mean cosine similarity of its two pairs of neighbours, over bags of
words (character pairs in scripts without spaces). The least coherent window holds the boundary, at its weaker pair.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final

__all__ = ["coherence_cuts", "sentence_starts", "similarity"]

# Repetitions are bounded, or a long run of question marks would cost its square.
_SENTENCE_END: Final = re.compile(
    r"[.!?…؟۔।॥]{1,8}[\"')\]»”’*_]{0,4}[ \t\r\n]+|[。！？．｡]{1,8}[”’」』）)\]\"*_]{0,4}[ \t\r\n]*|\n+[ \t]*"
)
_ABBREVIATION: Final = re.compile(
    r"(?:(?:^|[\s(\"'])(?:[^\W\d_]|e\.g|i\.e|[Dd]r|[Mm]rs?|[Mm]s|[Vv]s|cf|[Ff]ig|[Nn]o|[Ee]q|approx|al)"
    r"|(?:^|\n)[ ]*\d{1,3})\.$"
)
_CONTINUES: Final = frozenset("=+*/<>),;%")
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TERM: Final = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_UNSPACED_START: Final = re.compile(f"[{_UNSPACED}]")


def sentence_starts(text: str, start: int, end: int) -> list[int]:
    """Where the second and later sentences of ``text[start:end]`` start."""
    starts: list[int] = []
    for match in _SENTENCE_END.finditer(text, start, end):
        at = match.end()
        if at >= end:
            break
        if match[0][0] in ".!?" and (
            text[at].islower()
            or text[at] in _CONTINUES
            or _ABBREVIATION.search(text, max(start, match.start() - 8), match.start() + 1)
        ):
            continue
        starts.append(at)
    return starts


def _bag(sentence: str) -> Counter[str]:
    terms: Counter[str] = Counter()
    for run in _TERM.findall(sentence.lower()):
        if _UNSPACED_START.match(run) and len(run) > 1:
            terms.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            terms[run] += 1
    return terms


def similarity(a: Counter[str], b: Counter[str]) -> float:
    """Cosine of two bags of words, 0 to 1; 0 where one is empty."""
    if not a or not b:
        return 0.0
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    dot = sum(count * large.get(term, 0) for term, count in small.items())
    norms = sum(count * count for count in a.values()) * sum(count * count for count in b.values())
    return dot / math.sqrt(norms)


def coherence_cuts(
    text: str, start: int, end: int, shortest: int, longest: int, allowed: Callable[[int], bool]
) -> list[int]:
    """Cuts of ``text[start:end]`` into pieces of ``shortest`` to ``longest`` characters, at ends of sentences.

    ``allowed`` says whether a place may be cut; it is asked once for each, from left to right. A piece is longer
    where no sentence ends in range.
    """
    bounds = [start, *(at for at in sentence_starts(text, start, end) if allowed(at)), end]
    bags = [_bag(text[a:b]) for a, b in pairwise(bounds)]
    # pairs[i] is the similarity across bounds[i]; the ends have none.
    pairs = [0.0, *(similarity(a, b) for a, b in pairwise(bags)), 0.0]
    cuts: list[int] = []
    here, i = start, 1
    while end - here > longest and i < len(bounds) - 1:
        best, best_score, j = -1, (2.0, 2.0), i
        while j < len(bounds) - 1 and end - bounds[j] >= shortest:
            length = bounds[j] - here
            if length >= shortest:
                if length > longest and best >= 0:
                    break
                # The window whose weaker pair this is: the two pairs that share a sentence with it, the lower mean.
                beside = [pairs[k] for k in (j - 1, j + 1) if 0 < k < len(bounds) - 1]
                score = ((pairs[j] + min(beside, default=pairs[j])) / 2, pairs[j])
                if score <= best_score:  # of equals the last, for fewer pieces
                    best, best_score = j, score
                if length > longest:
                    break
            j += 1
        if best < 0:
            break
        cuts.append(here := bounds[best])
        i = best + 1
    return cuts
