"""The tiers: figures in buckets of growing length, each kept for its time.

A step is counted once in each tier, but in a coarse one only when the bucket is over: until a tier's frontier has
passed a bucket, its steps are in the finer tiers alone. So a step is written a few times in all, however long the
buckets.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

__all__ = [
    "AHEAD_MS",
    "BUCKET_MS",
    "KEPT_MS",
    "TIERS",
    "Frontiers",
    "Piece",
    "Tier",
    "advance",
    "coarser",
    "cover",
    "floor",
    "oldest",
    "view",
]

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


class Tier(NamedTuple):
    """Buckets of one length, and how long they are kept."""

    bucket_ms: int
    kept_ms: int


TIERS: Final = (
    Tier(10_000, _HOUR + 2 * _MINUTE),
    Tier(_MINUTE, 2 * _DAY + _HOUR),
    Tier(5 * _MINUTE, 35 * _DAY),
    Tier(_HOUR, 35 * _DAY),
    Tier(6 * _HOUR, 35 * _DAY),
)
BUCKET_MS: Final = TIERS[0].bucket_ms
KEPT_MS: Final = TIERS[-1].kept_ms
"""Steps that are older are in no tier."""
AHEAD_MS: Final = _DAY
"""Steps that a sender's clock puts further ahead are in no tier."""
_GRACE_MS: Final = _MINUTE
"""How long a bucket is left open for late steps before it goes into the coarser tier; later ones go there directly."""

Frontiers = dict[int, int]
"""By bucket length: from this time in ms on, steps are in the finer tiers only. None for the finest."""


class Piece(NamedTuple):
    """Buckets of one tier, from inclusive to exclusive."""

    bucket_ms: int
    from_ms: int
    to_ms: int


def floor(ms: int, bucket_ms: int) -> int:
    """The beginning of the bucket that holds a time."""
    return ms - ms % bucket_ms


def advance(frontiers: Frontiers, now_ms: int) -> Frontiers:
    """Where the frontiers may go now; they never go back."""
    found: Frontiers = {}
    reached = now_ms - _GRACE_MS
    for tier in TIERS[1:]:
        reached = max(floor(reached, tier.bucket_ms), frontiers.get(tier.bucket_ms, 0))
        found[tier.bucket_ms] = reached
    return found


def oldest(frontiers: Frontiers, now_ms: int) -> Frontiers:
    """By bucket length: where the rows that are of use begin. Those that the next coarser tier does not have yet are,
    however old: after an hour without steps the last minute is in the finest tier alone.
    """
    found: Frontiers = {}
    for tier, above in pairwise(TIERS):
        begin = min(now_ms - tier.kept_ms, frontiers.get(above.bucket_ms, now_ms))
        found[tier.bucket_ms] = max(begin, now_ms - KEPT_MS)
    return {**found, TIERS[-1].bucket_ms: now_ms - KEPT_MS}


def view(bucket_ms: int, from_ms: int, to_ms: int, frontiers: Frontiers) -> list[Piece]:
    """Where the steps of whole buckets of a tier are: its own rows, and the finer ones beyond its frontier."""
    place = next(number for number, tier in enumerate(TIERS) if tier.bucket_ms == bucket_ms)
    pieces: list[Piece] = []
    for tier in reversed(TIERS[: place + 1]):
        end = max(from_ms, min(to_ms, frontiers.get(tier.bucket_ms, to_ms)))
        if end > from_ms:
            pieces.append(Piece(tier.bucket_ms, from_ms, end))
            from_ms = end
    return pieces


def coarser(bucket_ms: int, from_ms: int, now_ms: int) -> tuple[int, int]:
    """The tier and the bucket (a multiple of the tier's) for columns of at least ``bucket_ms`` since ``from_ms``."""
    kept = [tier.bucket_ms for tier in TIERS if from_ms >= now_ms - tier.kept_ms] or [TIERS[-1].bucket_ms]
    for length in reversed(kept):
        if bucket_ms % length == 0:
            return length, bucket_ms
    length = kept[0]
    return length, -(-bucket_ms // length) * length


def cover(from_ms: int, to_ms: int, frontiers: Frontiers, now_ms: int) -> list[Piece]:
    """Few pieces that hold the steps of a span of time, as exactly at its ends as the tiers still are.

    The pieces do not overlap; the first begins at or before ``from_ms``, the last ends at or after ``to_ms``.
    """
    return _cover(from_ms, to_ms, len(TIERS) - 1, frontiers, now_ms)


def _cover(from_ms: int, to_ms: int, place: int, frontiers: Frontiers, now_ms: int) -> list[Piece]:
    if from_ms >= to_ms:
        return []
    bucket_ms = TIERS[place].bucket_ms
    if not place:
        return [Piece(bucket_ms, floor(from_ms, bucket_ms), floor(to_ms + bucket_ms - 1, bucket_ms))]
    end = min(to_ms, max(from_ms, frontiers.get(bucket_ms, 0)))
    finer = TIERS[place - 1]
    low = floor(from_ms + bucket_ms - 1, bucket_ms)
    if low > from_ms and from_ms < now_ms - finer.kept_ms:
        low -= bucket_ms  # nothing finer is left of that time
    high = floor(end, bucket_ms)
    if high < end and high < now_ms - finer.kept_ms:
        high += bucket_ms
    if low >= high:
        return _cover(from_ms, to_ms, place - 1, frontiers, now_ms)
    return [
        *_cover(from_ms, low, place - 1, frontiers, now_ms),
        Piece(bucket_ms, low, high),
        *_cover(high, to_ms, place - 1, frontiers, now_ms),
    ]
