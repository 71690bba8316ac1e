"""From ``stack init``'s two lines to steps in Jaeger and Prometheus, on the real programs: the demo of the profile."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from stack_backends import eventually
from stack_native import Stack

from claudescope import semconv

pytestmark = [pytest.mark.stack]
CLAUDESCOPE = (sys.executable, "-m", "claudescope")
SERVICE = "claudescope-demo"


@pytest.fixture(scope="module")
def demo(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, and the demo running with nothing but the two lines that ``stack init`` prints."""
    folder = tmp_path_factory.mktemp("init")
    (folder / ".env").write_text(f"CS_OTLP_TOKEN={stack.token}\nCS_OTLP_HTTP_PORT={stack.ports['http']}\n")
    done = subprocess.run(
        [*CLAUDESCOPE, "stack", "init", str(folder)], capture_output=True, text=True, check=True, timeout=60
    )
    script = f"{done.stdout}exec {sys.executable} -m claudescope demo --no-server"
    bash = shutil.which("bash")
    assert bash is not None
    running = subprocess.Popen([bash, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)
    yield stack
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=30)
    assert (running.returncode, errors) == (0, b"")


def test_its_steps_are_in_jaeger(demo: Stack) -> None:
    def kinds() -> Counter[str]:
        found = demo.jaeger.spans(SERVICE)
        return Counter(str(span["attributes"].get(semconv.STEP_KIND, "")) for span in found)

    wanted = {"text", "thinking", "tool_use", "tool_run", "manual"}
    eventually(lambda: wanted <= set(kinds()), 60, 1)
    assert wanted <= set(kinds())


def test_its_steps_are_in_prometheus(demo: Stack) -> None:
    invalid = f'sum(claudescope_steps_total{{job="{SERVICE}", claudescope_step_valid="false"}})'
    assert eventually(lambda: demo.prometheus.value(invalid), 60, 1)
    steps = demo.prometheus.value(f'sum(claudescope_steps_total{{job="{SERVICE}"}})')
    assert steps is not None
    assert steps > (demo.prometheus.value(invalid) or 0) > 0


def test_its_series_are_few(demo: Stack) -> None:
    """With those of its spans, which the collector makes; ``test_cardinality`` counts the app's own."""
    assert eventually(
        lambda: demo.prometheus.value(f'count({{__name__=~"traces_.+", service_name="{SERVICE}"}})'), 60, 1
    )
    series = demo.prometheus.value(f'count({{service_name="{SERVICE}"}})')
    print(f"{series} series")
    assert series is not None
    assert series < 2000
