"""A real server in a process of its own, and the environment of scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from free_ports import free_port

__all__ = ["Server", "environment", "free_port"]


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without settings of a user, and with ``extra``."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "CLAUDESCOPE_", "ANTHROPIC_", "PYTHONPATH"))
    }
    return {**kept, **extra}


class Server:
    """``claudescope up`` in a process of its own."""

    def __init__(self, data: Path, port: int, *flags: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = ["up", "--port", str(port), "--grpc-port", "0", "--data", str(data), "--no-open", *flags]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "claudescope", *command],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while "http://" not in (line := self.process.stdout.readline()):
            assert line, "the server ended before it said its address"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def every(self, path: str) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        items, cursor = [], ""
        while cursor is not None:
            page = self.get(f"{path}{'&' if '?' in path else '?'}limit=1000{cursor and f'&cursor={cursor}'}")
            items += page["items"]
            cursor = page["next"]
        return items

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()
