"""What holds for the tree as a whole."""

import ast
import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "instrumentation" / "claudescope"
MODULES = sorted(path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py"))
SKIP = {"__main__", "sitecustomize"}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_module_is_a_room_and_not_a_hall(path: Path) -> None:
    assert len((PACKAGE.parent / path).read_text("utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", [path for path in MODULES if path.stem not in SKIP | {"__init__"}], ids=str)
def test_all_is_the_public_names(path: Path) -> None:
    if "examples" in path.parts or "bootstrap" in path.parts:
        pytest.skip("a script")
    tree = ast.parse((PACKAGE.parent / path).read_text("utf-8"))
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_")
    }
    if "semconv" in path.parts:
        return  # all of it is names
    module = importlib.import_module(_name(path))
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    assert not missing
    assert defined <= set(module.__all__)


def _tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


def test_nothing_of_one_machine_is_committed() -> None:
    # spelled in parts, so that this file does not find itself
    forbidden = re.compile(
        "|".join(["/wo" + "rk/", "/ro" + "ot/", "pypi" + r"\.org", "pythonhosted" + r"\.org", "registry" + r"\.npmjs"])
    )
    found = []
    for path in _tracked():
        data = path.read_bytes()
        assert len(data) <= 1_000_000, f"{path} is over 1 MB"
        if b"\0" not in data and (match := forbidden.search(data.decode("utf-8", "replace"))):
            found.append(f"{path.relative_to(ROOT)}: {match.group()}")
    assert not found


def test_nothing_else_spells_a_name() -> None:
    """Attribute and metric names come from semconv only."""
    ours = "step|chain|request|label|keep|dropped|steps|stream"
    spelled = re.compile(rf"""["'](gen_ai\.[a-z_.]+|claudescope\.({ours})[a-z0-9_.]*)["']""")
    found = [
        f"{path}: {match.group()}"
        for path in MODULES
        if "semconv" not in path.parts and "examples" not in path.parts
        for match in spelled.finditer((PACKAGE.parent / path).read_text("utf-8"))
        if not match.group(1).startswith("claudescope.steps.")
    ]
    assert not found
