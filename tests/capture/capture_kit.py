"""Clients of every kind, an instrumented process, and what an app gets, in comparable form."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anthropic
import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanKind

import claudescope
from claudescope import control, semconv
from claudescope.testing.exporters import Telemetry
from claudescope.testing.standin import StandIn

VERSION = tuple(int(part) for part in anthropic.__version__.split(".")[:2])
NATIVE = importlib.util.find_spec("anthropic._tracing") is not None
"""Whether this SDK makes spans of its own (since 1.14)."""
HAS_CYCLES = VERSION < (2, 0)
"""Whether a stream of this SDK refers to itself, so that one that is dropped waits for the garbage collector."""

needs_native = pytest.mark.skipif(not NATIVE, reason=f"anthropic {anthropic.__version__} makes no spans of its own")

_SSL = ssl.create_default_context()  # 20 ms each; nothing here speaks TLS


_http_clients: list[Any] = []


def new_client(url: str, *, asynchronous: bool = False, platform: str = "", **options: Any) -> Any:
    """A real client of the stand-in at ``url``; ``platform`` is ``bedrock``, ``vertex`` or none."""
    http = anthropic.DefaultAsyncHttpxClient if asynchronous else anthropic.DefaultHttpxClient
    made = http(verify=_SSL)
    if not asynchronous:
        _http_clients.append(made)
    shared: dict[str, Any] = {"base_url": url, "max_retries": 0, "http_client": made, **options}
    prefix = "Async" if asynchronous else ""
    if platform == "bedrock":
        keys = {"aws_access_key": "AKIDEXAMPLE", "aws_secret_key": "secret", "aws_region": "us-east-1"}
        return getattr(anthropic, f"{prefix}AnthropicBedrock")(**shared, **keys)
    if platform == "vertex":
        keys = {"region": "global", "project_id": "p", "access_token": "t"}
        return getattr(anthropic, f"{prefix}AnthropicVertex")(**shared, **keys)
    return getattr(anthropic, f"{prefix}Anthropic")(**shared, api_key="k")


def drive(asynchronous: bool, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs a coroutine that serves both clients: on a loop, or by hand where nothing in it ever waits."""
    if asynchronous:
        return asyncio.run(make())
    coroutine = make()
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise AssertionError("a synchronous path awaited something")


async def let_go() -> None:
    """Lets the loop close the asynchronous generators that were dropped, one inside the other."""
    for _ in range(5):
        gc.collect()
        for _ in range(10):
            await asyncio.sleep(0)


def seen(value: Any) -> Any:
    """What the app gets, in comparable form: types and values."""
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    if isinstance(value, BaseException):
        cause = value.__cause__
        told = (getattr(value, "status_code", None), getattr(value, "body", None), getattr(value, "request_id", None))
        return [type(value).__name__, str(value), *told, None if cause is None else [type(cause).__name__, str(cause)]]
    if hasattr(value, "model_dump"):
        extras = getattr(value, "_request_id", None)
        return [type(value).__name__, value.model_dump(mode="json", warnings=False), extras]
    return value


def observe(action: Callable[[], Any]) -> Any:
    """What an action gives or raises, in comparable form; afterwards everything it dropped is gone."""
    try:
        given = seen(action())
    except Exception as error:
        given = ["raised", *seen(error)]
    for _ in range(4):  # a generator that is closed may let go of others
        gc.collect()
    while _http_clients:
        _http_clients.pop().close()
    return given


