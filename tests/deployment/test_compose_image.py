"""The image of the demo, as far as it can be proved without an engine: its context, and the wheel made in it."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from compose_model import ROOT

from claudescope.stack.files import shipped_files

STEPS = re.findall(r"^([A-Z]+) (.+(?:\\\n.+)*)", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)


def ignored(name: str) -> bool:
    """Whether ``.dockerignore`` keeps a file out of the context: the last pattern that fits decides."""
    out = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        keep, pattern = pattern.startswith("!"), pattern.removeprefix("!")
        if pattern.startswith("**/"):
            fits = any(fnmatch.fnmatch(part, pattern[3:]) for part in Path(name).parts)
        else:
            parts = Path(name).parts
            fits = any(fnmatch.fnmatch("/".join(parts[:n]), pattern) for n in range(1, len(parts) + 1))
        if fits:
            out = not keep
    return out


@pytest.mark.parametrize(
    "name", [".env", "secrets/tls/tls.key", "secrets/alertmanager/slack", ".git/config", ".venv/x"]
)
def test_secrets_never_get_into_the_context(name):
    assert ignored(name)


def test_what_runs_is_not_root_and_was_built_in_another_stage():
    stages = [value for word, value in STEPS if word == "FROM"]
    assert [stage.split()[0] for stage in stages] == ["python:${PYTHON}-slim-bookworm"] * 2
    assert stages[0].endswith(" AS build")
    last = STEPS[max(at for at, step in enumerate(STEPS) if step[0] == "FROM") :]
    assert ("USER", "10001:10001") in last
    assert [value for word, value in last if word == "COPY"] == ["--from=build /opt/claudescope /opt/claudescope"]


def test_the_command_is_one_that_there_is(model):
    words = next(value for word, value in STEPS if word == "CMD")
    assert words == '["claudescope", "demo", "--no-server"]'
    assert model["services"]["demo"]["command"] == ["claudescope", "demo", "--no-server"]


@pytest.mark.slow
def test_the_wheel_is_made_from_the_context_alone_and_holds_the_stack(tmp_path):
    """What the Dockerfile's RUN does, in a folder with the context's files only; then ``stack init`` from the wheel."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listing.stdout.splitlines():
        if not ignored(name) and (ROOT / name).is_file():
            (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "source" / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), "."], cwd=tmp_path / "source", check=True, timeout=300)
    (wheel,) = tmp_path.glob("claudescope-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        inside = {name for name in opened.namelist() if name.startswith("claudescope/stack/files/")}
        opened.extractall(tmp_path / "installed")
    shipped = shipped_files()
    assert inside >= {f"claudescope/stack/files/{name}" for name in shipped}
    assert not [name for name in inside if ".env" in name and not name.endswith(".env.example")]
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from claudescope.cli.main import main; sys.exit(main())"
    target = tmp_path / "stack"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "installed"), "stack", "init", str(target)],
        check=True, capture_output=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    for name, source in shipped.items():
        assert (target / name).read_bytes() == source.read_bytes(), name
