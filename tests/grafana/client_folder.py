"""The folder of grafana-client for the tests of ``push``.

It brings urllib3-future, which takes the place of urllib3: so it is in no environment, but in a folder of its own that
only the process under test sees. ``python tests/grafana/client_folder.py`` makes it and prints it.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WANTED = "grafana-client==5.1.4"


def make() -> Path:
    """Makes ``.cache/grafana-client`` unless it is there. Raises CalledProcessError when pip fails."""
    folder = ROOT / ".cache" / "grafana-client"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "made-of"
    made_of = f"{WANTED} {sys.version}"
    with (folder.parent / "grafana-client.lock").open("w") as lock:  # tests of two rooms may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != made_of:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
            subprocess.run([*pip, "--target", str(folder), WANTED], check=True, stdin=subprocess.DEVNULL)
            stamp.write_text(made_of)
    return folder


if __name__ == "__main__":
    print(make())
