"""One program of the stack as a process: started, waited for until it is healthy, killed, and always stopped."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """In the child: no program outlives the tests, even when they are killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A program that answers 200 at ``health`` once it is ready. Its output is appended to ``log``."""

    def __init__(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str], folder: Path, health: str
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.environment = dict(environment)
        self.folder = folder
        self.health = health
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.health, timeout=2) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    def start(self, seconds: float = 60.0) -> float:
        """Starts it and waits until it is healthy; gives the seconds that it took. Raises RuntimeError with its log."""
        began = time.monotonic()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                cwd=self.folder,
                preexec_fn=_die_with_parent,
            )
        while not self.healthy():
            if not self.running:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() - began > seconds:
                self.stop()
                raise RuntimeError(f"{self.name} was not healthy within {seconds:g} s:\n{self.tail()}")
            time.sleep(0.05)
        return time.monotonic() - began

    def kill(self) -> None:
        """As the kernel does it when memory is short: no chance to save anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self, seconds: float = 20.0) -> None:
        """Asks it to end and, after ``seconds``, kills it."""
        if self.process is None or not self.running:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def tail(self, characters: int = 3000) -> str:
        """The end of its log."""
        return self.log.read_text("utf-8", "replace")[-characters:] if self.log.exists() else ""

    def resident_kib(self) -> int:
        """Resident memory."""
        return next(int(line.split()[1]) for line in self._proc("status").splitlines() if line.startswith("VmRSS"))

    def cpu_seconds(self) -> float:
        """CPU time so far, user and system."""
        fields = self._proc("stat").rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def _proc(self, file: str) -> str:
        assert self.process is not None
        return Path(f"/proc/{self.process.pid}/{file}").read_text()
