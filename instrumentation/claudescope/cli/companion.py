"""A process beside a command that ends with it, however the command ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

__all__ = ["Companion"]

# As ``python -m`` does, but without the working directory: it is the app's, and a ``queue.py`` there is not for us.
_START: Final = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; import runpy;"
    " runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


class Companion:
    """A Python module as a process in a session of its own, so that Ctrl-C in the terminal does not reach it.

    ``output`` is where what it says goes, standard error too if it is a file; else that is ours. We hold its standard
    input, and it ends when that closes: when ``stop`` is called, and also when we die.
    """

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: int | IO[Any]
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, module, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=None if isinstance(output, int) else output,
            env=dict(environment),
            text=True,
            start_new_session=True,
        )

    def let_go(self) -> None:
        """Lets it end when it likes to; it is not waited for."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self, timeout: float = 10.0) -> int:
        """Lets it end, kills it after ``timeout`` seconds, and gives its exit code. May be called again."""
        self.let_go()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