class OpenSpans(SpanProcessor):
    """Counts spans that began and have not ended."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if span.name == "anthropic.messages.tool_runner":
            return  # the SDK ends it when the runner is freed, which Python 3.13 does not do with one left in its loop
        self.open[span.get_span_context().span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        if span.name != "anthropic.messages.tool_runner":
            del self.open[span.get_span_context().span_id]


class Scope:
    """An instrumented process: ``ours`` has the spans of claudescope, ``native`` those of a client that traces."""

    def __init__(self) -> None:
        self.ours, self.native = Telemetry(), Telemetry()
        self.open = OpenSpans()
        self.records: list[dict[str, Any]] = []
        for telemetry in (self.ours, self.native):
            telemetry.tracer_provider.add_span_processor(self.open)

    @property
    def native_option(self) -> dict[str, Any]:
        """The option of a client that makes spans of its own, in a provider of its own."""
        return {"open_telemetry": {"tracer_provider": self.native.tracer_provider}}

    def settle(self) -> None:
        """Waits for the worker; fails on any fault of it."""
        assert claudescope.flush(60)
        worker = control.worker()
        assert worker is None or worker.fault is None, worker.fault

    @property
    def calls(self) -> list[ReadableSpan]:
        self.settle()
        return [span for t in (self.ours, self.native) for span in t.spans if span.kind is SpanKind.CLIENT]

    @property
    def call(self) -> ReadableSpan:
        """The only call's span."""
        calls = self.calls
        assert len(calls) == 1, [span.name for span in calls]
        return calls[0]

    @property
    def steps(self) -> list[ReadableSpan]:
        self.settle()
        return sorted(
            [*self.ours.steps, *self.native.steps],
            key=lambda span: (span.start_time, attribute(span, semconv.STEP_INDEX)),
        )

    def kinds(self) -> list[tuple[str, str | None]]:
        """Kind and incompleteness of each step, by number."""
        steps = sorted(self.steps, key=lambda span: attribute(span, semconv.STEP_INDEX))
        return [(attribute(span, semconv.STEP_KIND), attribute(span, semconv.STEP_INCOMPLETE)) for span in steps]

    def clear(self) -> None:
        self.settle()
        self.ours.clear()
        self.native.clear()


def attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


@contextmanager
def instrumented(**settings: Any) -> Iterator[Scope]:
    """Instruments this process; at the end nothing may have gone wrong and no span may be open."""
    scope = Scope()
    ours = scope.ours
    claudescope.instrument(ours.tracer_provider, ours.meter_provider, ours.logger_provider, **settings)
    made = control.worker()
    assert made is not None
    try:
        yield scope
    finally:
        claudescope.uninstrument()
        ours.shutdown()
        scope.native.shutdown()
    assert made.fault is None, made.fault
    assert not made._open, "a stream is remembered that is over"
    assert scope.open.open == {}


class Outcome:
    """What an app got, without claudescope and, equal to it, with it; and what was emitted meanwhile.

    ``scope`` is of a client that makes no spans of its own in a real provider, ``native`` (None where the SDK is too
    old) of one that does. Both are closed: everything is emitted, no span is open.
    """

    def __init__(self, given: Any, scope: Scope, native: Scope | None, requests: tuple[Any, ...]) -> None:
        self.given, self.scope, self.native, self.requests = given, scope, native, requests

    @property
    def call(self) -> ReadableSpan:
        return self.scope.call

    @property
    def kinds(self) -> list[tuple[str, str | None]]:
        """The steps' kinds and incompleteness, which are the same beside the SDK's own span."""
        kinds = self.scope.kinds()
        if self.native is not None:
            assert self.native.kinds() == kinds
        return kinds

    def __getitem__(self, name: str) -> Any:
        """An attribute of the only call's span."""
        return attribute(self.call, name)


def compare(script: tuple[Any, ...], action: Callable[[str, dict[str, Any]], Any], **settings: Any) -> Outcome:
    """Runs ``action(url, client options)`` without claudescope and with it, against equal stand-ins."""
    with StandIn() as standin:
        standin.use(*script)
        plain = observe(lambda: action(standin.url, {}))
    scopes: list[Scope | None] = [None, None]
    requests: tuple[Any, ...] = ()
    for index in (0, 1) if NATIVE else (0,):
        with StandIn() as standin, instrumented(**settings) as scope:
            standin.use(*script)
            options = scope.native_option if index else {}
            assert observe(partial(action, standin.url, options)) == plain
            scope.settle()
            scopes[index] = scope
            requests = requests or standin.requests
    assert scopes[0] is not None
    return Outcome(plain, scopes[0], scopes[1], requests)
