"""A stand-in of Anthropic's Messages API on the loopback interface, over real HTTP/1.1 and server-sent events.

    with StandIn(say("Hello!")) as standin:
        client = anthropic.Anthropic(base_url=standin.url, api_key="any")

As a process of its own: ``python -m claudescope.testing.standin --port 8123 --seed 7``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType

from .answers import answer
from .clock import Clock
from .connection import BadRequestError, Connection, Request
from .exchange import HangupError
from .routes import Routes
from .script import REALISTIC, Pace, Replies, Reply, Script

__all__ = ["Request", "StandIn", "main"]


class StandIn:
    """The server; a context manager that runs it in a thread of its own.

    ``script`` is what it answers (``script.Replies``), by default ``answers.answer``. The same ``seed`` gives the same
    bytes for the same requests. ``pace`` is for replies without one. ``clock`` gives nanoseconds for the dates in
    answers; the default stands still. ``batch_polls`` is how often a batch is seen in progress before it has ended.
    ``keep`` is how many of the latest requests stay in ``requests``. ``port`` 0 takes a free one.
    """

    def __init__(
        self,
        script: Replies | None = None,
        *,
        seed: int = 0,
        pace: Pace | None = None,
        clock: Callable[[], int] | None = None,
        batch_polls: int = 0,
        keep: int = 10_000,
        port: int = 0,
    ) -> None:
        self._routes = Routes(
            Script(answer if script is None else script),
            seed=seed,
            pace=pace or Pace(),
            clock=clock or Clock(),
            batch_polls=batch_polls,
        )
        self._port = port
        self._requests: deque[Request] = deque(maxlen=keep)
        self._noting = threading.Lock()
        self.errors: list[Exception] = []
        """What went wrong in the script; the request got a 400 with the same message."""
        self._connections: dict[asyncio.Task[None], socket.socket] = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def port(self) -> int:
        """The port that it listens on. Raises RuntimeError when it was never started."""
        if self._port == 0:
            raise RuntimeError("the stand-in was not started: use it in a with statement")
        return self._port

    @property
    def url(self) -> str:
        """The ``base_url`` for a client, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests received so far, in order, at most ``keep``; each was noted before it was answered."""
        with self._noting:
            return tuple(self._requests)

    def use(self, *script: Replies) -> None:
        """Answers by another script from the next request on; several replies are taken in order."""
        self._routes.script = Script(script[0] if len(script) == 1 else _in_order(script))

    def start(self) -> StandIn:
        """Starts the server; it accepts connections when this returns. Raises OSError when the port is taken."""
        if self._thread is not None:
            raise RuntimeError("the stand-in is running already")
        listener = _listen(self._port)
        self._port = listener.getsockname()[1]
        ready = threading.Event()

        def serve() -> None:
            try:
                with listener:
                    asyncio.run(self._serve(listener, ready.set))
            finally:
                ready.set()  # also when it could not start: start() must not wait for ever

        self._thread = threading.Thread(target=serve, name="claudescope-standin", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Stops the server and ends every connection. Nothing happens when it does not run."""
        if self._thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> StandIn:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def run(self, announce: Callable[[str], object] = lambda url: None) -> None:
        """Serves on the calling (main) thread until SIGINT or SIGTERM; ``announce`` gets the address first."""
        listener = _listen(self._port)
        self._port = listener.getsockname()[1]

        def ready() -> None:
            if self._loop is not None and self._stop is not None:
                for number in (signal.SIGINT, signal.SIGTERM):
                    with contextlib.suppress(NotImplementedError):
                        self._loop.add_signal_handler(number, self._stop.set)
            announce(self.url)

        with listener:
            asyncio.run(self._serve(listener, ready))

    async def _serve(self, listener: socket.socket, ready: Callable[[], object]) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        accepting = asyncio.create_task(self._accept(listener))
        ready()
        await self._stop.wait()
        with socket.socket() as waker:  # ends the wait for a connection; cancelling it could lose one just accepted
            waker.setblocking(False)
            await loop.sock_connect(waker, listener.getsockname())
            await accepting
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        loop, stop = self._loop, self._stop
        while loop is not None and stop is not None:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError:  # no file descriptor left, or the client is gone already
                await asyncio.sleep(0.05)
                continue
            if stop.is_set():
                sock.close()
                return
            task = asyncio.create_task(self._serve_connection(sock))
            self._connections[task] = sock
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.pop(task).close()  # open still when the task was cancelled before it began

    async def _serve_connection(self, sock: socket.socket) -> None:
        try:
            # asyncio sets it only where the listener names its protocol; without it an event may wait 40 ms for an ACK
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader, writer = await asyncio.open_connection(sock=sock)
        except OSError:
            return  # the client is gone already
        connection = Connection(reader, writer)
        try:
            await self._converse(connection)
        except HangupError as hangup:
            if hangup.reset:
                connection.reset()
        except asyncio.CancelledError:
            connection.abort()
        except (BadRequestError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            await connection.close()

    async def _converse(self, connection: Connection) -> None:
        while (request := await connection.read()) is not None:
            with self._noting:
                self._requests.append(request)
            await self._routes.answer(request, connection, self.errors.append)
            if "close" in ",".join(request.header("connection")).lower():
                return


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(512)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _in_order(replies: tuple[Replies, ...]) -> tuple[Reply, ...]:
    for reply in replies:
        if not isinstance(reply, Reply):
            raise TypeError(f"{type(reply).__name__} is not a Reply: only replies can be given one after the other")
    return tuple(reply for reply in replies if isinstance(reply, Reply))


def _load(name: str) -> Replies:
    module, _, attribute = name.partition(":")
    try:
        replies: Replies = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    return replies


def main(arguments: list[str] | None = None) -> int:
    """The command line; prints the address as its first line and serves until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m claudescope.testing.standin", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (default): any free one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", choices=("none", "realistic"), default="none")
    parser.add_argument("--batch-polls", type=int, default=0, help="looks at a batch before it has ended")
    parser.add_argument("--script", metavar="MODULE:NAME", type=_load, help="a reply, replies or function to answer by")
    options = parser.parse_args(arguments)
    standin = StandIn(
        options.script,
        seed=options.seed,
        pace=REALISTIC if options.pace == "realistic" else None,
        batch_polls=options.batch_polls,
        port=options.port,
    )

    def announce(url: str) -> None:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()

    standin.run(announce)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
