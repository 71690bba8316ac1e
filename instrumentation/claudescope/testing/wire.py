"""How an answer is worded on each platform: the API itself (and Vertex, which words it alike), or Bedrock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from . import eventstream
from .batches import timestamp

__all__ = ["BedrockWire", "Wire", "encode"]

_LIMITS = {
    "requests": (1_000, 999),
    "tokens": (540_000, 540_000),
    "input_tokens": (450_000, 450_000),
    "output_tokens": (90_000, 90_000),
}
"""Limit and what remains of it."""

_BEDROCK_ERRORS = {
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    "invalid_request_error": "validationException",
    "timeout_error": "modelTimeoutException",
}


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class Wire:
    """The Messages API's own wording."""

    stream_type = "text/event-stream; charset=utf-8"

    def __init__(self, request_id: str, clock: Callable[[], int]) -> None:
        self.request_id = request_id
        self.limits: Mapping[str, tuple[int, int]] = _LIMITS
        """What the headers tell: by kind, the limit and what remains of it."""
        self._clock = clock

    def headers(self, *, limited: bool = False) -> list[tuple[str, str]]:
        """Headers of every answer; with ``limited``, the ones of an organisation that has nothing left."""
        now = timestamp(self._clock())
        limits = [
            (f"anthropic-ratelimit-{name.replace('_', '-')}-{key}", value)
            for name, (limit, remaining) in self.limits.items()
            for key, value in (("limit", str(limit)), ("remaining", str(0 if limited else remaining)), ("reset", now))
        ]
        return [
            ("request-id", self.request_id),
            ("anthropic-organization-id", "00000000-0000-4000-8000-000000000000"),
            *limits,
        ]

    def model(self, name: str) -> str:
        """The model's name as the answer gives it: without a region, a vendor or a platform's version."""
        name = re.sub(r"^(?:[a-z]+\.)?anthropic\.", "", name)
        return re.sub(r"-v\d+(?::\d+)?$", "", name).replace("@", "-")

    def error(self, error: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes]:
        """Extra headers and body of an HTTP error."""
        return [], encode({"type": "error", "error": error, "request_id": self.request_id})

    def event(self, name: str, data: bytes) -> bytes:
        """One event of a stream."""
        return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

    def error_event(self, type: str, message: str) -> bytes:
        """The event of an error in mid-stream."""
        error = {"type": type, "message": message}
        return self.event("error", encode({"type": "error", "error": error, "request_id": self.request_id}))


class BedrockWire(Wire):
    """Bedrock's wording: AWS error bodies, and event-stream frames around each event."""

    stream_type = "application/vnd.amazon.eventstream"

    def headers(self, *, limited: bool = False) -> list[tuple[str, str]]:
        """Headers of every answer."""
        return [("x-amzn-requestid", self.request_id)]

    def error(self, error: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes]:
        """Extra headers and body of an HTTP error."""
        kind = _BEDROCK_ERRORS.get(error["type"], "internalServerException")
        return [("x-amzn-errortype", kind[0].upper() + kind[1:])], encode({"message": error["message"]})

    def event(self, name: str, data: bytes) -> bytes:
        """One event of a stream."""
        return eventstream.chunk(data)

    def error_event(self, type: str, message: str) -> bytes:
        """The frame of an exception in mid-stream."""
        return eventstream.exception(_BEDROCK_ERRORS.get(type, "internalServerException"), message)
