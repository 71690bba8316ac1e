"""The options of a client and of a request, as the SDK has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["open_telemetry", "with_parser"]


def open_telemetry(client: Any) -> dict[str, Any]:
    """What the app gave as the client's ``open_telemetry``; empty before SDK 1.14."""
    options = getattr(client, "_open_telemetry", None)
    return options if isinstance(options, dict) else {}


_SLOTS: Final = ("__pydantic_extra__", "__pydantic_private__")


def with_parser(options: Any, parser: Callable[[Any], Any]) -> Any:
    """A copy of a request's options with another ``post_parser``: the app may hold the original."""
    try:
        copy = object.__new__(options.__class__)
        put = object.__setattr__  # ``model_copy`` does the same in twice the time, on the app's thread
        put(copy, "__dict__", {**options.__dict__, "post_parser": parser})
        put(copy, "__pydantic_fields_set__", {*options.__pydantic_fields_set__, "post_parser"})
        for name in _SLOTS:
            put(copy, name, getattr(options, name))
    except AttributeError:  # pydantic 1, which SDKs before 2.0 also run on
        copy = options.copy()
        vars(copy)["post_parser"] = parser
    return copy
