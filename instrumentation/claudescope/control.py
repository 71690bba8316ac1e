"""On and off: one seam and one worker a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .settings import Settings

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from .capture.seam import Seam
    from .pipeline import Subscriber
    from .worker import Worker

__all__ = ["flush", "instrument", "on_error", "on_validated", "uninstrument", "worker"]

_lock = threading.RLock()
_worker: Worker | None = None
_seam: Seam | None = None
_waiting: list[tuple[str, Subscriber]] = []


def worker() -> Worker | None:
    """The worker of this process, while it is instrumented."""
    return _worker


def _disabled(settings: Settings) -> bool:
    # OpenTelemetry: only "true", in any case, means true
    return settings.disabled or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    **settings: Any,
) -> None:
    """Makes the reasoning steps of this process's Claude calls visible. Does nothing when it already has.

    Without providers, the app's global ones are used as soon as it has real ones, and private ones until then; a given
    provider is used always. ``settings`` are those of ``docs/settings.md``, such as ``content="hash"``. Nothing
    happens where ``CLAUDESCOPE_DISABLED`` or ``OTEL_SDK_DISABLED`` is true. Raises UsageError for a bad setting.
    """
    global _worker, _seam
    with _lock:
        loaded = Settings.load(settings)
        if _disabled(loaded) or _worker is not None:
            return
        from .capture.manual import use_recorder
        from .capture.seam import Seam
        from .emit.otel_env import brisk, under_run
        from .worker import Worker

        server = os.environ.get("CLAUDESCOPE_RUN", "")
        has_page = "://" in server  # else ``run`` started none, and the endpoint may be the app's own already
        env: Mapping[str, str] = os.environ
        if has_page:
            env = under_run(os.environ, server, loaded.token)
        elif server:
            env = brisk(os.environ)
        export = loaded.export or ("both" if has_page and tracer_provider is None else "app")
        made = Worker(loaded.replace(export=export), env, tracer_provider, meter_provider, logger_provider)
        for kind, subscriber in _waiting:
            _subscribers(made, kind).append(subscriber)
        seam = Seam(made)
        seam.install()
        use_recorder(made)
        _worker, _seam = made, seam


def uninstrument() -> None:
    """Gives the SDK its original functions back, and delivers what is left (at most ``CLAUDESCOPE_EXIT_WAIT``)."""
    global _worker, _seam
    with _lock:
        if _worker is None or _seam is None:
            return
        from .capture.manual import use_recorder

        _seam.remove()
        use_recorder(None)
        ending, _worker, _seam = _worker, None, None
        ending.shutdown()


def flush(timeout: float = 30.0) -> bool:
    """Delivers everything noted so far. True when not instrumented.

    False if that took over ``timeout`` seconds or anything was lost since the last call.
    """
    made = _worker
    return made is None or made.flush(timeout)


def on_validated(callback: Subscriber) -> Subscriber:
    """Calls ``callback(record)`` on the worker's thread for each step once it is assessed; usable as a decorator.

    A record is the dict of ``docs/api.md``. An error in the callback is logged once and goes no further.
    """
    return _subscribe("validated", callback)


def on_error(callback: Subscriber) -> Subscriber:
    """Like ``on_validated``, for invalid steps only."""
    return _subscribe("error", callback)


def _subscribe(kind: str, callback: Subscriber) -> Subscriber:
    with _lock:
        _waiting.append((kind, callback))
        if _worker is not None:
            _subscribers(_worker, kind).append(callback)
    return callback


def _subscribers(made: Worker, kind: str) -> list[Subscriber]:
    return made.pipeline.error_subscribers if kind == "error" else made.pipeline.subscribers
