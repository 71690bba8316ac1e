"""The worker: one bounded queue and one daemon thread a process, between the app's threads and the pipeline.

The app's threads only put; everything that costs is done here. When the queue is over half full, steps are emitted
without assessment; when it is full, steps are dropped; the end of a call always goes through. Every drop is counted.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, Tracer, TracerProvider

from . import semconv
from .assess.panel import Panel
from .capture.spotter import Spotter, spotted
from .emit.metrics import Meters
from .emit.otel_env import unsupported
from .emit.providers import Providers
from .emit.spans import SpanWriter
from .guard import guard
from .pipeline import Pipeline
from .settings import Settings
from .steps.chains import ChainBook
from .steps.items import Barrier, CallEnded, Item, ManualEnded
from .steps.model import Call
from .version import __version__

__all__ = ["Worker"]

logger = logging.getLogger("claudescope")

_WATCH: Final = 0.1
"""Seconds between looks for a provider of the app's, while it has none and its spans are wanted too."""
_WATCH_CLOSELY: Final = 30.0
"""Seconds after which it is looked for ten times more rarely."""
_SETTLE: Final = 0.05
"""Seconds in which new metric series are gathered before the app's own meter provider is asked to export them."""
_COLLECTIONS: Final = 200
"""How many new label sets are collected at once, on the worker; later ones wait for the next interval."""


