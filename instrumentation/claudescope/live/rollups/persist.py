"""The roll-ups' tables: what the writer adds to them, in the transaction that says how far they count.

Rows of one bucket are parts that add up, so that late steps cost an insert and not the reading of the bucket; many
parts become one.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import orjson

from .histogram import merge
from .pending import Flush, Pending
from .tiers import TIERS, Frontiers, advance, floor, oldest

__all__ = ["State", "expire", "load", "recount", "write"]

_MAX_PARTS: Final = 8
_MAX_BYTES: Final = 2**20
"""Of a part that others are joined with: an open histogram takes twenty times the memory of a packed one."""
_FRONTIERS: Final = "rollup_frontiers"
_TOTALS: Final = "rollup_totals"
_WATERMARK: Final = "rollup_watermark"


class State(NamedTuple):
    """How far the tables count: the last row among the steps, all steps ever by verdict, and the tiers' frontiers."""

    watermark: int
    verdicts: tuple[int, int, int]
    frontiers: Frontiers


def load(db: sqlite3.Connection) -> State:
    """The state as it is; that of a store without roll-ups is empty."""
    keys = (_WATERMARK, _TOTALS, _FRONTIERS)
    found = dict(map(tuple, db.execute("SELECT key, value FROM meta WHERE key IN (?, ?, ?)", keys)))
    verdicts = orjson.loads(found.get(_TOTALS) or b"[0,0,0]")
    frontiers = orjson.loads(found.get(_FRONTIERS) or b"{}")
    return State(
        int(found.get(_WATERMARK) or 0),
        (verdicts[0], verdicts[1], verdicts[2]),
        {int(length): int(reached) for length, reached in frontiers.items()},
    )


def write(db: sqlite3.Connection, flush: Flush, now_ms: int | None = None) -> None:
    """Adds what is counted anew to all tiers, inside the caller's transaction."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    state = load(db)
    if flush.watermark <= state.watermark and flush.watermark:
        return  # it is counted: its first try was committed, whatever was told
    frontiers = advance(state.frontiers, now_ms)
    if frontiers != state.frontiers:
        _roll_up(db, state.frontiers, frontiers)
        expire(db, frontiers, now_ms)
    for tier in TIERS:
        frontier = frontiers.get(tier.bucket_ms)
        _add(
            db,
            tier.bucket_ms,
            (
                (start, cell)
                for start, cell in flush.cells.items()
                if start >= now_ms - tier.kept_ms and (frontier is None or start < frontier)
            ),
        )
    totals = [had + more for had, more in zip(state.verdicts, flush.verdicts, strict=True)]
    watermark = max(flush.watermark, state.watermark)
    named = {str(length): reached for length, reached in frontiers.items()}
    db.executemany(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)",
        [
            (_WATERMARK, watermark),
            (_TOTALS, orjson.dumps(totals).decode()),
            (_FRONTIERS, orjson.dumps(named).decode()),
        ],
    )


def expire(db: sqlite3.Connection, frontiers: Frontiers, now_ms: int) -> None:
    """Deletes buckets that are over their tier's time and that the next coarser tier has."""
    for bucket_ms, begin in oldest(frontiers, now_ms).items():
        db.execute("DELETE FROM rollups WHERE tier = ? AND bucket_ms < ?", (bucket_ms // 1000, begin))


def recount(db: sqlite3.Connection, after: int, up_to: int, limit: int, now_ms: int) -> Flush | None:
    """Counts stored steps whose rows are over ``after``, at most ``limit`` of them; None where there are none."""
    rows = db.execute(
        "SELECT steps.id, series.counted, step_index, ts_ms, latency_us, latency_source, confidence, is_valid"
        " FROM steps JOIN series ON series.id = steps.series WHERE steps.id > ? AND steps.id <= ? ORDER BY steps.id"
        " LIMIT ?",
        (after, up_to, limit),
    )
    pending = Pending()
    pending.add(
        (
            (
                {
                    "step_index": index,
                    "ts_ms": ts_ms,
                    "latency_us": latency_us,
                    "latency_source": source,
                    "confidence": confidence,
                    "is_valid": None if valid is None else bool(valid),
                },
                row,
                series,
            )
            for row, series, index, ts_ms, latency_us, source, confidence, valid in rows
        ),
        now_ms,
    )
    return pending.packed() if pending else None


def _roll_up(db: sqlite3.Connection, before: Frontiers, after: Frontiers) -> None:
    """Adds what is between two frontiers to each coarser tier, from the one that is finer by one."""
    for finer, tier in pairwise(TIERS):
        low, high = before.get(tier.bucket_ms), after[tier.bucket_ms]
        if low is None or low >= high:  # without a frontier there was nothing yet
            continue
        of_finer = "FROM rollups WHERE tier = ? AND bucket_ms >= ? AND bucket_ms < ?"
        name = finer.bucket_ms // 1000
        buckets = db.execute(f"SELECT DISTINCT bucket_ms {of_finer}", (name, low, high)).fetchall()
        for start in sorted({floor(bucket, tier.bucket_ms) for (bucket,) in buckets}):
            rows = db.execute(f"SELECT bucket_ms, data {of_finer}", (name, start, start + tier.bucket_ms)).fetchall()
            _add(db, tier.bucket_ms, rows)


def _add(db: sqlite3.Connection, bucket_ms: int, cells: Iterable[tuple[int, bytes]]) -> None:
    new: dict[int, list[bytes]] = {}
    for start, cell in cells:
        new.setdefault(floor(start, bucket_ms), []).append(cell)
    tier = bucket_ms // 1000
    of_bucket = "FROM rollups WHERE tier = ? AND bucket_ms = ?"
    for start, parts in sorted(new.items()):
        sizes = dict(map(tuple, db.execute(f"SELECT part, length(data) {of_bucket}", (tier, start))))
        number = max(sizes, default=-1) + 1
        small = [one for one, size in sizes.items() if size < _MAX_BYTES // 2]
        if len(small) >= _MAX_PARTS:
            for one in small:
                parts += db.execute(f"SELECT data {of_bucket} AND part = ?", (tier, start, one)).fetchone()
                db.execute(f"DELETE {of_bucket} AND part = ?", (tier, start, one))
        for part in _joined(parts):
            db.execute("INSERT INTO rollups VALUES (?, ?, ?, ?)", (tier, start, number, part))
            number += 1


def _joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same in fewer parts of about ``_MAX_BYTES`` each."""
    group: list[bytes] = []
    for part in parts:
        if group and sum(map(len, group)) + len(part) > _MAX_BYTES:
            yield merge(group)
            group = []
        group.append(part)
    yield merge(group)
