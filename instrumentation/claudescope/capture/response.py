"""What the HTTP exchange says about a call: method, URL, status, request id, rate limits, retries.

Works on the response and request objects of both ``httpx`` (SDK before 2.0) and ``httpx2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from .. import semconv
from ..steps.model import CallError

__all__ = ["body_read", "error_of", "exchange_attributes", "header_attributes", "request_body", "retries_of"]

_HEADERS: Final = {
    b"request-id": semconv.REQUEST_ID,
    **{
        f"anthropic-ratelimit-{kind.replace('_', '-')}-{field}".encode(): f"{semconv.RATELIMIT_PREFIX}{kind}.{field}"
        for kind in semconv.RATELIMIT_KINDS
        for field in ("limit", "remaining")
    },
}
"""Response header -> the attribute that it becomes."""
_MAX_DIGITS: Final = 18
"""More may not fit 64 bits, and an attribute that does not keeps its span from being encoded."""
_RETRY_COUNT: Final = b"x-stainless-retry-count"


def exchange_attributes(
    request: Any, response: Any, headers: Mapping[str, AttributeValue]
) -> dict[str, AttributeValue]:
    """Span attributes of one HTTP exchange; ``response`` may be None when none came.

    ``headers`` is what ``header_attributes`` gave for it.
    """
    attributes: dict[str, AttributeValue] = {}
    if request is not None:
        url = request.url
        attributes[semconv.HTTP_METHOD] = str(request.method)
        # netloc leaves out user and password, and a port that is the scheme's default
        attributes[semconv.URL_FULL] = f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"
        if retries := retries_of(request):
            attributes[semconv.RETRY_COUNT] = retries
    if response is not None:
        attributes[semconv.HTTP_STATUS] = response.status_code
        attributes.update(headers)
    return attributes


def header_attributes(response: Any) -> dict[str, AttributeValue]:
    """What only the API's response headers say: its request id and the rate limits."""
    attributes: dict[str, AttributeValue] = {}
    # One pass over the raw list: each look-up by name would walk it anew.
    for name, value in response.headers.raw:
        known = _HEADERS.get(name.lower())
        if known is semconv.REQUEST_ID:
            attributes[known] = value.decode("ascii", "replace")
        elif known is not None and value.isdigit() and len(value) <= _MAX_DIGITS:
            attributes[known] = int(value)
    return attributes


def retries_of(request: Any) -> int:
    """How many times the SDK sent the request before, by the header in which it says so."""
    for name, value in request.headers.raw:
        if name.lower() == _RETRY_COUNT and value.isdigit():
            return int(value)
    return 0


def request_body(request: Any) -> bytes | None:
    """The body as sent, or None for one that was streamed out."""
    try:
        content = request.content
    except Exception:  # noqa: BLE001 - httpx raises RequestNotRead, of whichever httpx the SDK uses
        return None
    return content if isinstance(content, bytes) else None


def body_read(response: Any) -> bytes | None:
    """The response's body if the SDK or the app has read it whole, else None. Reads nothing itself."""
    if not getattr(response, "is_stream_consumed", False) and not getattr(response, "is_closed", False):
        return None
    try:
        content = response.content
    except Exception:  # noqa: BLE001 - httpx raises ResponseNotRead, of whichever httpx the SDK uses
        return None
    return content if isinstance(content, bytes) else None


def error_of(error: BaseException) -> CallError:
    """The API's own error type; for a failure without one, a short word for what happened."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else None
    if isinstance(kind, str):
        return CallError(kind, status)
    names = {base.__name__ for base in type(error).__mro__}
    if "TimeoutException" in names or "APITimeoutError" in names:
        return CallError("timeout", status)
    if "APIConnectionError" in names or "TransportError" in names:
        return CallError("connection_error", status)
    if "CancelledError" in names or isinstance(error, (GeneratorExit, KeyboardInterrupt)):
        return CallError("cancelled", status)
    if isinstance(status, int) and status >= 400:
        return CallError(str(status), status)
    return CallError(type(error).__name__, status)