class Worker:
    """The recorder of one process (``capture.recorder.Recorder``): everything behind the seam."""

    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        self.settings = settings
        self.book = ChainBook()
        self.panel = Panel.from_entry_points(settings, on_drop=self._on_drop)
        self.providers = Providers(
            settings,
            env,
            Spotter(),
            self._on_drop,
            self._exit_first,
            tracer_provider,
            meter_provider,
            logger_provider,
        )
        service = str(self.providers.resource.attributes.get(semconv.SERVICE_NAME, ""))
        self.pipeline = Pipeline(settings, self.book, self.panel, SpanWriter(settings, self.providers), service)
        self._meters: Meters | None = None
        self._meters_of: MeterProvider | None = None
        self._open: set[Any] = set()
        self._in_flight: set[Call] = set()  # one addition or removal of a set is safe from any thread
        self._start()
        atexit.register(self._exit)
        if hasattr(os, "register_at_fork"):
            me = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _after_fork(me))
        ignored = unsupported(env)
        if ignored:
            logger.warning("claudescope does not honour %s.", ", ".join(ignored))

    # ------------------------------------------------------------------------------ Recorder, on the app's threads

    def put(self, item: Item) -> None:
        """Hands one item to the worker; drops it, counted, when the queue is full."""
        if not self._ended:
            full = self._queue.qsize() >= self.settings.queue
            if not full or isinstance(item, (CallEnded, ManualEnded, Barrier)):
                if full and isinstance(item, CallEnded) and item.body is not None:
                    item.body = None  # the call goes through, its steps do not
                    self._drop()
                self._queue.put(item)
                if self._thread is None:
                    self._launch()
                return
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            self._dropped += 1
            self._lost += 1

    def real_provider(self, own: TracerProvider | None) -> TracerProvider | None:
        """The provider whose spans the app's telemetry sees, or None."""
        return self.providers.real(own)

    def tracer(self, own: TracerProvider | None) -> Tracer:
        """Tracer for a span of ours."""
        return self.providers.tracer_provider(own).get_tracer(semconv.SCOPE, __version__)

    def adopt(self, span: Span) -> None:
        """``span``, made by somebody else, is a call whose end waits for its assessment."""
        context = span.get_span_context()
        if context.is_valid and context.trace_flags.sampled:
            self.providers.expect(context)

    def spotted(self) -> Span | None:
        """The innermost open call span of an instrumentation in this context."""
        return spotted()

    def opened(self, reading: Any) -> None:
        """Remembers what the app is reading, to finish it at exit."""
        self._open.add(reading)

    def closed(self, reading: Any) -> None:
        """Forgets what ``opened`` remembered."""
        self._open.discard(reading)

    def began(self, call: Call) -> None:
        """One more call is in flight."""
        self._in_flight.add(call)

    def over(self, call: Call) -> None:
        """One less."""
        self._in_flight.discard(call)

    # ------------------------------------------------------------------------------ the thread

    def _start(self) -> None:
        self._ended = False
        self._dropped = 0
        """Items that found no room and are not yet counted in a metric."""
        self._lost = 0
        """Items lost since ``flush`` was last asked."""
        self._collections = 0
        # Reentrant: a garbage collection inside it may drop a stream, which puts its end.
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._new_series = threading.Event()
        self._metrics_thread: threading.Thread | None = None
        # Started by the first item: a process that makes no call, such as a fork for something else, gets no thread.
        self._thread: threading.Thread | None = None
        if self.providers.both and self.providers.real(None) is None:
            self._launch()  # looks for the provider that the app may set

    def _launch(self) -> None:
        with self._lock:
            if self._thread is not None or self._ended:
                return
            thread = threading.Thread(target=self._run, name="claudescope-worker", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return  # the interpreter is ending: ``drain`` works on what was put
            self._thread = thread

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended:
            watch = None
            if self._watching():
                watch = _WATCH if time.monotonic() - began < _WATCH_CLOSELY else 10 * _WATCH
            try:
                item = self._queue.get(timeout=watch)
            except queue.Empty:
                continue
            self._work_guarded(item)

    def _watching(self) -> bool:
        """Whether the app may yet set a provider whose spans are wanted."""
        try:
            return self.providers.both and self.providers.real(None) is None
        except Exception as error:  # noqa: BLE001 - somebody else's provider
            guard.note("look for the app's provider", error)
            return False

    def _work_guarded(self, item: Item) -> None:
        try:
            self._work(item)
        except BaseException as error:  # noqa: BLE001 - the guard; a SystemExit of a subscriber ends no thread of ours
            guard.note("work on what a call did", error)
            self._failed(error)

    def _work(self, item: Item) -> None:
        if isinstance(item, Barrier):
            item.passed.set()
            return
        meters = self._meters_now()
        if self._dropped:
            with self._lock:
                dropped, self._dropped = self._dropped, 0
            meters.dropped("queue_full", "step", dropped)
        self.pipeline.work(item, meters, assess=self._queue.qsize() <= self.settings.queue // 2)

    def _failed(self, error: BaseException) -> None:
        self._lost += 1
        if guard.reraise:
            self.fault = error
        try:
            self._meters_now().dropped("internal_error", "step", 1)
        except Exception as second:  # noqa: BLE001 - the guard; the thread must live on
            guard.note("count what could not be worked on", second)

    fault: BaseException | None = None
    """In tests, the last fault of the worker's own thread."""

    def _meters_now(self) -> Meters:
        provider = self.providers.meter_provider()
        if self._meters is None or provider is not self._meters_of:
            self._retire_meters()
            meter = provider.get_meter(semconv.SCOPE, __version__)
            self._meters = Meters(
                meter,
                self.settings.metric_labels,
                self._born,
                step_bounds=self.settings.step_bounds,
                confidence_bounds=self.settings.confidence_bounds,
                in_flight=lambda: len(self._in_flight),
            )
            self._meters_of = provider
        return self._meters

    def _retire_meters(self) -> None:
        meters, self._meters = self._meters, None
        if meters is not None:
            meters.retire()

    def _born(self) -> None:
        """A series that is born at 1 loses its first event, so its zero is collected before the 1 is added.

        Our own reader only encodes and buffers. The app's may wait for a network, so it is asked on another thread.
        """
        if self._collections < _COLLECTIONS and self.providers.collect():
            self._collections += 1
        else:
            self._new_series.set()
            if self._metrics_thread is None:
                target = self._export_new_series
                self._metrics_thread = threading.Thread(target=target, name="claudescope-metrics", daemon=True)
                self._metrics_thread.start()

    def _export_new_series(self) -> None:
        wake = self._new_series
        while not self._ended and wake is self._new_series:
            wake.wait()
            time.sleep(_SETTLE)
            wake.clear()
            if self._ended:
                return
            try:
                self.providers.flush_metrics(10.0)
            except Exception as error:  # noqa: BLE001 - the guard
                guard.note("export the metrics", error)

    def _on_drop(self, reason: Any, kind: Any, count: int) -> None:
        meters = self._meters
        if meters is not None and kind != "metric":
            meters.dropped(reason, kind, count)

    # ------------------------------------------------------------------------------ flush, exit, fork

    def drain(self, timeout: float) -> bool:
        """Waits until everything put so far has been worked on."""
        if threading.current_thread() is self._thread:
            return True
        if self._thread is None:
            while True:
                try:
                    self._work_guarded(self._queue.get_nowait())
                except queue.Empty:
                    return True
        passed = threading.Event()
        self._queue.put(Barrier(passed))
        return passed.wait(max(0.0, timeout))

    def flush(self, timeout: float) -> bool:
        """Works on what was put and delivers it; False if not in time or if something was lost since the last call."""
        deadline = time.monotonic() + timeout
        drained = self.drain(timeout)
        delivered = self.providers.flush(max(0.1, deadline - time.monotonic()))
        with self._lock:
            lost, self._lost = self._lost, 0
        return drained and delivered and not lost

    def shutdown(self) -> None:
        """Finishes open streams, works on what is left, delivers it, and says what was lost. Idempotent."""
        if self._ended:
            return
        deadline = time.monotonic() + self.settings.exit_wait
        for reading in tuple(self._open):
            reading.finish("dropped")
        if not self.drain(self.settings.exit_wait):
            left = max(0, self._queue.qsize() - 1)  # one is the barrier of ``drain``
            sys.stderr.write(f"claudescope: the process ended before {left:,} blocks and calls were worked on\n")
        self._ended = True
        self._new_series.set()
        if self._thread is not None:
            self.drain(0)  # wakes the thread
        self.providers.shutdown(max(0.0, deadline - time.monotonic()))
        if self._meters is not None:
            self._meters.retire()  # the app's own meter provider goes on
        atexit.unregister(self._exit)

    def _exit(self) -> None:
        try:
            self.shutdown()
        except Exception as error:  # noqa: BLE001 - the guard
            guard.note("deliver the last spans", error)

    def _exit_first(self) -> None:
        """The app's providers shut themselves down at exit; handlers run newest first, and ours must be before."""
        atexit.unregister(self._exit)
        atexit.register(self._exit)

    def _after_fork(self) -> None:
        """A forked child gets its own queue and thread; what the parent had in its queue is the parent's to emit."""
        if self._ended:
            return
        self.book.reset_lock()
        self._open = set()
        self._in_flight = set()
        self._retire_meters()
        self.providers.after_fork()
        self._start()
        # Children of multiprocessing and billiard (celery) end by os._exit, which runs no atexit handlers, but their
        # own finalizers. They forget those of the parent after the fork, so ours are registered when they have.
        for name in ("multiprocessing.util", "billiard.util"):
            util = sys.modules.get(name)
            if util is not None:
                finalize = util.Finalize
                util.register_after_fork(self, lambda worker, finalize=finalize: worker._exit_with(finalize))

    def _exit_with(self, finalize: Callable[..., object]) -> None:
        finalize(None, self._exit, exitpriority=100)


def _after_fork(reference: weakref.ReferenceType[Worker]) -> None:
    worker = reference()
    if worker is not None:
        worker._after_fork()
