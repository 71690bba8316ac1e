"""The page's files: small, complete on their own, and without a way from text to markup or code."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "instrumentation" / "claudescope" / "live" / "page"
FILES = sorted(path for path in PAGE.iterdir() if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]


def test_the_page_is_under_150_kilobytes() -> None:
    """As it is sent: the server packs each file once."""
    assert sum(len(gzip.compress(path.read_bytes())) for path in FILES) < 150_000


def test_the_page_is_flat_and_of_known_types() -> None:
    """The server serves this folder, and no folder in it, by these endings."""
    assert {path.suffix for path in FILES} == {".html", ".js", ".css", ".svg"}
    assert not [path for path in PAGE.iterdir() if path.is_dir()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_comes_from_outside(path: Path) -> None:
    text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")  # the name of SVG, not an address
    assert not re.search(r"https?://|['\"(]//|@import|url\((?!#)", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_text_can_become_markup_or_code(path: Path) -> None:
    text = path.read_text("utf-8")
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment"
    assert not re.search(ways + r"|DOMParser|srcdoc|setHTML|javascript:|set(?:Timeout|Interval)\(['\"`]", text)
    assert len(text.splitlines()) <= 400


def test_every_script_is_reached_from_the_page() -> None:
    entry = (PAGE / "index.html").read_text("utf-8")
    todo = re.findall(r'src="([^"]+\.js)"', entry)
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        text = (PAGE / name).read_text("utf-8")
        todo += re.findall(r'(?:from|import)\s*\(?"\./([^"]+\.js)"', text)
    assert seen == {path.name for path in SCRIPTS}


def test_the_page_has_no_inline_style_and_no_inline_script() -> None:
    """What the server's Content-Security-Policy forbids would fail only in a browser."""
    entry = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", entry)
