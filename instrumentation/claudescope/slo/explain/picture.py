"""An explanation as a small picture: a bar for each slice, as long as its share of the burn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from .sentences import Claim, amount, where

__all__ = ["picture"]

_WIDTH: Final = 640
_ROW: Final = 52
_LEFT: Final = 16
_BAR: Final = _WIDTH - 2 * _LEFT
_TITLE: Final = 40
_LONGEST: Final = 72
"""Characters of a line, at most."""
_STYLE: Final = """\
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-weight:600}.quiet{fill:#59636e}
.back{fill:#fff}.track{fill:#eaeef2}.bar{fill:#b3261e}.other{fill:#e5a19c}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}
.back{fill:#0d1117}.track{fill:#262c36}.bar{fill:#f2938c}.other{fill:#7d4a46}}"""


def picture(claims: Sequence[Claim], noun: str, reason: str) -> str:
    """SVG, self-contained. What it shows is said in its title and in text, so nobody needs to see the colours."""
    height = _TITLE + max(1, len(claims)) * _ROW
    title = f"Where the bad {noun} beyond what was expected are" if claims else reason
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="back" width="{_WIDTH}" height="{height}" rx="6"/>',
        f'<text class="title" x="{_LEFT}" y="26">{escape(_short(title))}</text>',
    ]
    for at, claim in enumerate(claims):
        parts.append(_bar(claim, _TITLE + at * _ROW, noun))
    return "".join([*parts, "</svg>\n"])


def _bar(claim: Claim, top: int, noun: str) -> str:
    kind = "other" if claim.alternative else "bar"
    length = round(_BAR * min(1.0, max(0.0, claim.share)), 1)
    counts = f"{amount(claim.bad)} of {amount(claim.total)} {noun} bad, {amount(claim.expected)} expected"
    name = f"or: {where(claim.labels)}" if claim.alternative else where(claim.labels)
    return (
        f'<text x="{_LEFT}" y="{top + 14}">{escape(_short(name))}</text>'
        f'<rect class="track" x="{_LEFT}" y="{top + 20}" width="{_BAR}" height="8" rx="4"/>'
        f'<rect class="{kind}" x="{_LEFT}" y="{top + 20}" width="{length}" height="8" rx="4"/>'
        f'<text class="quiet" x="{_LEFT}" y="{top + 43}">{claim.share:.0%} of the burn: {escape(counts)}</text>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
