"""The options of a client and of a request, as the SDK has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["open_telemetry", "with_parser"]


def open_telemetry(client: Any) -> dict[str, Any]:
    """What the app gave as the client's ``open_telemetry``; empty before SDK 1.14."""
    options = getattr(client, "_open_telemetry", None)
    return options if isinstance(options, dict) else {}


def with_parser(options: Any, parser: Callable[[Any], Any]) -> Any:
    """A copy of a request's options with another ``post_parser``: the app may hold the original."""
    # pydantic 1, which SDKs before 2.0 also run on, spells it ``copy``
    copy = options.model_copy() if hasattr(options, "model_copy") else options.copy()
    vars(copy)["post_parser"] = parser  # an attribute that is set goes through pydantic
    return copy
