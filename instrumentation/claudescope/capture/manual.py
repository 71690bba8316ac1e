"""Runs and steps made by hand: ``with claudescope.run("name"):`` and ``with claudescope.step("name") as s:``.

Both are context managers for ``with`` and ``async with``, and decorators of functions and coroutine functions. Without
instrumentation they do nothing.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypeVar, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode

from .. import semconv
from ..guard import guard
from ..redact import redact, redact_label
from ..steps.items import ManualEnded
from ..steps.model import Call, Chain, Reason, Step
from .recorder import Recorder

__all__ = ["ManualStep", "Run", "current_run", "detach", "use_recorder"]

F = TypeVar("F", bound=Callable[..., Any])

_run: ContextVar[Chain | None] = ContextVar("claudescope_run", default=None)
_recorder: Recorder | None = None


def use_recorder(recorder: Recorder | None) -> None:
    """Where runs and steps made by hand go from now on; None: nowhere."""
    global _recorder
    _recorder = recorder


def current_run() -> Chain | None:
    """The chain of the innermost ``claudescope.run`` that is open in this context."""
    return _run.get()


class _Scope:
    """A block of code: entered and left with or without ``async``, or once for each call of a decorated function."""

    def _again(self) -> _Scope:
        raise NotImplementedError

    def _enter(self) -> None:
        raise NotImplementedError

    def _exit(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        try:
            self._enter()
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("begin a run or step", error)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._exit(error)
        except Exception as fault:  # noqa: BLE001 - the guard
            guard.contain("end a run or step", fault)

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, tb)

    def __call__(self, function: F) -> F:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def coroutine(*arguments: Any, **keywords: Any) -> Any:
                with self._again():
                    return await function(*arguments, **keywords)

            return cast(F, coroutine)

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with self._again():
                return function(*arguments, **keywords)

        return cast(F, call)


class Run(_Scope):
    """One agent run: the calls and steps inside it form one chain under one root span, with business labels."""

    def __init__(self, name: str, **labels: object) -> None:
        self.name = name
        self.labels = {key: str(value) for key, value in labels.items()}
        self._span: Span = INVALID_SPAN
        self._tokens: tuple[Token[Chain | None], Token[Context]] | None = None
        self._process = 0
        self.id = ""
        """The chain's id, once the run is open."""

    def _again(self) -> Run:
        return Run(self.name, **self.labels)

    def _enter(self) -> None:
        if _recorder is None:
            return
        name = redact_label("", self.name)
        chain = Chain(name=name, labels={key: redact_label(key, value) for key, value in self.labels.items()})
        self.id = chain.id
        self._process = os.getpid()
        attributes: dict[str, Any] = {
            semconv.OPERATION_NAME: semconv.RUN_SPAN,
            semconv.WORKFLOW_NAME: name,
            semconv.CHAIN_ID: chain.id,
            semconv.CHAIN_NAME: name,
        }
        attributes.update({semconv.LABEL_PREFIX + key: value for key, value in chain.labels.items()})
        self._span = _recorder.tracer(None).start_span(
            f"{semconv.RUN_SPAN} {name}", kind=SpanKind.INTERNAL, attributes=attributes
        )
        chain.root = self._span.get_span_context()
        self._tokens = (_run.set(chain), otel_context.attach(trace.set_span_in_context(self._span)))

    def _exit(self, error: BaseException | None) -> None:
        if self._tokens is None:
            return
        _leave(_run, self._tokens)
        self._tokens = None
        if self._process != os.getpid():
            return  # left in a fork: the span is the parent's to end
        if isinstance(error, Exception):
            self._span.set_status(StatusCode.ERROR)
            self._span.set_attribute(semconv.ERROR_TYPE, type(error).__name__)
        self._span.end()


class ManualStep(_Scope):
    """One step of the app's own: it takes the next number of the chain and may be given its verdicts.

    It may be entered again once it was left: each time is a step with verdicts of its own.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._step = self._blank()
        self._process = 0
        self._span: Span = INVALID_SPAN
        self._chain: Chain | None = None
        self._token: Token[Context] | None = None

    def _again(self) -> ManualStep:
        return ManualStep(self.name)

    @staticmethod
    def _blank() -> Step:
        return Step("manual", 0, 0, "measured", last=True)

    def set_confidence(self, value: float) -> None:
        """How sure the app is of this step, from 0 to 1. Raises ValueError for another number."""
        if not 0 <= value <= 1:
            raise ValueError(f"a confidence is a number from 0 to 1, not {value!r}")
        self._step.confidence = float(value)
        self._step.confidence_method = "manual"
        self._step.calibrated = False

    def set_valid(self, valid: bool, reason: str = "") -> None:
        """Whether the step is right; ``reason`` becomes the code of the verdict and leaves the process."""
        self._step.valid = bool(valid)
        self._step.checks = ["manual"]
        code = re.sub(r"[^\w.-]+", "_", redact(reason)).strip("_")[:120] or "unspecified"
        self._step.reasons = [] if valid else [Reason("manual", code)]

    def _enter(self) -> None:
        if _recorder is None:
            return
        self._chain = current_run() or Chain()
        self._process = os.getpid()
        self._step.name = name = redact_label("", self.name)
        self._step.started = time.time_ns()
        self._span = _recorder.tracer(None).start_span(
            f"{semconv.MANUAL_STEP_SPAN} {name}", kind=SpanKind.INTERNAL, start_time=self._step.started
        )
        self._token = otel_context.attach(trace.set_span_in_context(self._span))

    def _exit(self, error: BaseException | None) -> None:
        if self._token is None or self._chain is None:
            return
        token, self._token = self._token, None
        detach(token)
        step, self._step = self._step, self._blank()  # the next time is another step: this one is the worker's now
        if self._process != os.getpid():
            return  # left in a fork: the step is the parent's to end
        step.ended = time.time_ns()
        if isinstance(error, Exception):
            step.error_type = type(error).__name__
            if step.valid is None:
                step.valid = False
                step.checks = ["exception"]
                step.reasons = [Reason("exception", step.error_type)]
        call = Call(self._chain, step.started, self._span, owned=False, operation="step", provider="")
        call.labels = dict(self._chain.labels)
        if _recorder is None:
            self._span.end()  # uninstrumented meanwhile
        else:
            _recorder.put(ManualEnded(call, step, self._span))


def detach(token: Token[Context]) -> None:
    """Undoes ``otel_context.attach``, without the error that it logs where a coroutine is left in another context."""
    with contextlib.suppress(ValueError):
        otel_context._RUNTIME_CONTEXT.detach(token)


def _leave(variable: ContextVar[Chain | None], tokens: tuple[Token[Chain | None], Token[Context]]) -> None:
    detach(tokens[1])
    with contextlib.suppress(ValueError):
        variable.reset(tokens[0])
