"""What can go wrong with a scripted reply.

A fault's ``attempts`` is how many requests with the same body it strikes before the reply goes out whole; None
strikes each one. ``after`` says where in a stream it strikes:

``"request"`` before any byte of the answer, ``"headers"`` after its headers, a number after that many SSE events,
``"start N"`` after block N's ``content_block_start``, ``"delta N"`` after its first delta with content, ``"deltas N"``
after its last one (before its stop), ``"stop N"`` after its ``content_block_stop``. In an answer that is not
streamed, everything but ``"request"`` means after half of the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["ERROR_TYPES", "Cut", "Fault", "Garbled", "HTTPFault", "Point", "Stall", "StreamError", "Unprocessed"]

Point = int | str

ERROR_TYPES: Final[dict[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "messages: at least one message is required"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: claude-unknown"),
    408: ("timeout_error", "Request timed out."),
    409: ("invalid_request_error", "The resource is locked."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "Request timed out."),
    529: ("overloaded_error", "Overloaded"),
}
"""The API's error type and a usual message for each HTTP status."""


@dataclass(frozen=True)
class HTTPFault:
    """An HTTP error with the API's own body. Seconds in ``retry_after`` become the header; fractions are allowed.

    ``type`` and ``message`` default to the usual ones of the status; ``code`` is the ``error_code`` of the error's
    details, such as ``thread_not_found``; ``body`` replaces the whole body as it stands.
    """

    status: int
    type: str | None = None
    message: str | None = None
    retry_after: float | None = None
    body: bytes | None = None
    code: str | None = None
    attempts: int | None = None

    @property
    def error(self) -> dict[str, Any]:
        """The ``error`` object of the body."""
        usual, message = ERROR_TYPES.get(self.status, ("api_error", "Internal server error"))
        details = {} if self.code is None else {"details": {"error_code": self.code}}
        return {"type": self.type or usual, "message": self.message or message, **details}


@dataclass(frozen=True)
class StreamError:
    """An SSE ``error`` event in mid-stream, after which the stream ends. Not streamed: an HTTP error of its status."""

    after: Point = "delta 0"
    type: str = "overloaded_error"
    message: str = "Overloaded"
    attempts: int | None = None


@dataclass(frozen=True)
class Cut:
    """The connection ends without the end of the answer; with ``reset`` by a TCP reset, which may lose sent data."""

    after: Point = "delta 0"
    reset: bool = False
    attempts: int | None = None


@dataclass(frozen=True)
class Stall:
    """Nothing is sent for ``seconds`` (or until the stand-in stops); then the answer goes on."""

    after: Point = "delta 0"
    seconds: float = 3600.0
    attempts: int | None = None


@dataclass(frozen=True)
class Garbled:
    """One SSE event whose ``data`` is ``text``, which is not JSON; then the stream goes on. Streams only."""

    after: Point = "delta 0"
    text: str = '{"type":"content_block_delta","index":0,"delta":{"type":'
    attempts: int | None = None


@dataclass(frozen=True)
class Unprocessed:
    """In a batch: a request that ends ``canceled`` or ``expired`` instead of with a message."""

    type: Literal["canceled", "expired"] = "expired"
    attempts: int | None = None


Fault = HTTPFault | StreamError | Cut | Stall | Garbled | Unprocessed
