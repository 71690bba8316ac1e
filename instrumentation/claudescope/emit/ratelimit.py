"""How much of the API's rate limit is used, by the headers of a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.util.types import AttributeValue

from .. import semconv

__all__ = ["limit_used"]

_LIMITS: Final = [
    (kind, f"{semconv.RATELIMIT_PREFIX}{kind}.limit", f"{semconv.RATELIMIT_PREFIX}{kind}.remaining")
    for kind in semconv.RATELIMIT_KINDS
]


def limit_used(headers: Mapping[str, AttributeValue]) -> tuple[str, float] | None:
    """Of the limits the one of which most is used, and its share from 0 to 1; None where the headers tell of none.

    ``headers`` are spelled as the attributes that they become (``semconv.RATELIMIT``).
    """
    found: tuple[str, float] | None = None
    for kind, of, rest in _LIMITS:
        limit, remaining = headers.get(of), headers.get(rest)
        if isinstance(limit, int) and isinstance(remaining, int) and limit > 0:
            # One division: 900 of 1,000 is the very float of the bucket boundary .9. The API rounds what remains.
            used = max(0, limit - remaining) / limit
            if found is None or used > found[1]:
                found = kind, used
    return found
