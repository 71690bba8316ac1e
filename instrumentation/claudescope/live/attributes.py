"""OTLP attribute values as plain JSON values."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

__all__ = ["plain", "plain_attributes"]


def plain(value: AnyValue) -> Any:
    """A string, bool, number, list, dict or None; bytes become base64, numbers that JSON lacks become strings."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return plain_attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "double_value" and not math.isfinite(value.double_value):
        return str(value.double_value)
    return getattr(value, kind)


def plain_attributes(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes by key; of several with one key the last."""
    return {attribute.key: plain(attribute.value) for attribute in attributes}
