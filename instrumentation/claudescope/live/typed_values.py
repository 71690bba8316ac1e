"""OTLP attribute values of the type that the conventions say; a value of another type counts as absent."""

from __future__ import annotations

from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

__all__ = ["MAX_TEXT", "boolean", "milliseconds", "share", "string", "tokens", "whole"]

MAX_TEXT: Final = 256
"""Characters of an id, a name or a label: what a query of the API takes, too."""
_MAX_INDEX: Final = 2**31 - 1


def string(value: AnyValue | None) -> str | None:
    """A text, cut; None for an empty one or another type."""
    return (value.string_value[:MAX_TEXT] or None) if value is not None else None


def boolean(value: AnyValue | None) -> bool | None:
    """True or False."""
    return value.bool_value if value is not None and value.HasField("bool_value") else None


def tokens(value: AnyValue | None) -> int:
    """A count of tokens, 0 where there is none."""
    return min(max(0, value.int_value), 2**40) if value is not None else 0


def whole(value: AnyValue | None) -> int | None:
    """A whole number of at least 0 that fits 32 bits."""
    if value is None or not value.HasField("int_value") or not 0 <= value.int_value <= _MAX_INDEX:
        return None
    return value.int_value


def share(value: AnyValue | None) -> float | None:
    """A number from 0 to 1."""
    if value is None:
        return None
    number = value.double_value if value.HasField("double_value") else None
    if number is None and value.HasField("int_value"):
        number = float(value.int_value)
    return number if number is not None and 0 <= number <= 1 else None


def milliseconds(value: AnyValue | None) -> int | None:
    """A number of seconds as whole milliseconds."""
    kind = value.WhichOneof("value") if value is not None else None
    seconds = getattr(value, kind) if kind in ("double_value", "int_value") else -1
    return round(seconds * 1000) if 0 <= seconds <= 1e6 else None
