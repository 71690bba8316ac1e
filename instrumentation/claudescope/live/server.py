"""The embedded server as a whole: folder, store, ports, and its life from start to signal."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sqlite3
import threading
import uuid
import webbrowser
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final, NamedTuple
from urllib.parse import quote

import uvicorn

from ..errors import UsageError
from ..prices import Prices
from ..settings import Settings
from .objectives.service import Service
from .receiver.counters import Counters
from .receiver.grpc import GrpcPort
from .receiver.ingest import Ingest
from .records import Dims
from .rollups.board import Rollups
from .rollups.pending import Flush
from .rollups.persist import State, load
from .store.folder import DataFolder, default_folder
from .store.jobs import Job
from .store.migration import upgrade
from .store.reader import Reader
from .store.retention import Retention
from .store.schema import connect
from .store.series import counted_series
from .store.writer import Writer
from .stream import Hub
from .ticker import Ticker
from .web.api import Api
from .web.app import make_app
from .web.connection import Connection
from .web.security import is_loopback
from .web.spanmetrics import StepTotals

__all__ = ["LiveServer", "bind", "serve"]

logger = logging.getLogger(__name__)

_GRACE: Final = 3
_CONNECTIONS: Final = 512


def serve(settings: Settings, *, open_browser: bool, on_ready: Callable[[str], None] | None = None) -> int:
    """Serves until SIGINT or SIGTERM (on the main thread); returns the exit code, 0.

    ``on_ready`` gets the page's address once it answers. Raises UsageError for a folder or port that is taken, and for
    a host beyond loopback without a token.
    """
    # Requests make and drop many small objects, none in a cycle: the usual threshold costs a tenth of the CPU time.
    gc.set_threshold(50_000, 20, 50)
    server = LiveServer(settings)

    def ready(url: str) -> None:
        if on_ready is not None:
            on_ready(url)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(server.page_url,), daemon=True).start()

    server.run(ready)
    return 0


def bind(host: str, port: int, flag: str) -> socket.socket:
    """A listening socket. Raises UsageError that names the flag."""
    if not 0 <= port <= 65_535:
        raise UsageError(f"The port {port} is over 65535.", f"Choose another with {flag}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(
            f"The host {host!r} is not known here.", "Give an address of this machine to --host."
        ) from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"The address {host}:{port} cannot be listened on: {error.strerror}.", f"Choose another port with {flag}."
        ) from None
    listener.setblocking(False)
    return listener


class LiveServer:
    """One server. ``__init__`` takes the folder and the ports (UsageError); ``run`` serves; ``stop`` ends it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        if not is_loopback(settings.host) and not settings.token:
            raise UsageError(
                f"The host {settings.host} is reachable from other machines, and there is no token.",
                "Set CLAUDESCOPE_TOKEN, or listen on 127.0.0.1.",
            )
        with contextlib.ExitStack() as undo:
            self._folder = DataFolder(settings.data or default_folder())
            undo.callback(self._folder.close)
            self._listener = bind(settings.host, settings.port, "--port")
            undo.callback(self._listener.close)
            self._grpc_listener = bind(settings.host, settings.grpc_port, "--grpc-port") if settings.grpc_port else None
            if self._grpc_listener is not None:
                undo.callback(self._grpc_listener.close)
            host, port = self._listener.getsockname()[:2]
            shown = settings.host if is_loopback(settings.host) else host
            self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
            """Where OTLP, API and page are."""
            self._folder.sign(self.url)
            self._prices = Prices.load(settings.prices)
            upgrade(self._folder.path, self._prices)
            self._slos = Service(settings) if settings.slo else None
            self._db = connect(self._folder.path)
            undo.callback(self._db.close)
            if self._slos is not None:
                self._slos.load(self._db)
            self._found = _first_look(self._db, self._folder)
            undo.pop_all()
        self._uvicorn: _Uvicorn | None = None
        self._stopping = threading.Event()

    @property
    def page_url(self) -> str:
        """The address that opens the page, with the token where there is one."""
        token = self._settings.token
        return f"{self.url}/?token={quote(token, safe='')}" if token else f"{self.url}/"

    def run(self, on_ready: Callable[[str], None] | None = None) -> None:
        """Serves until a signal (on the main thread) or ``stop``. Everything acknowledged is in the store after it."""
        asyncio.run(self._main(on_ready))

    def stop(self) -> None:
        """Ends ``run``, from any thread."""
        self._stopping.set()
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    async def _main(self, on_ready: Callable[[str], None] | None) -> None:
        loop = asyncio.get_running_loop()
        settings = self._settings
        retention = Retention(self._db, int(settings.retain * 1000), settings.max_size)
        slos = self._slos
        ledger = slos.ledger if slos is not None else None
        writer = Writer(self._db, loop.call_soon_threadsafe, self._prices, retention, ledger)
        reader = Reader(self._folder.path)
        hub = Hub(uuid.uuid4().hex[:12])
        counters = Counters(self._found.counters)
        step_totals = StepTotals(settings.metric_labels)

        async def write(flush: Flush) -> None:
            await asyncio.wrap_future(writer.submit(Job(rollup=flush)))
            try:
                step_totals.add(flush, rollups.series)
            except Exception:  # it is written all the same, and must not be written again
                logger.exception("some steps are not in /metrics")

        async def work(what: Callable[[sqlite3.Connection], None]) -> None:
            await asyncio.wrap_future(writer.submit(Job(work=what)))

        if slos is not None:
            slos.connect(work, reader.ask, self.url, lambda: ingest.heard)
        rollups = Rollups(self._found.rollups, self._found.series, write, reader.ask, self._found.last_step)
        ingest = Ingest(writer, hub, rollups, counters)
        try:
            release = version("claudescope")
        except PackageNotFoundError:
            release = "0"
        api = Api(
            settings=settings,
            version=release,
            prices=self._prices,
            folder=self._folder.path,
            reader=reader,
            writer=writer,
            rollups=rollups,
            totals=step_totals,
            hub=hub,
            ingest=ingest,
            counters=counters,
            slos=slos,
        )
        app = make_app(ingest, api, settings.host, settings.token)
        logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)
        self._uvicorn = server = _Uvicorn(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=120,
                timeout_graceful_shutdown=_GRACE,
                limit_concurrency=_CONNECTIONS,
            ),
            hub,
            lambda: on_ready(self.url) if on_ready is not None else None,
        )
        grpc_port = GrpcPort(ingest, self._grpc_listener, settings.token) if self._grpc_listener is not None else None
        tasks = [
            asyncio.create_task(rollups.run()),
            asyncio.create_task(Ticker(hub, ingest, rollups, counters, reader, writer).run()),
        ]
        if slos is not None:
            tasks.append(asyncio.create_task(slos.run()))
            _on_hangup(loop, slos.specs.ask)
        try:
            if grpc_port is not None:
                await grpc_port.start()
            if self._stopping.is_set():
                return
            await server.serve(sockets=[self._listener])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if grpc_port is not None:
                await grpc_port.stop()
            await rollups.flush()
            if slos is not None:
                await slos.close()
            await asyncio.to_thread(reader.close)
            await asyncio.to_thread(writer.close)
            self._listener.close()
            self._folder.close()


