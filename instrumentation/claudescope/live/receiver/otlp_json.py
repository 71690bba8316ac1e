"""OTLP/JSON into protobuf messages, by their descriptors.

``json_format`` cannot be used: OTLP's ids are hex where protobuf's JSON has base64, and it takes 180 us a span.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable
from typing import Any, Final

import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

__all__ = ["JsonError", "fill", "parse"]

_MAX_DEPTH: Final = 64
_MAX_OBJECTS: Final = 1_000_000
"""Of one body: objects of two characters each take far more time and memory than their text."""
_HEX_FIELDS: Final = frozenset({"trace_id", "span_id", "parent_span_id"})
_BOUNDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""What follows a backslash: a pair of surrogates, half of one, or something else."""

Reader = Callable[[Any], Any]


class JsonError(ValueError):
    """A value that does not fit its field; the text starts with the field's path."""


def _whole(low: int, high: int) -> Reader:
    def read(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and value.removeprefix("-").isascii() and value.removeprefix("-").isdigit():
            value = int(value) if len(value) < 25 else high + 1
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise JsonError(f"must be a whole number from {low} to {high}")
        return value

    return read


def _double(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)  # "NaN", "Infinity" and "-Infinity" are strings in protobuf's JSON
        except ValueError:
            pass
    raise JsonError("must be a number")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise JsonError("must be true or false")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise JsonError("must be a string")
    return value


def _hex(value: Any) -> bytes:
    try:
        return bytes.fromhex(_string(value))
    except ValueError:
        raise JsonError("must be a string of hex digits") from None


def _base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_string(value).replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise JsonError("must be a base64 string") from None


def _enum(enum: EnumDescriptor) -> Reader:
    whole = _whole(-(2**31), 2**31 - 1)

    def read(value: Any) -> int:
        if isinstance(value, str) and value in enum.values_by_name:
            return int(enum.values_by_name[value].number)
        return int(whole(value))

    return read


def _reader(field: FieldDescriptor) -> Reader:
    kind = field.cpp_type
    if kind in _BOUNDS:
        return _whole(*_BOUNDS[kind])
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return _double
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return _boolean
    if field.enum_type is not None:
        return _enum(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _hex if field.name in _HEX_FIELDS else _base64
    return _string


def _repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(getattr(field, "label", 1) == 3)  # older protobuf has the label only


@functools.cache
def _fields(full_name: str, descriptor: Descriptor) -> dict[str, tuple[str, bool, Reader | None]]:
    """JSON name -> (field name, repeated, reader of one value or None for a message)."""
    found: dict[str, tuple[str, bool, Reader | None]] = {}
    for field in descriptor.fields:
        message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        entry = (field.name, _repeated(field), None if message else _reader(field))
        found[field.json_name] = found[field.name] = entry
    return found


def parse(body: bytes) -> Any:
    """The JSON of a body. Half of a surrogate pair, which JSON can write and UTF-8 cannot, becomes U+FFFD: a sender
    that cuts texts by UTF-16 units must not lose its batch by it. Raises orjson.JSONDecodeError.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\u" not in body:
            raise
        return orjson.loads(_ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], body))


def fill(message: Message, data: Any, depth: int = 0, count: list[int] | None = None) -> None:
    """Sets the fields of ``message`` from decoded JSON. Unknown names are ignored, as OTLP asks.

    Raises JsonError with the path of the value that does not fit.
    """
    if not isinstance(data, dict):
        raise JsonError("must be an object")
    if depth > _MAX_DEPTH:
        raise JsonError(f"is nested over {_MAX_DEPTH} levels")
    count = [0] if count is None else count
    count[0] += 1
    if count[0] > _MAX_OBJECTS:
        raise JsonError(f"is one of over {_MAX_OBJECTS} objects")
    fields = _fields(message.DESCRIPTOR.full_name, message.DESCRIPTOR)
    for key, value in data.items():
        known = fields.get(key)
        if known is None or value is None:
            continue
        name, repeated, read = known
        try:
            if repeated:
                if not isinstance(value, list):
                    raise JsonError("must be a list")
                target = getattr(message, name)
                for item in value:
                    if read is None:
                        fill(target.add(), item, depth + 1, count)
                    else:
                        target.append(read(item))
            elif read is None:
                child = getattr(message, name)
                child.SetInParent()
                fill(child, value, depth + 1, count)
            else:
                setattr(message, name, read(value))
        except JsonError as error:
            text = str(error)
            path = f"{key}.{text}" if not text.startswith(("must ", "is ")) else f"{key} {text}"
            raise JsonError(path) from None
        except (ValueError, TypeError, OverflowError):
            raise JsonError(f"{key} must be a valid value") from None
