"""scripts/build-stack, with a stand-in for Go: what it says, what it builds, and what it leaves alone."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "build-stack"
# Answers `env` and `version`; `build -o PLACE` makes the programs, or the generator of the collector's sources.
GO = """#!/bin/bash
case "$1 $2" in
    "env GOVERSION") echo go{version} ;;
    "env GOTOOLCHAIN") echo local ;;
    version*) echo "go version go{version}" ;;
    build*)
        echo "$PWD $*" >>"{calls}"
        [ ! -e "{calls}.broken" ] || {{ echo "no such package" >&2; exit 1; }}
        while [ "$1" != -o ]; do shift; done
        names="{names}"
        case "$2" in */) ;; *) names="" ; printf '#!/bin/sh\\n' >"$2"; chmod +x "$2" ;; esac
        for name in $names; do printf '#!/bin/sh\\n' >"$2$name"; chmod +x "$2$name"; done ;;
esac
"""

MADE = "jaeger prometheus promtool alertmanager amtool builder"


@pytest.fixture
def build(tmp_path):
    calls = tmp_path / "calls"

    def run(
        *names: str, version: str = "1.26.8", makes: str = "jaeger prometheus promtool alertmanager amtool builder"
    ):
        folder = tmp_path / "path"
        folder.mkdir(exist_ok=True)
        go = folder / "go"
        go.write_text(GO.format(version=version, calls=calls, names=MADE), "utf-8")
        go.chmod(0o755)
        calls.unlink(missing_ok=True)
        env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "STACK_CACHE": str(tmp_path / "cache")}
        done = subprocess.run([SCRIPT, *names], env=env, capture_output=True, text=True, timeout=60, check=False)
        return done, calls.read_text() if calls.exists() else ""

    return run


def test_every_tool_is_built_once_and_then_left_alone(build, tmp_path) -> None:
    done, calls = build()
    assert done.returncode == 0, done.stderr
    assert [len(re.findall(f"stack/{tool} build", calls)) for tool in ("otelcol", "jaeger", "prometheus")] == [1, 1, 1]
    assert "-mod=readonly" in SCRIPT.read_text()
    programs = {path.name for path in (tmp_path / "cache" / "bin").iterdir()}
    assert programs >= {"otelcol", "jaeger", "prometheus", "promtool", "alertmanager", "amtool"}
    done, calls = build()
    assert (done.returncode, calls) == (0, "")
    assert done.stdout.count("is up to date") == 4


def test_another_go_builds_anew_and_a_lost_program_too(build, tmp_path) -> None:
    build("jaeger")
    assert "stack/jaeger" in build("jaeger", version="1.27.0")[1]
    (tmp_path / "cache" / "bin" / "jaeger").unlink()
    assert "stack/jaeger" in build("jaeger", version="1.27.0")[1]


def test_what_it_says(build, tmp_path) -> None:
    done, _ = build(version="1.20.1")
    assert done.returncode == 2
    assert "Go 1.20.1 is too old: install 1.26.7 or later" in done.stderr
    done, _ = build("grafana")
    assert done.returncode != 0
    assert "there is no 'grafana': name any of otelcol, jaeger, prometheus, alertmanager" in done.stderr
    (tmp_path / "calls.broken").touch()
    done, _ = build("alertmanager")
    assert done.returncode == 1
    assert "no such package" in done.stderr
    assert "alertmanager did not build" in done.stderr


def test_one_module_a_tool_and_every_version_pinned() -> None:
    for tool in ("otelcol", "jaeger", "prometheus", "alertmanager"):
        module = ROOT / "scripts" / "stack" / tool
        assert (module / "go.sum").exists()
        assert re.search(r"^tool ", (module / "go.mod").read_text("utf-8"), re.MULTILINE)
    versions = set(re.findall(r"gomod: \S+ (v\S+)", (ROOT / "collector" / "builder.yaml").read_text("utf-8")))
    assert versions == {"v0.161.0", "v1.67.0"}
