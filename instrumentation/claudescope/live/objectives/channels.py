"""Where alerts go: a web server, a command, or the log."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
import shlex
import signal
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
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise DeliveryError(f"the command {self._words[0]} cannot be started: {error.strerror}") from None
        said = bytearray()
        talk = asyncio.gather(_feed(process, orjson.dumps(notice)), _hear(process, said))
        try:
            await asyncio.wait_for(process.wait(), self._timeout)
            await asyncio.wait({talk}, timeout=_LAST_WORDS_S)  # what it left behind may keep its standard error open
        except (asyncio.TimeoutError, TimeoutError):
            raise DeliveryError(f"the command {self._words[0]} took over {self._timeout:g} s") from None
        finally:
            talk.cancel()
            if process.returncode is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            text = " ".join(said.decode("utf-8", "replace").split())[-_MAX_SAID:]
            raise DeliveryError(f"the command {self._words[0]} ended with {process.returncode}: {text}")


async def _feed(process: asyncio.subprocess.Process, body: bytes) -> None:
    """Gives it the notice; it need not read it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(body)
        await process.stdin.drain()
    process.stdin.close()


async def _hear(process: asyncio.subprocess.Process, said: bytearray) -> None:
    """Keeps the end of what it says on standard error, which may be without end."""
    assert process.stderr is not None
    while part := await process.stderr.read(1 << 16):
        said += part
        del said[: -4 * _MAX_SAID]
