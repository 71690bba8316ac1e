"""Finds the call spans that others make: the SDK itself, and other instrumentations of it.

Some of these are never the current span, so they are seen as they begin, by a span processor. Where a provider takes no
processors, only the current span can be found.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import Span

from .. import semconv
from ..guard import guard
from .call import current

__all__ = ["INSTRUMENTATIONS", "Spotter", "spotted"]

INSTRUMENTATIONS: Final = {
    "opentelemetry.instrumentation.genai.anthropic": "opentelemetry-instrumentation-genai-anthropic",
    "opentelemetry.util.genai.handler": "opentelemetry-instrumentation-genai-anthropic",
    "openinference.instrumentation.anthropic": "openinference-instrumentation-anthropic",
    "opentelemetry.instrumentation.anthropic": "opentelemetry-instrumentation-anthropic",
}
"""Instrumentation scope -> the package that makes call spans in it."""

_CHAT_OPERATIONS: Final = frozenset({"chat", "text_completion", "generate_content"})
_OPENINFERENCE_KIND: Final = "openinference.span.kind"

_latest: ContextVar[Span | None] = ContextVar("claudescope_latest_call_span", default=None)
_taken: weakref.WeakSet[Any] = weakref.WeakSet()


class Spotter(SpanProcessor):
    """Notes call spans as they begin. Ends, exports and flushes nothing."""

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """Hands a native span to the call in flight; remembers an instrumentation's span for the call to come."""
        try:
            scope = span.instrumentation_scope
            if scope is None:
                return
            if scope.name.startswith(semconv.NATIVE_SCOPE):
                capture = current.get()
                if capture is not None:
                    capture.native_started(span)
                    if (latest := _latest.get()) is not None:
                        _taken.add(latest)  # it is of the same call, and not of one to come
            elif scope.name in INSTRUMENTATIONS:
                _latest.set(span)
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("see a span begin", error)


_NEVER_CURRENT: Final = "opentelemetry.instrumentation.anthropic"
_DEPTH: Final = 40


def _unseen() -> Span | None:
    """A span that began before this process's first look at its provider, and is never current.

    That is so in the first call after the app has set its provider. The instrumentation's own function is then among
    the callers, and holds the span. Nothing is looked for unless that instrumentation is loaded.
    """
    if _NEVER_CURRENT not in sys.modules:
        return None
    frame = sys._getframe(1)
    for _ in range(_DEPTH):
        if frame.f_back is None:
            return None
        frame = frame.f_back
        if frame.f_globals.get("__name__") == _NEVER_CURRENT:
            span = frame.f_locals.get("span")
            if isinstance(span, SdkSpan):
                return span
    return None


def _is_call(span: Span) -> bool:
    attributes = getattr(span, "attributes", None) or {}
    return attributes.get(semconv.OPERATION_NAME) in _CHAT_OPERATIONS or attributes.get(_OPENINFERENCE_KIND) == "LLM"


def _seen() -> Span | None:
    return _latest.get()


def spotted() -> Span | None:
    """The innermost open call span of this context that no call has taken yet; it is taken by this."""
    active = trace.get_current_span()
    candidates: tuple[Callable[[], Span | None], ...] = (
        _seen,
        lambda: active if _is_call(active) else None,
        _unseen,
    )
    for candidate in candidates:
        span = candidate()
        if span is not None and span.is_recording() and span not in _taken:
            _taken.add(span)
            return span
    return None
