"""The reference tables say what the code does."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.mark.parametrize("name", list(GENERATE["PAGES"]))
def test_page_is_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == GENERATE["PAGES"][name]()
