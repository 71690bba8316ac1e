"""One API call in flight, on the app's thread: from the wrapped ``request`` to the last thing that is known of it."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import Any, TypeAlias

from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, NonRecordingSpan, Span, SpanContext, SpanKind, TracerProvider
from opentelemetry.util.types import AttributeValue

from .. import semconv
from ..guard import guard
from ..steps.chains import Asked, asking_types
from ..steps.items import CallEnded, Item, ToolsReturned
from ..steps.model import Call, CallError, Chain, StreamEnd
from .manual import current_run, detach
from .options import open_telemetry, with_parser
from .raw import watch
from .recorder import Recorder
from .request import continued_by, operation_of, provider_of, request_attributes
from .response import body_read, error_of, exchange_attributes, header_attributes, request_body, retries_of

__all__ = ["Capture", "Followers", "current"]

current: ContextVar[Capture | None] = ContextVar("claudescope_call", default=None)
"""The call whose ``request`` is running in this context."""

Followers: TypeAlias = "Mapping[str, Callable[[Capture, Any], bool]]"
"""By operation: taps what the SDK gives to the app if it comes piece by piece, and says whether it does."""


class Capture:
    """What is noted of one call until it ends. Methods may run on any thread, one after the other."""

    __slots__ = (
        "asynchronous",
        "body",
        "call",
        "came_at",
        "context",
        "done",
        "followers",
        "inner",
        "native",
        "offset",
        "options",
        "outer_span",
        "process",
        "recorder",
        "response",
        "retries",
        "tape",
        "tapped",
    )

    def __init__(self, recorder: Recorder, client: Any, options: Any, asynchronous: bool, followers: Followers) -> None:
        """Starts to note a call. Leaves ``call`` None for a request that is none of the Messages API."""
        self.recorder = recorder
        self.followers = followers
        self.asynchronous = asynchronous
        self.call: Call | None = None
        operation = operation_of(options.method, options.url)
        if operation is None:
            return
        self.done = False
        self.tapped = False
        self.process = os.getpid()
        self.tape: weakref.ref[Any] | None = None
        """The ``Tape`` of a stream."""
        self.response: Any = None
        self.body: bytes | None = None
        """The response's, if it was read whole before it was parsed."""
        self.retries: int | None = None
        self.came_at: int | None = None
        """When the whole response was there (ns)."""
        self.context: Context | None = None
        """What is current while ``request`` runs, and goes into ``traceparent``; None: what the app has."""
        started = time.time_ns()
        self.offset = started - time.perf_counter_ns()
        body = options.json_data
        results, answered = continued_by(body) if operation == "chat" else ((), [])
        asked = recorder.book.claim(answered) if answered else {}
        continued = next(reversed(asked.values())).chain if asked else None
        chain = current_run() or continued or Chain()
        model = body.get("model") if isinstance(body, dict) else None
        own_provider: TracerProvider | None = open_telemetry(client).get("tracer_provider")
        call = self.call = Call(
            chain=chain,
            started=started,
            span=INVALID_SPAN,
            owned=False,
            operation=operation,
            model=model if isinstance(model, str) else "",
            provider=provider_of(client.__class__),
            base_url=client.base_url,
            streamed=isinstance(body, dict) and body.get("stream") is True,
            tracer_provider=own_provider,
            labels=dict(chain.labels),
        )
        if results and asked:
            returned = tuple((result, asked[result.tool_use_id]) for result in results if result.tool_use_id in asked)
            recorder.put(ToolsReturned(call, returned, started))
        active = trace.get_current_span()
        if chain.root is not None and not active.get_span_context().is_valid:
            active = NonRecordingSpan(_remote(chain.root))
            self.context = trace.set_span_in_context(active)
        self.outer_span = active
        provider = recorder.real_provider(own_provider)
        self.native = (
            provider is not None
            and getattr(client, "_tracer", None) is not None
            and bool(getattr(options, "span_name", None))
        )
        self.inner = options.post_parser
        self.options = with_parser(options, self.parsed)
        if not self.native:
            spotted = recorder.spotted()
            if spotted is not None:
                self._take(spotted)
            else:
                self._own_span(body)
                if open_telemetry(client).get("propagation") is not False:
                    self._inject(getattr(client, "_custom_headers", None))
        recorder.began(call)

    def __deepcopy__(self, memo: dict[int, Any]) -> Capture:
        # The clients for Bedrock and Vertex make a deep copy of the options, and so of what the parser is bound to.
        return self

    # ------------------------------------------------------------------------------ the span of the call

    def _own_span(self, body: Any) -> None:
        call = self._known()
        attributes: dict[str, AttributeValue] = {
            semconv.OPERATION_NAME: call.operation,
            semconv.PROVIDER_NAME: call.provider,
            semconv.SERVER_ADDRESS: call.server_address,
            semconv.SERVER_PORT: call.server_port,
            **request_attributes(body),
        }
        if call.model:
            attributes[semconv.REQUEST_MODEL] = call.model
        previous = call.chain.previous
        name = semconv.CALL_SPAN if call.operation == "chat" else call.operation
        span = self.recorder.tracer(call.tracer_provider).start_span(
            f"{name} {call.model}".rstrip(),
            context=self.context,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=() if previous is None else (Link(previous),),
            start_time=call.started,
        )
        call.owned = True
        self._begin(call, span)
        self.context = trace.set_span_in_context(span)

    def _take(self, span: Span) -> None:
        """Takes a span that the SDK or an instrumentation made: it gets what it lacks and the link of the chain."""
        call = self._known()
        chain = call.chain
        if chain.previous is not None:
            span.add_link(chain.previous)
        self._begin(call, span)
        # The native span begins a little later than this call did, and steps are within their call's span.
        started = getattr(span, "start_time", None)
        if started is not None and started > call.started:
            call.started = started
        self.recorder.adopt(span)
        attributes: dict[str, AttributeValue] = {semconv.CHAIN_ID: chain.id}
        for key, value in call.labels.items():
            attributes[semconv.LABEL_PREFIX + key] = value
        span.set_attributes(attributes)

    @staticmethod
    def _begin(call: Call, span: Span) -> None:
        call.span = span
        context = span.get_span_context()
        if context.is_valid:
            call.chain.previous = context
            if call.chain.root is None:
                call.chain.root = context

    def _note_exchange(self, span: Span, request: Any, response: Any) -> None:
        """Gives the span what the HTTP exchange says and it lacks."""
        headers = {} if response is None else header_attributes(response)
        self._known().headers = headers
        if not span.is_recording():
            return
        if self.native:  # then the SDK writes method, URL and status itself
            attributes = dict(headers)
            if self.retries is None and request is not None:
                self.retries = retries_of(request)
            if self.retries:
                attributes[semconv.RETRY_COUNT] = self.retries
        else:
            # A set: each look-up in a span's own mapping takes a lock.
            present = set(getattr(span, "attributes", None) or ())
            attributes = exchange_attributes(request, response, headers)
            attributes = {name: value for name, value in attributes.items() if name not in present}
        if attributes:
            span.set_attributes(attributes)

    def _inject(self, defaults: Any) -> None:
        """Adds ``traceparent`` and ``tracestate`` where the app, or its client by ``defaults``, has not set its own."""
        given = self.options.headers
        headers = dict(given) if hasattr(given, "keys") else {}
        present = {str(name).lower() for name in (*headers, *(defaults or ()))}
        carrier: dict[str, str] = {}
        try:
            propagate.inject(carrier, self.context)
        except Exception as error:  # noqa: BLE001 - a propagator of the app's; the call goes on, and is followed
            guard.note("add the trace context to a request", error)
        added = {name: value for name, value in carrier.items() if name.lower() not in present}
        if added:
            self.options.headers = {**headers, **added}

    def _known(self) -> Call:
        if self.call is None:
            raise RuntimeError("not a call of the Messages API")
        return self.call

    # ------------------------------------------------------------------------------ what the SDK tells

    def native_started(self, span: Span) -> None:
        """The SDK has just begun its own span for this call."""
        if self.call is not None and self.call.span is INVALID_SPAN:
            self.native = True
            self._take(span)

    def take_options(self) -> Any:
        """The options to call the SDK with. Not kept: they refer to this, and to all that the app sends."""
        options, self.options = self.options, None
        return options

    def enter(self) -> tuple[Token[Capture | None], Token[Context] | None]:
        """Makes the call's span current while ``request`` runs."""
        return current.set(self), None if self.context is None else otel_context.attach(self.context)

    def leave(self, tokens: tuple[Token[Capture | None], Token[Context] | None]) -> None:
        """Undoes ``enter``."""
        if tokens[1] is not None:
            detach(tokens[1])
        try:
            current.reset(tokens[0])
        except ValueError:  # a coroutine that was thrown away is closed in another context
            return

    def responded(self, response: Any, retries: int | None = None) -> None:
        """A response came, or a refusal after the last retry, while the native span, if any, is current and open.

        ``retries``: how many requests were sent before, where that is known.
        """
        call = self._known()
        self.response = response
        self.retries = retries
        request = getattr(response, "_request", None)
        if call.span is INVALID_SPAN:
            # The spotter has seen no native span begin: it was sampled out, its provider has no processors, or the SDK
            # made none after all.
            span = trace.get_current_span()
            if span is not self.outer_span:
                self._take(span)
            else:
                self.native = False
                self._own_span(None)
        self._note_exchange(call.span, request, response)
        if request is not None:
            call.request = request_body(request)
        self.body = body_read(response)
        if self.body is not None:
            self.came_at = time.time_ns()  # before it is parsed: the native span may end earlier than that

    def parsed(self, value: Any) -> Any:
        """The SDK's ``post_parser``: sees a stream before the app does, and passes on what it is given."""
        try:
            call = self._known()
            if call.operation == "chat":
                self._register(call, value)
            if not self.done:  # else a raw response, parsed after it was read
                follow = self.followers.get(call.operation)
                if follow is not None:
                    self.tapped = follow(self, value)
                if not self.tapped and self.response is not None:
                    body = self.body or body_read(self.response)
                    if body is not None:
                        self.message(body)
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("follow a response", error)
        return self.inner(value) if callable(self.inner) else value

    def _register(self, call: Call, message: Any) -> None:
        """Makes known which tool uses the next request of the run will answer."""
        asking = asking_types(getattr(message, "stop_reason", None))
        for block in getattr(message, "content", None) or ():
            if getattr(block, "type", None) in asking:
                asked = Asked(call.chain, call.context, call.ended or time.time_ns(), block.name)
                self.recorder.book.register(block.id, asked)

    def returned(self, result: Any) -> None:
        """``request`` gives ``result`` to the app."""
        # Not held any longer: the worker remembers open streams, and would keep a dropped one from being freed.
        response, self.response, self.body = self.response, None, None
        if self.tapped or self.done:
            return
        if response is None:
            self.end()  # a middleware answered in place of the API
            return
        body = body_read(response)
        if body is not None:
            self.message(body)
        else:
            self.recorder.opened(self)
            watch(response, self.raw_over, self.asynchronous)

    def finish(self, how: StreamEnd) -> None:
        """The process ends, and the app has not read the response. A stream is ended by its tape."""
        if self.tape is None:
            self.end()

    def message(self, body: bytes) -> None:
        """The whole body is here."""
        call = self._known()
        now = self.came_at or time.time_ns()
        self.end(ended=now, body=body if call.operation == "chat" else None)

    def raw_over(self, response: Any, error: BaseException | None) -> None:
        """The app has read, closed or dropped (then it is None) a response that it got unread."""
        if self.tape is not None:
            tape = self.tape()
            if tape is not None:
                tape.response_closed()
            return
        if self.done or self.tapped:
            return
        body = None if response is None else body_read(response)
        if body is not None and response.headers.get("content-type", "").startswith("application/json"):
            self.message(body)
        else:
            self.end(error=None if error is None else error_of(error))

    def failed(self, error: BaseException) -> None:
        """``request`` raised ``error``."""
        if self.done:
            return
        call = self._known()
        call.error = error_of(error)
        request = None
        if self.response is None:
            try:
                request = getattr(error, "request", None)
            except RuntimeError:  # httpx errors raise when they have none
                request = None
            self._note_exchange(call.span, request, None)
            if request is not None:
                call.request = request_body(request)
        body = None if self.response is None or self.response.status_code >= 400 else body_read(self.response)
        if body is not None:
            self.message(body)  # the call was answered; parsing the answer failed
        else:
            self.end(error=call.error)

    def put(self, item: Item) -> None:
        """Hands an item to the worker, but not in a fork of the process that made the call: there it is not ours."""
        if self.process == os.getpid():
            self.recorder.put(item)

    def end(
        self,
        error: CallError | None = None,
        stream_end: StreamEnd | None = None,
        ended: int | None = None,
        body: bytes | None = None,
    ) -> None:
        """Nothing more will come than ``body``, the whole response. Only the first call counts."""
        if self.done:
            return
        self.done = True
        self.recorder.closed(self)
        call = self._known()
        self.recorder.over(call)
        call.ended = ended or time.time_ns()
        call.error = error or call.error
        call.stream_end = stream_end
        self.put(CallEnded(call, body))


def _remote(context: SpanContext) -> SpanContext:
    return SpanContext(context.trace_id, context.span_id, True, context.trace_flags, context.trace_state)
