"""Follows the results of a message batch: the bytes that the app reads are copied to the worker, whole lines at a time.

Nothing is parsed here: the SDK reads 64 bytes at a time, and a message may be long.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..guard import guard
from ..steps.items import BatchLines
from .call import Capture

__all__ = ["follow_results"]


class _Chunks:
    """Stands in for the iterator over the body that a decoder reads."""

    __slots__ = ("capture", "inner", "parts")

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner = inner
        self.capture = capture
        self.parts: list[bytes] = []
        """Of a line that is not whole yet."""

    def saw(self, chunk: bytes) -> None:
        try:
            line_end = chunk.rfind(b"\n") + 1
            if line_end:
                self.parts.append(chunk[:line_end])
                self.flush()
                chunk = chunk[line_end:]
            if chunk:
                self.parts.append(chunk)
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("read a batch's results", error)

    def flush(self) -> None:
        body, self.parts = b"".join(self.parts), []
        if body and self.capture.call is not None:
            self.capture.put(BatchLines(self.capture.call, body, time.time_ns()))

    def finish(self, whole: bool = False) -> None:
        try:
            if whole:
                self.flush()
            self.capture.end()
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("end a batch's results", error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __del__(self) -> None:
        self.finish()


class _SyncChunks(_Chunks):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self.inner)
        except BaseException as error:
            self.finish(whole=isinstance(error, StopIteration))
            raise
        self.saw(chunk)
        return chunk


class _AsyncChunks(_Chunks):
    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            chunk = await self.inner.__anext__()
        except BaseException as error:
            self.finish(whole=isinstance(error, StopAsyncIteration))
            raise
        self.saw(chunk)
        return chunk


def follow_results(capture: Capture, decoder: Any) -> bool:
    """Taps ``decoder`` if it is one of the SDK's JSON Lines decoders; says whether it was."""
    from anthropic._decoders.jsonl import AsyncJSONLDecoder, JSONLDecoder

    if isinstance(decoder, JSONLDecoder):
        chunks: Any = _SyncChunks(decoder._raw_iterator, capture)
    elif isinstance(decoder, AsyncJSONLDecoder):
        chunks = _AsyncChunks(decoder._raw_iterator, capture)
    else:
        return False
    decoder._raw_iterator = chunks  # its generator looks at this when the first line is asked for
    capture.recorder.opened(capture)
    return True
