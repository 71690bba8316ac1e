"""Links of the documentation lead somewhere, and every module of the page is on the map."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\(((?!https?://|mailto:)[^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text("utf-8")), link


def test_every_module_of_the_page_is_in_the_architecture() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("### Page\n")[2].partition("\n### ")[0]
    rows = [line.rpartition("|")[0] for line in section.splitlines() if line.startswith("| ")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    page = ROOT / "instrumentation" / "claudescope" / "live" / "page"
    assert sorted(named) == sorted(path.stem for path in page.glob("*.js"))
