"""What docs/testing.md shows runs as it stands, and what it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from claudescope.testing import faults, script

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_passes(tmp_path):
    (tmp_path / "test_weather.py").write_text(EXAMPLES[0])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "test_weather.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_short_example_runs():
    exec(compile(EXAMPLES[1], "docs/testing.md", "exec"), {})


def test_every_block_and_fault_is_named():
    blocks = [name for name in script.__all__ if name[0].islower() and name not in ("say", "error")]
    for name in [*blocks, *(name for name in faults.__all__ if name not in ("ERROR_TYPES", "Fault", "Point"))]:
        assert f"`{name}(" in PAGE, name


def test_every_fixture_is_named():
    from claudescope.testing import fixtures

    for name in fixtures.__all__:
        assert f"| `{name}` |" in PAGE