class _Found(NamedTuple):
    """What is in the store before this start."""

    counters: list[tuple[str, float]]
    last_step: int
    series: list[tuple[int, Dims]]
    rollups: State


def _first_look(db: sqlite3.Connection, folder: DataFolder) -> _Found:
    """What there is. Raises UsageError for a store that is damaged."""
    try:
        db.execute("SELECT max(id) FROM runs").fetchone()
        counters = db.execute("SELECT series, value FROM counters").fetchall()
        (last_step,) = db.execute("SELECT coalesce(max(id), 0) FROM steps").fetchone()
        return _Found(counters, last_step, counted_series(db), load(db))
    except (sqlite3.Error, ValueError) as error:
        raise UsageError(
            f"The store in {folder.path} is damaged: {error}.", "Move its files away, or choose another with --data."
        ) from None


def _on_hangup(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Calls on SIGHUP, on the main thread of a system that has it."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, call)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    return record.msg != "Exceeded concurrency limit."  # a line for each; who is refused is told by the 503


class _Uvicorn(uvicorn.Server):
    """Ends the streams when it is told to end, and leaves the signals of other threads and of the caller alone."""

    def __init__(self, config: uvicorn.Config, hub: Hub, on_started: Callable[[], object]) -> None:
        super().__init__(config)
        self._hub = hub
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)

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
