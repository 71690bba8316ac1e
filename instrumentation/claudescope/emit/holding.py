"""Holds a call's span, made by the SDK or another instrumentation, until its steps are assessed.

Only then is it known whether the run must be kept, and a span that has ended takes no more attributes. What is exported
is a copy with the late attributes; other processors of the app get the original at once. In export mode ``app`` nothing
of ours exports the app's spans, so there the mark cannot be added.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext
from opentelemetry.util.types import AttributeValue

__all__ = ["HoldingProcessor", "Late"]

_CAPACITY = 10_000
_RELEASED = 1_000
"""Spans that were released before they ended; they end within moments."""


class Late(NamedTuple):
    """Attributes that are known when the steps are."""

    added: Mapping[str, AttributeValue]
    lacking: Mapping[str, AttributeValue]
    """Those that the span gets only where it lacks them: its maker's own word comes first."""


class HoldingProcessor(SpanProcessor):
    """Passes every span on to ``inner``; those that ``expect`` named only after ``release``."""

    def __init__(self, inner: SpanProcessor) -> None:
        self.inner = inner
        self._lock = Lock()
        self._over = False
        self._held: OrderedDict[tuple[int, int], ReadableSpan | None] = OrderedDict()
        self._released: OrderedDict[tuple[int, int], Late] = OrderedDict()

    def expect(self, context: SpanContext) -> None:
        """The span of ``context`` must wait for its release."""
        overdue = None
        with self._lock:
            self._held[context.trace_id, context.span_id] = None
            if len(self._held) > _CAPACITY:
                overdue = self._held.popitem(last=False)[1]
        if overdue is not None:
            self.inner.on_end(overdue)

    def release(self, context: SpanContext, late: Late) -> None:
        """The span may go, with ``late`` attributes. It may end after this."""
        key = (context.trace_id, context.span_id)
        with self._lock:
            if key not in self._held:
                return
            span = self._held.pop(key)
            if span is None:
                self._released[key] = late
                if len(self._released) > _RELEASED:
                    self._released.popitem(last=False)
        if span is not None:
            self.inner.on_end(_with(span, late))

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do at the start."""

    def on_end(self, span: ReadableSpan) -> None:
        """Passes the span on, or holds it."""
        if self._over:
            return
        context = span.get_span_context()
        late: Late | None = None
        if context is not None:
            key = (context.trace_id, context.span_id)
            with self._lock:
                if key in self._held:
                    self._held[key] = span
                    return
                late = self._released.pop(key, None)
        self.inner.on_end(span if late is None else _with(span, late))

    def let_go(self) -> None:
        """Passes on everything that is held: the process ends."""
        with self._lock:
            spans = [span for span in self._held.values() if span is not None]
            self._held.clear()
        for span in spans:
            self.inner.on_end(span)

    def end(self) -> None:
        """Nothing that ends from now on is passed on: the app's provider outlives our exporter."""
        self._over = True

    def shutdown(self) -> None:
        """Passes on what is held and shuts the inner processor down."""
        self.let_go()
        self.inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flushes the inner processor. What is held waits for its call, not for this."""
        return self.inner.force_flush(timeout_millis)

    def after_fork(self) -> None:
        """For the child of a fork: what is held is the parent's to send."""
        self._lock = Lock()
        self._held.clear()
        self._released.clear()


def _with(span: ReadableSpan, late: Late) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.get_span_context(),
        parent=span.parent,
        resource=span.resource,
        attributes={**late.lacking, **(span.attributes or {}), **late.added},
        events=span.events,
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
