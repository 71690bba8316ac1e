"""The stack by hand: ``make stack-native`` says what to export, and leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.stack


def test_it_starts_says_what_to_export_and_ends_everything(programs) -> None:
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("stack_native.py")), "--any-ports"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = []
        while not said or "Ctrl-C" not in said[-1]:
            line = process.stdout.readline()
            assert line, "".join(said)
            said.append(line)
        text = "".join(said)
        assert [name for name in ("alertmanager", "prometheus", "jaeger", "collector") if f"{name} " not in text] == []
        exported = dict(re.findall(r"export (\w+)=(\S+)", text))
        token = exported["OTEL_EXPORTER_OTLP_HEADERS"].removeprefix("authorization=").replace("%20", " ")
        url = exported["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
        headers = {"content-type": "application/x-protobuf", "authorization": token}
        with urllib.request.urlopen(urllib.request.Request(url, b"", headers), timeout=10) as answer:
            assert answer.status == 200
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert len(children) == 4
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    for child in children:
        assert not Path(f"/proc/{child}").exists()
    folder = re.search(r"its log: (\S+)/", text).group(1)
    assert not Path(folder).exists()


def test_a_killed_supervisor_leaves_nothing_running(programs, tmp_path) -> None:
    """Also when it is killed outright, as a test run may be."""
    source = (
        "import sys, time; from pathlib import Path; from stack_native import Stack;"
        f" stack = Stack(Path({str(tmp_path)!r}), names=('collector',)).start();"
        " print(stack['collector'].process.pid, flush=True); time.sleep(600)"
    )
    here = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": here}
    ) as process:
        child = int(process.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        process.kill()
    from stack_backends import eventually

    assert eventually(lambda: not Path(f"/proc/{child}").exists() or _zombie(child), 10)


def _zombie(pid: int) -> bool:
    """Whether it has ended and only waits to be collected by whoever is process 1 here."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
