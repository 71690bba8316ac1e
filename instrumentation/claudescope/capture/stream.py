"""Follows a stream without changing what it is: its iterator is tapped, its type and events stay the SDK's.

The app pulls; nothing is read ahead. No OpenTelemetry context is attached while the app iterates, so a stream may be
read, closed or thrown away in any thread or task.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from ..guard import guard
from ..steps.chains import Asked, asking_types
from ..steps.items import BlockEnded
from ..steps.model import Block, Call, CallError, Incomplete, StreamEnd
from .call import Capture
from .response import error_of

__all__ = ["Tape", "follow_stream"]

_DELTA_TEXT: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
_ENDS: Final[dict[str, Incomplete]] = {
    "completed": "failed",
    "failed": "failed",
    "closed": "closed",
    "dropped": "dropped",
    "cancelled": "cancelled",
}
_now = time.perf_counter_ns


class Tape:
    """What one stream has given so far. Times are of ``perf_counter_ns``."""

    __slots__ = ("__weakref__", "blocks", "capture", "done", "generator", "last", "open", "over", "stopped", "tools")

    def __init__(self, capture: Capture, generator: Any) -> None:
        self.capture = capture
        self.generator = _weak(generator)
        self.open: Block | None = None
        self.over: Block | None = None
        """A finished block that waits to know whether it is the last."""
        self.blocks: dict[int, Block] = {}
        self.tools: list[tuple[Block, int]] = []
        """Uses of the server's tools and when they ended: they matter when the response is paused."""
        self.done = False
        self.stopped = False
        self.last = 0
        capture.recorder.opened(self)

    def saw(self, event: Any, pulled: int, came: int) -> None:
        """One event. The common one, a delta, is the first branch and does the least."""
        try:
            kind = event.type
            if kind == "content_block_delta":
                delta = event.delta
                block = self.open
                if block is None or block.index != event.index:
                    block = self.open = self.blocks[event.index]
                name = _DELTA_TEXT.get(delta.type)
                block.deltas.append((pulled, came, "" if name is None else getattr(delta, name) or ""))
                self.last = came
                return
            self._marker(kind, event, came)
        except Exception as error:  # noqa: BLE001 - the guard
            if isinstance(event, dict):
                self.saw(_View(event), pulled, came)
            else:
                guard.contain("read a stream event", error)

    def _marker(self, kind: str, event: Any, came: int) -> None:
        call = self.capture.call
        if call is None:
            return
        if kind == "message_start":
            message = event.message
            call.response_id = message.id
            call.response_model = message.model
            call.usage = _fields(message.usage)
        elif kind == "content_block_start":
            self._flush()
            fields = _fields(event.content_block)
            block = Block(event.index, str(fields.get("type")), fields, came, came, streamed=True)
            self.open = self.blocks[event.index] = block
            if call.first_chunk is None:
                call.first_chunk = came + self.capture.offset
        elif kind == "content_block_stop":
            self._flush()
            stopped = self.blocks.pop(event.index, None)
            if stopped is not None:
                call.chunks += len(stopped.deltas)
                stopped.ended = came
                self.over = stopped
                if stopped.type == "tool_use":
                    self._register(call, stopped, came)
                elif stopped.type.endswith("tool_use"):
                    self.tools.append((stopped, came))
            self.open = None
        elif kind == "message_delta":
            call.stop_reason = event.delta.stop_reason
            call.usage.update({key: value for key, value in _fields(event.usage).items() if value is not None})
            if self.over is not None:
                self.over.stop_reason = call.stop_reason
            asking = asking_types(call.stop_reason)
            for block, ended in self.tools:
                if block.type in asking:
                    self._register(call, block, ended)
            self._flush()
        elif kind == "message_stop":
            self.stopped = True
            self.finish("completed")

    def _register(self, call: Call, block: Block, ended: int) -> None:
        # not ``block.ended``: the block is the worker's by now
        asked = Asked(call.chain, call.context, ended + self.capture.offset, block.fields["name"])
        self.capture.recorder.book.register(block.fields["id"], asked)

    def _flush(self) -> None:
        call, block = self.capture.call, self.over
        if call is not None and block is not None:
            self.over = None
            self.capture.put(BlockEnded(call, block, self.capture.offset))

    def response_closed(self) -> None:
        """The response was closed: by the app, or by the SDK's generator as it ends, whose end tells more."""
        running = self.generator()
        if not (getattr(running, "gi_running", False) or getattr(running, "ag_running", False)):
            self.finish("closed")

    def finish(self, how: StreamEnd, error: BaseException | None = None) -> None:
        """The stream is over. Only the first call counts; never raises."""
        if self.done:
            return
        self.done = True
        try:
            self._finish(how, error)
        except Exception as fault:  # noqa: BLE001 - the guard
            guard.contain("end a stream", fault)

    def _finish(self, how: StreamEnd, error: BaseException | None) -> None:
        call = self.capture.call
        self.capture.recorder.closed(self)
        if call is None:
            return
        ended = _now()
        failure = None if error is None or how != "failed" else error_of(error)
        if how == "completed" and not self.stopped:
            # The server ended the body without ``message_stop``; the SDK raises nothing.
            how, failure = "failed", CallError("incomplete_stream")
        self._flush()
        for block in self.blocks.values():
            call.chunks += len(block.deltas)
            block.ended = ended if how == "failed" else max(block.started, self.last)
            block.incomplete = _ENDS[how]
            self.capture.put(BlockEnded(call, block, self.capture.offset))
        self.blocks.clear()
        self.capture.end(error=failure, stream_end=how, ended=ended + self.capture.offset)


