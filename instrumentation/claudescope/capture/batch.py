"""Follows the results of a message batch: each line that the app reads becomes the steps of one message."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..steps.items import BatchResult
from .call import Capture
from .guard import guard

__all__ = ["follow_results"]


class _Lines:
    """Stands in for a decoder's iterator."""

    __slots__ = ("capture", "inner")

    def __init__(self, inner: Any, capture: Capture) -> None:
        self.inner = inner
        self.capture = capture

    def saw(self, line: Any) -> None:
        try:
            call, result = self.capture.call, line.result
            if call is not None and result.type == "succeeded":
                # deep copy in plain data: the app may change the message as soon as it has it
                message = result.message.model_dump(mode="json", warnings=False)
                self.capture.recorder.put(BatchResult(call, line.custom_id, message, time.time_ns()))
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("read a batch result", error)

    def finish(self) -> None:
        try:
            self.capture.end()
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("end a batch's results", error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __del__(self) -> None:
        self.finish()


class _SyncLines(_Lines):
    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            line = next(self.inner)
        except BaseException:
            self.finish()
            raise
        self.saw(line)
        return line


class _AsyncLines(_Lines):
    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            line = await self.inner.__anext__()
        except BaseException:
            self.finish()
            raise
        self.saw(line)
        return line


def follow_results(capture: Capture, decoder: Any) -> bool:
    """Taps ``decoder`` if it is one of the SDK's JSON Lines decoders; says whether it was."""
    from anthropic._decoders.jsonl import AsyncJSONLDecoder, JSONLDecoder

    if isinstance(decoder, JSONLDecoder):
        lines: Any = _SyncLines(decoder._iterator, capture)
    elif isinstance(decoder, AsyncJSONLDecoder):
        lines = _AsyncLines(decoder._iterator, capture)
    else:
        return False
    vars(decoder)["_iterator"] = lines  # a cached property since 2.x, an attribute before
    return True
