"""The sparse joint histogram of the steps of one span of time, open (a dict) and packed (bytes).

Merging adds integers, so the order of merges changes nothing; a sum stays at its limit once it is there.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["CONFIDENCE_UNIT", "SERIES_BITS", "Columns", "Histogram", "merge", "pack", "unpack"]

Histogram = dict[int, list[int]]
"""By key (see ``bands``) and series, ``key << SERIES_BITS | series``: how many steps, the sum of their confidences in
``CONFIDENCE_UNIT``, the sum of their latencies in us.
"""
SERIES_BITS: Final = 32
CONFIDENCE_UNIT: Final = 1e-6

_FORMAT: Final = 1
_TYPES: Final = "BHIQ"
_SERIES: Final = (1 << SERIES_BITS) - 1
_COLUMNS: Final = 5
_LIMIT: Final = 2**63 - 1


class Columns(NamedTuple):
    """A packed histogram's columns, which belong together row by row; ordered by key, then series."""

    keys: array[int]
    series: array[int]
    counts: array[int]
    confidences: array[int]
    latencies: array[int]


def pack(histogram: Histogram) -> bytes:
    """Columns of unsigned integers, each as narrow as its largest; little end first."""
    keys = sorted(histogram)
    rows = [histogram[key] for key in keys]
    columns = [
        _column([key >> SERIES_BITS for key in keys]),
        _column([key & _SERIES for key in keys]),
        *(_column([row[place] for row in rows]) for place in range(3)),
    ]
    head = bytes((_FORMAT, *(_TYPES.index(column.typecode) for column in columns)))
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    return b"".join((head, *(column.tobytes() for column in columns)))


def _column(values: list[int]) -> array[int]:
    highest = max(values, default=0)
    for code, bits in zip(_TYPES, (8, 16, 32), strict=False):
        if highest >> bits == 0:
            return array(code, values)
    return array("Q", values if highest <= _LIMIT else [min(value, _LIMIT) for value in values])


def unpack(data: bytes) -> Columns:
    """The columns of ``pack``. Raises ValueError for bytes of another format."""
    columns = [array(_TYPES[code]) for code in data[1 : 1 + _COLUMNS]] if data[:1] == bytes((_FORMAT,)) else []
    width = sum(column.itemsize for column in columns)
    if len(columns) != _COLUMNS or (len(data) - 1 - _COLUMNS) % width:
        raise ValueError("not a packed histogram")
    rows = (len(data) - 1 - _COLUMNS) // width
    at = 1 + _COLUMNS
    view = memoryview(data)
    for column in columns:
        end = at + rows * column.itemsize
        column.frombytes(view[at:end])
        at = end
        if sys.byteorder == "big":
            column.byteswap()
    return Columns(*columns)


def merge(parts: Iterable[bytes]) -> bytes:
    """The sum of packed histograms."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    merged: Histogram = {}
    get = merged.get
    for part in parts:
        for key, series, *row in zip(*unpack(part), strict=True):
            key = key << SERIES_BITS | series
            known = get(key)
            if known is None:
                merged[key] = row
            else:
                known[0] += row[0]
                known[1] += row[1]
                known[2] += row[2]
    return pack(merged)
