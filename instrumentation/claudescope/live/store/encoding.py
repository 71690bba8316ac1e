"""OTLP/JSON out of protobuf messages, by their descriptors.

``json_format`` cannot be used: it writes ids as base64 where OTLP has hex, and enums as names where OTLP has numbers.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

__all__ = ["encode"]

_HEX_FIELDS: Final = frozenset({"trace_id", "span_id", "parent_span_id"})
_WIDE: Final = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_REAL: Final = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})

Writer = Callable[[Any], Any]


def encode(message: Message) -> bytes:
    """One message as JSON: names in lowerCamelCase, ids as hex, 64-bit numbers as strings; what is unset is absent."""
    return orjson.dumps(_plain(message))


def _plain(message: Message) -> dict[str, Any]:
    fields = _fields(message.DESCRIPTOR.full_name, message.DESCRIPTOR)
    found = {}
    for field, value in message.ListFields():
        name, write = fields[field.number]
        found[name] = write(value)
    return found


@functools.cache
def _fields(full_name: str, descriptor: Descriptor) -> dict[int, tuple[str, Writer]]:
    """Number of a field -> its JSON name and what writes its value."""
    found: dict[int, tuple[str, Writer]] = {}
    for field in descriptor.fields:
        write = _writer(field)
        found[field.number] = (field.json_name, _each(write) if _repeated(field) else write)
    return found


def _repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(getattr(field, "label", 1) == 3)  # older protobuf has the label only


def _each(write: Writer) -> Writer:
    return lambda values: [write(value) for value in values]


def _writer(field: FieldDescriptor) -> Writer:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        return _plain
    if kind in _WIDE:
        return str
    if kind in _REAL:
        return _number
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes.hex if field.name in _HEX_FIELDS else _base64
    return _same


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _same(value: Any) -> Any:
    return value
