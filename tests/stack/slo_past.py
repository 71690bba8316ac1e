"""A Prometheus with a past: what is written as OpenMetrics text becomes blocks; and programs that judge rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from stack_backends import Prometheus
from stack_programs import Program

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parents[1] / "slo"))

from e2e_kit import free_port

ROOT = Path(__file__).parents[2]

Sample = tuple[float, float]


def run(*command: object) -> str:
    """The output of a program that has to succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def old_promtool() -> Path:
    """promtool of Debian's Prometheus 2.42, as `.ci/run` unpacks it."""
    beside = ROOT / ".cache" / "debian" / "usr" / "bin" / "promtool"
    for found in (beside, Path(shutil.which("promtool") or "none")):
        if found.exists() and "version 2." in run(found, "--version"):
            return found
    why = "Debian's Prometheus 2.42 is not here: see .ci/run"
    if os.environ.get("CI") == "true":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


def shared(*parts: str) -> Path:
    """A file of ``../shared``, which is always there in CI."""
    path = ROOT.parent.joinpath("shared", *parts)
    if not path.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"../shared/{'/'.join(parts)} is missing", pytrace=False)
        pytest.skip(f"../shared/{'/'.join(parts)} is not here")
    return path


def with_past(programs: Path, folder: Path, series: Mapping[str, Iterable[Sample]]) -> tuple[Program, Prometheus]:
    """A running Prometheus whose blocks hold ``series``: selector -> (unix time, value) in order of time."""
    by_name: dict[str, list[str]] = {}
    for selector, samples in series.items():
        name = selector.partition("{")[0]
        by_name.setdefault(name, []).extend(f"{selector} {value} {at}" for at, value in samples)
    lines = [line for name, found in by_name.items() for line in (f"# TYPE {name} unknown", *found)]
    text = folder / "past.om"
    text.write_text("\n".join([*lines, "# EOF", ""]), "utf-8")
    data = folder / "data"
    run(programs / "promtool", "tsdb", "create-blocks-from", "openmetrics", text, data)
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n", "utf-8")
    port = free_port()
    program = Program(
        "prometheus",
        [
            programs / "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        dict(os.environ),
        folder,
        f"http://127.0.0.1:{port}/-/ready",
    )
    program.start()
    return program, Prometheus(f"http://127.0.0.1:{port}")


def promtool_test(programs: Path, folder: Path, rules: str, tests: dict[str, object]) -> str:
    """Runs unit tests of rules, without their `rule_files`; raises AssertionError with what promtool says."""
    (folder / "r.yml").write_text(rules, "utf-8")
    (folder / "t.yml").write_text(json.dumps({"rule_files": ["r.yml"], **tests}), "utf-8")
    return run(programs / "promtool", "test", "rules", folder / "t.yml")
