"""What capture needs of the rest of claudescope: tracers to start spans with, and a queue that never blocks."""

from __future__ import annotations

from typing import Any, Protocol

from opentelemetry.trace import Span, Tracer, TracerProvider

from ..settings import Settings
from ..steps.chains import ChainBook
from ..steps.items import Item
from ..steps.model import Call

__all__ = ["Recorder"]


class Recorder(Protocol):
    """The worker, seen from the app's thread. Every method is quick and safe from any thread."""

    settings: Settings
    book: ChainBook

    def put(self, item: Item) -> None:
        """Hands one item to the worker; drops it, counted, when the queue is full."""

    def real_provider(self, own: TracerProvider | None) -> TracerProvider | None:
        """The provider whose spans the app's telemetry sees: the client's ``own``, else the global one, else None."""

    def tracer(self, own: TracerProvider | None) -> Tracer:
        """Tracer for a span of ours: of the client's ``own`` provider, the app's, or the private one."""

    def adopt(self, span: Span) -> None:
        """Tells that ``span``, made by somebody else, is a call whose end waits for its assessment."""

    def spotted(self) -> Span | None:
        """The innermost open call span that an instrumentation began in this context and no call has taken yet."""

    def opened(self, reading: Any) -> None:
        """Remembers what the app is reading, the ``Tape`` of a stream or a ``Capture``, to ``finish`` it at exit."""

    def closed(self, reading: Any) -> None:
        """Forgets what ``opened`` remembered."""

    def began(self, call: Call) -> None:
        """``call`` is in flight."""

    def over(self, call: Call) -> None:
        """It no longer is."""
