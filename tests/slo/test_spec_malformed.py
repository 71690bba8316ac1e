"""Each file says in its first line where it is wrong and a piece of what to write instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from claudescope.cli.main import main
from claudescope.slo.spec.load import read

FOLDER = Path(__file__).parent / "malformed"
FILES = sorted(FOLDER.iterdir())
EXPECTED = re.compile(rb"# (\d+): ([^\n]*)\n")


def test_there_are_enough():
    assert len(FILES) >= 60


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_is_refused_with_its_line_and_a_fix(path, capsys):
    if path.stem == "query-not-promql":
        pytest.importorskip("promql_parser", reason="the extra dashboards is not installed")
    head = EXPECTED.match(path.read_bytes())
    assert head, "the first line is no `# LINE: fix`"
    line, fix = int(head[1]), head[2].decode()
    (problem,) = read([path]).problems
    assert (problem.path, problem.line) == (str(path), line), problem
    assert fix in problem.fix, problem
    assert problem.fix[-1] in ".?"
    assert main(["slo", "validate", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"{path}:{line}: {problem.what} {problem.fix}\nclaudescope: 1 error.\n"


def test_all_at_once_are_all_refused(capsys):
    """Files do not hide each other's errors; only the reference to an indicator is found in another file."""
    assert main(["slo", "validate", *map(str, FILES)]) == 2
    found = {line.split(":")[0] for line in capsys.readouterr().err.splitlines()[:-1]}
    assert found >= {str(path) for path in FILES if path.stem != "query-not-promql"}