class _Tap:
    """Stands in for a stream's iterator; anything else that is asked of it goes to the original."""

    __slots__ = ("inner", "tape")

    def __init__(self, inner: Any, tape: Tape) -> None:
        self.inner = inner
        self.tape = tape

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __del__(self) -> None:
        self.tape.finish("dropped")


class _SyncTap(_Tap):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        pulled = _now()
        try:
            event = next(self.inner)
        except StopIteration:
            self.tape.finish("completed")
            raise
        except BaseException as error:
            self.tape.finish(_how(error), error)
            raise
        self.tape.saw(event, pulled, _now())
        return event


class _AsyncTap(_Tap):
    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        pulled = _now()
        try:
            event = await self.inner.__anext__()
        except StopAsyncIteration:
            self.tape.finish("completed")
            raise
        except BaseException as error:
            self.tape.finish(_how(error), error)
            raise
        self.tape.saw(event, pulled, _now())
        return event


def _weak(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # the iterator of a subclass of the app's
        return lambda: None


def _how(error: BaseException) -> StreamEnd:
    return "failed" if isinstance(error, Exception) else "cancelled"


class _View:
    """An event that the app wants as a plain dict, with its keys as attributes."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        if name not in self.fields:
            raise AttributeError(name)
        value = self.fields[name]
        return _View(value) if isinstance(value, dict) else value


def _fields(model: Any) -> dict[str, Any]:
    """A copy of a model's fields in plain data: the app may change the model as soon as it has it."""
    if isinstance(model, _View):
        return dict(model.fields)
    fields = dict(getattr(model, "__dict__", None) or {})
    extra = getattr(model, "__pydantic_extra__", None)
    return {name: _plain(value) for name, value in ({**fields, **extra} if extra else fields).items()}


def _plain(value: Any) -> Any:
    """``value`` without the SDK's models, such as those of a server tool's results."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.model_dump(mode="json", warnings=False) if hasattr(value, "model_dump") else value


@lru_cache(maxsize=256)
def _tap_of(kind: type) -> type[_SyncTap] | type[_AsyncTap] | None:
    """What taps a stream of this class; None for a class that is no stream."""
    from anthropic import AsyncStream, Stream

    kinds = kind.__mro__  # before 1.0, ``isinstance`` of these classes says no for a subclass
    return _SyncTap if Stream in kinds else _AsyncTap if AsyncStream in kinds else None


def follow_stream(capture: Capture, stream: Any) -> bool:
    """Taps ``stream`` if it is one of the SDK's; says whether it was."""
    tap = _tap_of(stream.__class__)
    if tap is None:
        return False
    tape = Tape(capture, stream._iterator)
    # a cached property since 2.x, an attribute before: the instance's own value is what the SDK iterates
    vars(stream)["_iterator"] = tap(stream._iterator, tape)
    capture.tape = weakref.ref(tape)
    if capture.call is not None:
        capture.call.streamed = True
    _hook_close(stream, tape)
    return True


def _hook_close(stream: Any, tape: Tape) -> None:
    """Notes ``close()``. The stream is held weakly: a cycle would keep a dropped one open until the next collection."""
    known, response, original = weakref.ref(stream), stream.response, type(stream).close
    if isinstance(stream._iterator, _AsyncTap):

        async def aclose() -> None:
            tape.finish("closed")
            target = known()
            await (response.aclose() if target is None else original(target))

        stream.close = aclose
    else:

        def close() -> None:
            tape.finish("closed")
            target = known()
            if target is None:
                response.close()
            else:
                original(target)

        stream.close = close
