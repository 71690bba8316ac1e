"""Where claudescope meets the SDK: five functions are wrapped, and each call's ``post_parser`` is composed.

``SyncAPIClient.request`` and ``AsyncAPIClient.request`` carry every API call; ``_process_response`` of both is where a
response is known while the SDK's own span is still open, and ``_make_status_error_from_response`` the same for a
refusal. The private ones are probed at start: what an SDK lacks costs attributes, never a call.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from ..guard import guard
from .batch import follow_results
from .call import Capture, Followers, current
from .recorder import Recorder
from .stream import follow_stream

__all__ = ["Seam", "probe"]

logger = logging.getLogger("claudescope")

_FOLLOWERS: Final[Followers] = {"chat": follow_stream, "batch_results": follow_results}
_WANTED: Final = (
    ("SyncAPIClient", "request"),
    ("AsyncAPIClient", "request"),
    ("SyncAPIClient", "_process_response"),
    ("AsyncAPIClient", "_process_response"),
    ("BaseClient", "_make_status_error_from_response"),
)


def probe() -> dict[str, bool]:
    """Which of the names that capture stands on this SDK has, as ``Class.name``."""
    from anthropic import AsyncStream, Stream, _base_client
    from anthropic._models import FinalRequestOptions

    found = {f"{cls}.{name}": hasattr(getattr(_base_client, cls, None), name) for cls, name in _WANTED}
    fields = getattr(FinalRequestOptions, "model_fields", None) or getattr(FinalRequestOptions, "__fields__", {})
    found["FinalRequestOptions.post_parser"] = "post_parser" in fields
    for stream in (Stream, AsyncStream):
        # Before 2.x the iterator is made in ``__init__``; the name is then found among what it stores.
        names = getattr(stream.__init__, "__code__", None)
        found[f"{stream.__name__}._iterator"] = hasattr(stream, "_iterator") or (
            names is not None and "_iterator" in names.co_names
        )
    return found


class Seam:
    """The wrapped functions of one process."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.active = False
        self.originals: list[tuple[type, str, Callable[..., Any]]] = []

    def install(self) -> None:
        """Wraps what the SDK has. Names what it lacks in one warning."""
        from anthropic import _base_client

        missing = [name for name, there in probe().items() if not there]
        if missing:
            logger.warning(
                "This anthropic SDK lacks %s: claudescope goes on without what depends on it.", ", ".join(missing)
            )
        wrappers: dict[tuple[str, str], Callable[[Callable[..., Any]], Callable[..., Any]]] = {
            ("SyncAPIClient", "request"): self._request,
            ("AsyncAPIClient", "request"): self._async_request,
            ("SyncAPIClient", "_process_response"): _process_response,
            ("AsyncAPIClient", "_process_response"): _process_response,
            ("BaseClient", "_make_status_error_from_response"): _make_status_error,
        }
        for (class_name, name), wrap in wrappers.items():
            cls = getattr(_base_client, class_name, None)
            original = None if cls is None else cls.__dict__.get(name)
            if cls is not None and original is not None:
                self.originals.append((cls, name, original))
                setattr(cls, name, wrap(original))
        self.active = True

    def remove(self) -> None:
        """Gives back the original functions. Under a wrapper that somebody put around ours, ours only passes on."""
        self.active = False
        while self.originals:
            cls, name, original = self.originals.pop()
            if getattr(cls.__dict__.get(name), "__wrapped__", None) is original:
                setattr(cls, name, original)

    def _begin(self, client: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], asynchronous: bool) -> Any:
        """(capture, arguments, keywords) with our options in place of the app's, or None to leave the call alone."""
        try:
            options = keywords.get("options") or arguments[1]
            capture = Capture(self.recorder, client, options, asynchronous, _FOLLOWERS)
            if capture.call is None:
                return None
            if "options" in keywords:
                return capture, arguments, {**keywords, "options": capture.take_options()}
            return capture, (arguments[0], capture.take_options(), *arguments[2:]), keywords
        except Exception as error:  # noqa: BLE001 - the guard
            guard.contain("begin a call", error)
            return None

    def _request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def request(client: Any, *arguments: Any, **keywords: Any) -> Any:
            begun = self._begin(client, arguments, keywords, False) if self.active else None
            if begun is None:
                with _in_no_call():
                    return original(client, *arguments, **keywords)
            capture, arguments, keywords = begun
            tokens = capture.enter()
            try:
                result = original(client, *arguments, **keywords)
            except BaseException as error:
                _tell("note a failed call", capture.failed, error)
                raise
            finally:
                capture.leave(tokens)
            _tell("note a call's result", capture.returned, result)
            return result

        return request

    def _async_request(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(original)
        async def request(client: Any, *arguments: Any, **keywords: Any) -> Any:
            begun = self._begin(client, arguments, keywords, True) if self.active else None
            if begun is None:
                with _in_no_call():
                    return await original(client, *arguments, **keywords)
            capture, arguments, keywords = begun
            tokens = capture.enter()
            try:
                result = await original(client, *arguments, **keywords)
            except BaseException as error:
                _tell("note a failed call", capture.failed, error)
                raise
            finally:
                capture.leave(tokens)
            _tell("note a call's result", capture.returned, result)
            return result

        return request


@contextlib.contextmanager
def _in_no_call() -> Iterator[None]:
    """For a request that is not followed, inside of one that is, such as a middleware's: it is no part of that call."""
    if current.get() is None:
        yield
        return
    token = current.set(None)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a coroutine that was thrown away is closed in another context
            current.reset(token)


def _tell(what: str, method: Callable[[Any], None], value: Any) -> None:
    try:
        method(value)
    except Exception as error:  # noqa: BLE001 - the guard
        guard.contain(what, error)


def _capture_of(options: Any) -> Capture | None:
    """The call that ``options`` belong to: its ``post_parser`` is the call's own method."""
    owner = getattr(getattr(options, "post_parser", None), "__self__", None)
    return owner if isinstance(owner, Capture) else None


def _process_response(original: Callable[..., Any]) -> Callable[..., Any]:
    # One wrapper serves both clients: the asynchronous original is called here and awaited by the SDK.
    @functools.wraps(original)
    def process_response(client: Any, *arguments: Any, **keywords: Any) -> Any:
        capture = _capture_of(keywords.get("options"))
        if capture is not None:
            try:
                capture.responded(keywords.get("response"), keywords.get("retries_taken"))
            except Exception as error:  # noqa: BLE001 - the guard
                guard.contain("note a response", error)
        return original(client, *arguments, **keywords)

    return process_response


def _make_status_error(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make_status_error_from_response(client: Any, response: Any, *arguments: Any, **keywords: Any) -> Any:
        capture = current.get()
        if capture is not None:
            _tell("note a refusal", capture.responded, response)
        return original(client, response, *arguments, **keywords)

    return make_status_error_from_response
