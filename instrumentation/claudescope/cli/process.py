"""One command as a child process that behaves as if it had been started without us: signals, terminal, exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["NOT_EXECUTABLE", "NOT_FOUND", "Ended", "locate", "run_process", "wait_for_interrupt"]

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_FROM_KERNEL: Final = 0x80
"""``si_code`` of a signal that the terminal made; it has gone to the child too, which is in our process group."""
_TERMINAL: Final = ("SIGINT", "SIGQUIT", "SIGHUP", "SIGWINCH", "SIGTTIN", "SIGTTOU")
_PASSED: Final = frozenset(
    getattr(signal, name) for name in (*_TERMINAL, "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM") if hasattr(signal, name)
)


class Ended(NamedTuple):
    """How a command ended: its exit code as a shell gives it, and whether somebody asked us to end it."""

    code: int
    told_to_end: bool = False


def locate(command: str, environment: Mapping[str, str]) -> tuple[str | None, int]:
    """The file that a command's name stands for, or None with the exit code that says why: 127 or 126."""
    path = environment.get("PATH", os.defpath)
    if found := shutil.which(command, path=path):
        return found, 0
    places = [command] if os.path.dirname(command) else [os.path.join(folder, command) for folder in path.split(":")]
    return None, NOT_EXECUTABLE if any(os.path.exists(place) for place in places) else NOT_FOUND


def run_process(file: str, argv: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Runs ``file`` to its end, with every signal that we get passed on once. Raises OSError when it cannot start."""
    if not hasattr(os, "posix_spawn"):
        return Ended(subprocess.call(argv, executable=file, env=environment))
    # Signals are held back from before the child exists until we wait for them, so none is lost and none kills us. A
    # child's end must wake us also where an unhandled SIGCHLD is thrown away.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    awaited = _PASSED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        child = _spawn(file, list(argv), environment, before)
        return _attend(child, awaited)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _spawn(file: str, argv: list[str], environment: Mapping[str, str], mask: Iterable[int]) -> int:
    restored = {signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores these two; the child must not
    try:
        return os.posix_spawn(file, argv, environment, setsigmask=mask, setsigdef=restored)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without a first line that names its interpreter: a shell runs it itself.
    return os.posix_spawn("/bin/sh", ["sh", file, *argv[1:]], environment, setsigmask=mask, setsigdef=restored)


def _attend(child: int, awaited: Iterable[int]) -> Ended:
    told_to_end = False
    while True:
        number, is_ours = _next_signal(child, awaited)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return Ended(128 - code if code < 0 else code, told_to_end)
            continue
        told_to_end |= number in (signal.SIGTERM, signal.SIGHUP)
        if is_ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)


def _next_signal(child: int, awaited: Iterable[int]) -> tuple[int, bool]:
    """The next signal, and whether we alone got it and have to pass it on."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(awaited)
        # A child that signals its whole group (`kill 0`) has had that signal; passing it on could go round for ever.
        return info.si_signo, info.si_code != _FROM_KERNEL and info.si_pid != child
    number = signal.sigwait(awaited)
    return number, not (signal.Signals(number).name in _TERMINAL and _in_foreground())


def _in_foreground() -> bool:
    """Whether a terminal's own signals reach our group: then they reach the child without us."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def wait_for_interrupt(ready: Callable[[], object]) -> None:
    """Calls ``ready``, and returns at Ctrl-C or when we are told to end: also when that comes right after ``ready``."""
    ends = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    if not hasattr(signal, "pthread_sigmask"):
        with contextlib.suppress(KeyboardInterrupt):
            ready()
            threading.Event().wait()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        ready()
        signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
