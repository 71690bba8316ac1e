import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from compat_venv import default_folder, python_of
from otlp_page import Page

from claudescope.testing import StandIn, say
from claudescope.testing.script import thinking

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def compat_python():
    """A Python that has the other instrumentations and the frameworks."""
    if find_spec("opentelemetry.instrumentation") and find_spec("instructor") and find_spec("logfire"):
        return sys.executable
    python = python_of(default_folder())
    if python.exists():
        return str(python)
    reason = "python tests/integration/compat_venv.py makes the environment that this needs"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    return pytest.skip(reason)


@pytest.fixture(scope="session")
def standin():
    with StandIn(say(thinking("The sum of two and two is four."), "4")) as made:
        yield made


@pytest.fixture
def page():
    with Page() as made:
        yield made


@pytest.fixture
def run_app(standin, tmp_path):
    """Runs an app in a process of its own, with nothing of OpenTelemetry in its environment but what is given."""

    def run(source, python=sys.executable, before=(), check=True, **env):
        file = tmp_path / "app.py"
        file.write_text(textwrap.dedent(source))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAUDESCOPE_"))}
        kept |= {"ANTHROPIC_BASE_URL": standin.url, "ANTHROPIC_API_KEY": "none"} | env
        done = subprocess.run(
            [*before, python, str(file)], env=kept, cwd=tmp_path, capture_output=True, text=True, timeout=100
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run
