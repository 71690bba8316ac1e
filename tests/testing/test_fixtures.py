"""The pytest plug-in, in a project of somebody else."""

from __future__ import annotations

import subprocess
import sys

import anthropic

CONFTEST = """
import sys

def pytest_sessionfinish(session):
    heavy = ("anthropic", "opentelemetry.sdk", "opentelemetry.trace", "orjson", "jsonschema", "claudescope.capture")
    print("HEAVY", [name for name in heavy if name in sys.modules])
"""


def run_pytest(folder, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_theirs.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-W", "error", "."]
    command += ["-p", "no:asyncio", "-p", "no:anyio"]  # they import much themselves
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


def test_a_project_that_does_not_use_it_pays_nothing(tmp_path):
    done = run_pytest(tmp_path, "def test_theirs():\n    pass\n")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "HEAVY []" in done.stdout


def test_the_stand_in_alone_imports_no_sdk(tmp_path):
    done = run_pytest(tmp_path, "def test_theirs(claudescope_standin):\n    assert claudescope_standin.port\n")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "HEAVY []" in done.stdout


def test_instrumented(claudescope_standin, claudescope_instrumented):
    import claudescope

    ask = {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
    with anthropic.Anthropic(base_url=claudescope_standin.url, api_key="k") as client:
        client.messages.create(**ask)
    assert claudescope.flush(10)
    assert [step.name for step in claudescope_instrumented.steps] == ["reasoning_step text"]
    assert len(claudescope_instrumented.calls) == 1
