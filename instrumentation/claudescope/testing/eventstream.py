"""The framing of AWS event streams, in which Bedrock streams its answers.

A message is a prelude (total length, headers length, CRC-32 of both), headers, a payload and the CRC-32 of all of it.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

__all__ = ["chunk", "exception", "frame"]

_STRING = 7


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message with string headers."""
    block = b""
    for name, value in headers.items():
        raw_name, raw_value = name.encode(), value.encode()
        block += struct.pack("!B", len(raw_name)) + raw_name + struct.pack("!BH", _STRING, len(raw_value)) + raw_value
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + block + payload
    return message + struct.pack("!I", zlib.crc32(message))


def chunk(event: bytes) -> bytes:
    """One event of the Messages API (its JSON) as Bedrock frames it."""
    payload = json.dumps({"bytes": base64.b64encode(event).decode()}, separators=(",", ":")).encode()
    return frame({":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(type: str, message: str) -> bytes:
    """An exception in mid-stream, such as ``throttlingException``."""
    body: dict[str, Any] = {"message": message}
    return frame(
        {":exception-type": type, ":content-type": "application/json", ":message-type": "exception"},
        json.dumps(body, separators=(",", ":")).encode(),
    )
