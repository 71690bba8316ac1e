"""The explainer as a whole: settings, objectives, queue, places, port, and its life from start to signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import time
from typing import Final

import uvicorn

from ..errors import UsageError
from ..slo.explain.prometheus import Prometheus
from ..slo.objective import Objective
from ..slo.spec.load import load
from .analyst import Analyst
from .jaeger import Jaeger
from .options import Options
from .outbound import HttpCaller
from .queue import Queue
from .sinks.folder import FolderSink
from .sinks.github import GitHubSink
from .sinks.grafana import GrafanaSink
from .sinks.jira import JiraSink
from .sinks.protocol import Sink
from .sinks.webhook import WebhookSink
from .ticket import Links
from .web import Site, make_app
from .worker import Workers

__all__ = ["Explainer", "objectives", "sinks"]

logger = logging.getLogger(__name__)

_GRACE: Final = 5
"""Seconds that requests may take after a signal."""
_CONNECTIONS: Final = 200
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def sinks(options: Options) -> list[Sink]:
    """The places that are configured. Raises UsageError for a folder that cannot be written, and for Grafana without
    its package.
    """
    call = HttpCaller(options.timeout)
    found: list[Sink] = []
    if options.grafana:
        found.append(GrafanaSink(options.grafana, options.grafana_token, options.timeout))
    if options.tickets is not None:
        found.append(FolderSink(options.tickets))
    if options.webhook:
        found.append(WebhookSink(options.webhook, options.webhook_token, call))
    if options.jira:
        login = (options.jira_user, options.jira_token)
        found.append(JiraSink(options.jira, options.jira_project, options.jira_type, login, options.jira_done, call))
    if options.github_repo:
        found.append(GitHubSink(options.github, options.github_repo, options.github_token, call))
    return found


def objectives(paths: Sequence[Path]) -> dict[str, Objective]:
    """The objectives of files and folders, by id. Raises UsageError where one is wrong."""
    return {objective.id: objective for objective in load(paths)}


def _folder(options: Options) -> Path:
    if options.data is not None:
        return options.data
    base = os.environ.get("XDG_DATA_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "claudescope-explainer"
    except RuntimeError:  # a user without an entry and without HOME, as in some containers
        raise UsageError("There is no home folder for the queue.", "Name a folder with --data, or set HOME.") from None


class Explainer:
    """One service. ``__init__`` takes folder and port (UsageError); ``run`` serves; ``stop`` ends it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._objectives = objectives(options.slo)
        self._sinks = sinks(options)
        with contextlib.ExitStack() as undo:
            self._queue = Queue(_folder(options), options.queue)
            undo.callback(self._queue.close)
            self._listener = _listen(options.host, options.port)
            undo.pop_all()
        host, port = self._listener.getsockname()[:2]
        host = _ANY.get(host, host)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        """Where it is reached from this machine."""
        self._links = Links.of(options, self.url)
        jaeger = Jaeger(options.jaeger, HttpCaller(options.timeout)) if options.jaeger else None
        prometheus = Prometheus(options.prometheus, options.prometheus_token, options.timeout)
        analyst = Analyst(self._objectives, prometheus, jaeger, self._links, options.windows)
        self._workers = Workers(self._queue, analyst, self._sinks, self._links, options)
        self._site = Site(self._queue, self._links, options.token)
        self._site.workers = self._workers
        self._server: uvicorn.Server | None = None
        self._stopping = threading.Event()

    @property
    def places(self) -> list[str]:
        """Where tickets go."""
        return [sink.name for sink in self._sinks]

    @property
    def known(self) -> int:
        """How many objectives there are."""
        return len(self._objectives)

    def run(self, on_ready: Callable[[], None] | None = None, *, revive: bool = False) -> None:
        """Serves until a signal (on the main thread) or ``stop``. ``revive``: dead letters are tried again."""
        dropped = self._queue.drop_places(self.places)
        if dropped:
            logger.warning("%d deliveries are given up, since their place is not configured any more", dropped)
        if revive:
            logger.info("%d dead letters are tried again", self._queue.revive(int(time() * 1000)))
        self._workers.start()
        try:
            asyncio.run(self._serve(on_ready))
        finally:
            if not self._workers.stop(self._options.timeout + _GRACE):
                logger.warning("a delivery was under way; it is asked for and finished at the next start")
            self._queue.close()
            self._listener.close()

    def stop(self) -> None:
        """Ends ``run``, from any thread."""
        self._stopping.set()
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self, on_ready: Callable[[], None] | None) -> None:
        self._server = _Server(
            uvicorn.Config(
                make_app(self._site),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=120,
                timeout_graceful_shutdown=_GRACE,
                limit_concurrency=_CONNECTIONS,
            ),
            on_ready,
        )
        if not self._stopping.is_set():
            await self._server.serve(sockets=[self._listener])


class _Server(uvicorn.Server):
    """Says when it is ready, and does not raise the signal again that it has obeyed."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise UsageError(
            f"The host {host!r} is not known here.", "Give an address of this machine to --host."
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"The address {host}:{port} cannot be listened on: {error.strerror}.", "Choose another port with --port."
        ) from None
    listener.setblocking(False)
    return listener
