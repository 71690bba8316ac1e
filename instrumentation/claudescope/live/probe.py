"""Who answers at an address: asked with the standard library only, so that a command starts at once."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

__all__ = ["probe"]

_MAX_ANSWER = 65_536


def probe(url: str, timeout: float = 1.0, path: str = "/healthz", token: str = "") -> dict[str, Any] | None:
    """What ``GET path`` at ``url`` answers. ``timeout`` in seconds, for each of connecting and reading.

    None when nothing answers; the JSON object when one comes (``{"service": "claudescope", ...}`` from a claudescope
    server); an empty dict when something else answers. Raises nothing.
    """
    connection: http.client.HTTPConnection | None = None
    try:
        parts = urlsplit(url)
        make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = make(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
        connection.connect()
    except (OSError, ValueError):
        return None
    try:
        headers = {"Accept": "application/json", "Connection": "close"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request("GET", path, headers=headers)
        answer = json.loads(connection.getresponse().read(_MAX_ANSWER))
        return answer if isinstance(answer, dict) else {}
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return {}  # it took the connection, so somebody is there
    finally:
        connection.close()
