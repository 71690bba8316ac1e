"""Where alerts go: a web server, a command, or the log."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
import shlex
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import orjson

__all__ = ["Channel", "Command", "DeliveryError", "Log", "Webhook"]

logger = logging.getLogger("claudescope.slo")
T = TypeVar("T")

_WEBHOOK_S: Final = 10.0
_COMMAND_S: Final = 30.0
_LAST_WORDS_S: Final = 0.5
_MAX_SAID: Final = 500
"""Characters of what a command or a server said that the log repeats."""
_REPEAT_MS: Final = 4 * 3_600_000
"""What still fires is told again after this time, as Alertmanager does."""


class DeliveryError(Exception):
    """The notice was not taken. ``again``: it may be later."""

    def __init__(self, message: str, again: bool = True) -> None:
        super().__init__(message)
        self.again = again


class Channel(Protocol):
    """One way out."""

    name: str
    repeat_ms: int | None
    """After how long what still fires is told again; None: never."""

    async def send(self, notice: dict[str, Any]) -> None:
        """Delivers one notice. Raises DeliveryError."""


class Log:
    """A line on standard error for each alert."""

    name = "log"
    repeat_ms: int | None = None

    async def send(self, notice: dict[str, Any]) -> None:
        """Says what fires and what is over."""
        for alert in notice["alerts"]:
            labels = alert["labels"]
            word = "fires" if alert["status"] == "firing" else "is over"
            logger.warning(
                "claudescope: SLO %s: %s %s: %s. %s",
                labels["claudescope_slo"],
                labels["burnrate_tier"],
                word,
                alert["annotations"]["summary"],
                alert["annotations"]["description"],
            )


class Webhook:
    """A POST of the notice as JSON. Any 2xx is a delivery; 429 and 5xx are tried again, other answers are not."""

    name = "webhook"
    repeat_ms: int | None = _REPEAT_MS

    def __init__(self, url: str, token: str = "", timeout: float = _WEBHOOK_S) -> None:
        self._url = url
        self._token = token
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    async def send(self, notice: dict[str, Any]) -> None:
        """Delivers one notice. Raises DeliveryError."""
        try:
            await asyncio.wait_for(_apart(lambda: self._post(orjson.dumps(notice))), 2 * self._timeout)
        except (asyncio.TimeoutError, TimeoutError):  # a byte now and then: each is an answer for the socket
            raise DeliveryError(f"the webhook did not answer within {2 * self._timeout:g} s") from None

    def _post(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "claudescope"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            self._opener.open(request, timeout=self._timeout).close()  # 2xx: it is taken, whatever else is said
        except urllib.error.HTTPError as error:
            with error:
                again = error.code == 429 or error.code >= 500
                raise DeliveryError(f"the webhook answered {error.code}", again) from None
        except (OSError, ValueError) as error:
            raise DeliveryError(f"the webhook cannot be reached: {getattr(error, 'reason', error)}") from None
        except http.client.HTTPException as error:
            raise DeliveryError(f"the webhook answered something that is not HTTP: {error!r}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A notice goes where it is told, and its token nowhere else."""

    def redirect_request(self, *arguments: Any) -> None:
        """No request: the answer is an error."""


async def _apart(work: Callable[[], T]) -> T:
    """The result of work on a thread that the end of the server does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as caught:  # noqa: BLE001 - it is raised where it is waited for
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="claudescope-webhook", daemon=True).start()
    return await done


class Command:
    """A program that gets the notice as JSON on its standard input; no shell reads the line. Exit code 0 is a delivery.

    It and what it started are ended when it takes too long.
    """

    name = "command"
    repeat_ms: int | None = _REPEAT_MS

    def __init__(self, line: str, timeout: float = _COMMAND_S) -> None:
        """Raises ValueError for a line that is empty or has a quote without an end."""
        self._words = shlex.split(line)
        if not self._words:
            raise ValueError("a command")
        self._timeout = timeout

    async def send(self, notice: dict[str, Any]) -> None:
        """Delivers one notice. Raises DeliveryError."""
        body = orjson.dumps(notice)
        try:  # not by asyncio: there a process has not ended while something that it left behind holds its pipe
            process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise DeliveryError(f"the command {self._words[0]} cannot be started: {error.strerror}") from None
        try:
            code, said = await _apart(lambda: _talk(process, body, self._timeout))
        except subprocess.TimeoutExpired:
            raise DeliveryError(f"the command {self._words[0]} took over {self._timeout:g} s") from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(_LAST_WORDS_S)  # it is gone at once, and no zombie
        if code:
            text = " ".join(said.decode("utf-8", "replace").split())[-_MAX_SAID:].strip()
            raise DeliveryError(f"the command {self._words[0]} ended with {code}: {text}")


def _talk(process: subprocess.Popen[bytes], body: bytes, timeout: float) -> tuple[int, bytearray]:
    """Gives a program what it is told; its exit code, and the end of what it said, which may be without end itself."""
    assert process.stdin is not None
    assert process.stderr is not None
    stdin, stderr, said = process.stdin, process.stderr, bytearray()

    def feed() -> None:
        with contextlib.suppress(OSError), stdin:  # it need not read it
            stdin.write(body)

    def hear() -> None:
        with contextlib.suppress(OSError), stderr:
            while part := os.read(stderr.fileno(), 1 << 16):
                said.extend(part)
                del said[: -4 * _MAX_SAID]

    hearing = threading.Thread(target=hear, name="claudescope-command", daemon=True)
    hearing.start()
    threading.Thread(target=feed, name="claudescope-command", daemon=True).start()
    code = process.wait(timeout)
    hearing.join(_LAST_WORDS_S)  # what it left behind may keep its standard error open
    return code, said
