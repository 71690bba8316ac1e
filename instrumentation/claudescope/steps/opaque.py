"""Spans of a text that must not be cut: code fences, inline code, pipe tables and formulas.

Offsets are characters. Everything is one pass over the text: a search that found nothing is not repeated before the
place where its answer could change.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Span", "opaque_spans"]

Span = tuple[int, int]
"""Start and end of a part of a text, in characters; the end is exclusive."""

_FENCE: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?:(`{3,})[^`]*|(~{3,}).*)")
_TOKEN: Final = re.compile(r"\\[\\`$]|`+|\$\$|\\\[|\\\(|\$")
_BACKTICKS: Final = re.compile("`+")
_DOLLAR_END: Final = re.compile(r"(?<![\s\\])\$(?!\d)")
_DELIMITER_ROW: Final = frozenset("|:- \t>\r")


def opaque_spans(text: str) -> list[Span]:
    """The spans that must not be cut, sorted, without overlap. A fence that is not closed runs to the end."""
    fences = _fences(text) if "```" in text or "~~~" in text else []
    spans = list(fences)
    if "|" in text:
        spans += _tables(text)
    if "$" in text or "`" in text or "\\" in text:
        # A formula never holds a fence, so it is looked for between the fences only.
        start = 0
        for fence_start, fence_end in (*fences, (len(text), len(text))):
            _inline(text, start, fence_start, spans)
            start = fence_end
    return _merged(spans)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _fences(text: str) -> list[Span]:
    spans: list[Span] = []
    marker, opened, position = "", 0, 0
    for line in text.split("\n"):
        end = position + len(line)
        if marker:
            bare = line.strip(" \t>\r")
            if bare.startswith(marker) and not bare.strip(marker[0]):
                spans.append((opened, end))
                marker = ""
        elif "```" in line or "~~~" in line:
            match = _FENCE.fullmatch(line.rstrip("\r"))
            if match:
                marker, opened = match[1] or match[2], position
        position = end + 1
    if marker:
        spans.append((opened, len(text)))
    return spans


def _tables(text: str) -> list[Span]:
    """Runs of lines with a pipe, where one is a delimiter row (``|---|``) or two running start with a pipe."""
    spans: list[Span] = []
    start, position, led, table = -1, 0, 0, False
    for line in (*text.split("\n"), ""):
        if "|" in line:
            if start < 0:
                start, led, table = position, 0, False
            led = led + 1 if line.lstrip(" \t>").startswith("|") else 0
            table = table or led > 1 or ("-" in line and _DELIMITER_ROW.issuperset(line))
        elif start >= 0:
            if table:
                spans.append((start, position - 1))
            start = -1
        position += len(line) + 1
    return spans


def _inline(text: str, start: int, stop: int, spans: list[Span]) -> None:
    """Adds the inline code and the formulas of ``text[start:stop]`` to ``spans``."""
    absent: dict[str, int] = {}  # closer -> before which offset there is none
    position = start
    while match := _TOKEN.search(text, position, stop):
        token, position = match[0], match.end()
        if token in ("\\\\", "\\`", "\\$"):
            continue
        if token in ("$$", "\\["):
            closer = "$$" if token == "$$" else "\\]"
            found = text.find(closer, position, stop) if absent.get(closer, -1) < position else -1
            if found < 0:
                absent[closer] = stop
                blank = text.find("\n\n", position, stop)
                end = stop if blank < 0 else blank
            else:
                end = found + 2
        else:
            opens = token != "$" or (position < stop and not text[position].isspace())
            if not opens or absent.get(token, -1) >= position:
                continue
            line_end = text.find("\n", position, stop)
            line_end = stop if line_end < 0 else line_end
            end = _line_closer(text, token, position, line_end)
            if end < 0:
                absent[token] = line_end
                continue
        spans.append((match.start(), end))
        position = end


def _line_closer(text: str, token: str, position: int, stop: int) -> int:
    """Where the inline span that ``token`` opened ends, or -1."""
    if token == "\\(":
        found = text.find("\\)", position, stop)
        return found + 2 if found >= 0 else -1
    if token == "$":
        match = _DOLLAR_END.search(text, position + 1, stop)
        return match.end() if match else -1
    for run in _BACKTICKS.finditer(text, position, stop):
        if len(run[0]) == len(token):
            return run.end()
    return -1
