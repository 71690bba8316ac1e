"""What opens a step in a text: "Step 3", headings, numbered items and openings such as "Finally,".

A marker's name holds its number only, never a word of the text: names leave the process when content does not.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["HEADING", "ITEM", "PARAGRAPH", "STEP", "Marker", "marker_at"]

STEP: Final = 3
"""Rank of an explicit step: "Step 3", "第三步"."""
HEADING: Final = 2
"""Rank of a heading that is not an explicit step: "## Analysis", a line in bold."""
ITEM: Final = 1
"""Rank of a numbered item or an opening word."""
PARAGRAPH: Final = 0
"""Rank of a plain paragraph."""


class Marker(NamedTuple):
    """What a line opens: its rank, the style of its number (empty: it has none), and the number."""

    rank: int
    style: str = ""
    number: int = 0

    @property
    def name(self) -> str | None:
        """Such as "step 3" or "2"; None where there is no number."""
        if not self.style:
            return None
        return f"step {self.number}" if self.rank == STEP else str(self.number)


_HAN: Final = "一二三四五六七八九十"
_WORDS: Final = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten",
        "الأولى الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة",
    )
    for number, word in enumerate(words.split(), 1)
}
_LEAD: Final = r"[ ]{0,2}(?:>[ ]?)?(?P<hash>\#{1,6}[ \t]+)?(?:[-*+][ ]+)?(?P<bold>\*\*|__)?[ ]?"
_COUNT: Final = rf"\d{{1,3}}|[{_HAN}]{{1,3}}|" + "|".join(_WORDS)
_STEP: Final = re.compile(
    rf"{_LEAD}(?:"
    rf"(?:step|stage|phase|étape|schritt|paso|passo|шаг|الخطوة|خطوة|שלב|步骤|步驟|ステップ|手順)\s?(?:no\.\s?|\#)?(?P<a>{_COUNT})"
    rf"|第\s?(?P<b>\d{{1,3}}|[{_HAN}]{{1,3}})\s?步骤?|(?P<c>\d{{1,3}})\s?단계"
    # What follows tells the heading "Step 2: ..." from the mention "Step 2 is wrong".
    r")(?:[ ]?[:：.,，、。)）*_(（]|[ ]?[-–—]|[ \t\r]*$|[ \t\r]*\n)",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(
    r"[ ]{0,3}\#{1,6}[ \t]+\S|[ ]{0,2}(?:\*\*[^*\n]{1,120}\*\*|__[^_\n]{1,120}__)[:：]?[ \t\r]*(?:\n|$)"
)
_ITEM: Final = re.compile(
    rf"{_LEAD}(?:"
    r"(?P<dot>\d{1,3})\.(?:(?=[ \t]+\S)|(?=[^\W\d_a-zA-Z]))"
    r"|(?P<paren>\d{1,3})\)(?:(?=[ \t]+\S)|(?=[^\W\d_a-zA-Z]))"
    r"|(?P<wide>\d{1,3})[、．）]"
    r"|[(（](?P<round>\d{1,3})[)）]"
    r"|(?P<circle>[①-⑳])"
    rf"|(?P<han>[{_HAN}]{{1,3}})[、．.]"
    rf"|[(（](?P<hanround>[{_HAN}]{{1,3}})[)）]"
    r")"
)
_OPENING: Final = re.compile(
    r"(?:首先|其次|然后|然後|接着|接著|接下来|接下來|再次|再者|随后|隨後|最后|最後|まず|次に|さらに|最後に)"
    r"|(?:First(?:ly)?|Second(?:ly)?|Third(?:ly)?|Next|Then|Finally|Lastly),"
    r"|(?:أولاً|ثانياً|ثالثاً|أخيراً)|(?:ראשית|שנית|לבסוף),"
)
_MARKER_STARTS: Final = re.compile(
    r"[ ]{0,3}[^\W_a-z]|[ ]{0,3}[#*_>(（①-⑳+-]|[ ]{0,2}(?:step|stage|phase|schritt|paso|passo|étape|шаг)"
)


def marker_at(text: str, position: int, opening: bool) -> Marker | None:
    """What the line at ``position`` opens, or None. ``opening``: whether an opening word counts here."""
    if not _MARKER_STARTS.match(text, position):
        return None
    if match := _STEP.match(text, position):
        return Marker(STEP, "step", _number(match["a"] or match["b"] or match["c"]))
    heading = _HEADING.match(text, position)
    if match := _ITEM.match(text, position):
        style = str(match.lastgroup)
        return Marker(HEADING if heading else ITEM, style, _number(match[style]))
    if heading:
        return Marker(HEADING)
    if opening and _OPENING.match(text, position):
        return Marker(ITEM)
    return None


def _number(numeral: str) -> int:
    if numeral.isdecimal():
        return int(numeral)
    if "①" <= numeral <= "⑳":
        return ord(numeral) - ord("①") + 1
    if numeral.lower() in _WORDS:
        return _WORDS[numeral.lower()]
    tens, ten, ones = numeral.rpartition("十")
    if not ten:
        return _HAN.index(numeral[0]) + 1
    return 10 * (_HAN.index(tens[-1]) + 1 if tens else 1) + (_HAN.index(ones[0]) + 1 if ones else 0)
