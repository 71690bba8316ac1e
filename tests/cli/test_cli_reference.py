from __future__ import annotations

from pathlib import Path

from claudescope.cli.reference import markdown


def test_commands_page_is_current():
    page = Path(__file__).parents[2] / "docs" / "commands.md"
    assert page.read_text("utf-8") == markdown(), "python -m claudescope.cli.reference > docs/commands.md"
