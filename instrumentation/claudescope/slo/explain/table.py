"""Cells from a CSV file: a row is the events of one point of time with one set of labels."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ...errors import UsageError
from .cells import Cells, Sample

__all__ = ["Columns", "Table", "read_table"]

_LONGEST: Final = 1 << 20
"""Characters of one field, at most: more is an open quotation mark."""
_TELL: Final = 50_000


class Columns(NamedTuple):
    """Names of the columns that are no dimension."""

    time: str
    bad: str
    total: str


class Table(NamedTuple):
    """A file's samples by their point of time."""

    path: Path
    dimensions: tuple[str, ...]
    points: dict[str, list[Sample]]
    """By the time as the file has it, in the order of time: of numbers where all are numbers, else of text."""

    def cells(self, at: str, baseline: int | None = None) -> Cells:
        """The cells at a point of time against the ``baseline`` points before it, by default all.

        Raises UsageError for a point that is not there, with the range.
        """
        times = list(self.points)
        now = _find(times, at)
        if now is None:
            raise UsageError(
                f"{self.path}: there is no time {at!r}.",
                f"Its {len(times)} times go from {times[0]} to {times[-1]}; name one of them with --at.",
            )
        before = times[: times.index(now)]
        if baseline is not None:
            before = before[max(0, len(before) - baseline) :]
        return Cells.collect(self.dimensions, self.points[now], [self.points[time] for time in before])


def read_table(path: Path, columns: Columns, tell: Callable[[str], None] = lambda text: None) -> Table:
    """Reads a whole file; ``tell`` hears now and then how far it is.

    Counts may have decimals, as those that come from rates do. Rows of the same time and labels add up. Raises
    UsageError with the line for whatever cannot be read.
    """
    points: dict[str, list[Sample]] = {}
    before = csv.field_size_limit(_LONGEST)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            places = _places(path, header, columns)
            dimensions = tuple(name for name in header if name not in columns)
            for time, sample in _rows(path, reader, header, places):
                points.setdefault(time, []).append(sample)
                if reader.line_num % _TELL == 0:
                    tell(f"{path}: {reader.line_num:,} lines read")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.", "Name a CSV file that can be read.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}.", "Save it as UTF-8.") from None
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: {error}.", "Quote fields as RFC 4180 says.") from None
    finally:
        csv.field_size_limit(before)
    if not points:
        raise UsageError(f"{path}: there is no row under the header.", "Give it one row a time and set of labels.")
    ordered = {time: points[time] for time in _sorted(points)}
    _check_sums(path, ordered, columns)
    return Table(path, dimensions, ordered)


def _places(path: Path, header: Sequence[str], columns: Columns) -> tuple[int, int, int]:
    """Where the three columns are."""
    if not header:
        raise UsageError(f"{path}: it is empty.", "Its first line names the columns.")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise UsageError(f"{path}:1: the column {twice[0]!r} is there twice.", "Name each once.")
    if len(set(columns)) < len(columns):
        raise UsageError("--time, --bad and --total name the same column.", "Name three.")
    for flag, name in columns._asdict().items():
        if name not in header:
            hint = " Fields are separated by commas." if len(header) == 1 else ""
            raise UsageError(
                f"{path}:1: there is no column {name!r}.", f"--{flag} takes one of: {', '.join(header)}.{hint}"
            )
    if len(header) == len(columns):
        raise UsageError(f"{path}:1: there is no column besides those three.", "Each further column is a dimension.")
    return header.index(columns.time), header.index(columns.bad), header.index(columns.total)


def _rows(
    path: Path, reader: Iterator[list[str]], header: Sequence[str], places: tuple[int, int, int]
) -> Iterator[tuple[str, Sample]]:
    time, bad, total = places
    labels = [(at, name) for at, name in enumerate(header) if at not in places]
    for row in reader:
        if not row:
            continue
        line = f"{path}:{reader.line_num}"  # type: ignore[attr-defined]
        if len(row) != len(header):
            raise UsageError(
                f"{line}: {len(row)} fields, and the header has {len(header)}.", "Give each row a field a column."
            )
        if not row[time].strip():
            raise UsageError(f"{line}: no time in column {header[time]!r}.", "Give each row one.")
        yield (
            row[time].strip(),
            Sample(
                {name: row[at] for at, name in labels},
                _count(row[bad], line, header[bad]),
                _count(row[total], line, header[total]),
            ),
        )


def _count(text: str, line: str, column: str) -> float:
    number = _number(text)
    if number is None or number < 0:
        shown = text if len(text) <= 40 else f"{text[:39]}…"
        raise UsageError(f"{line}: column {column!r} is {shown!r}.", "A count is a number from 0 up.")
    return number


def _number(text: str) -> float | None:
    """A finite decimal number; None for anything else, among it what only Python takes for one (``1_000``)."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _find(times: Sequence[str], at: str) -> str | None:
    """The time that is written so, or else is the same number."""
    wanted = at.strip()
    if wanted in times:
        return wanted
    number = _number(wanted)
    return next((time for time in times if number is not None and _number(time) == number), None)


def _sorted(times: dict[str, list[Sample]]) -> list[str]:
    """In order, and those that are the same number together (``60`` and ``60.0``)."""
    numbers = {time: _number(time) for time in times}
    if any(number is None for number in numbers.values()):
        return sorted(times)
    first: dict[float, str] = {}
    for time, number in sorted(numbers.items(), key=lambda item: item[1] or 0.0):
        kept = first.setdefault(number or 0.0, time)
        if kept != time:
            times[kept].extend(times[time])
    return list(first.values())


def _check_sums(path: Path, points: dict[str, list[Sample]], columns: Columns) -> None:
    bad = sum(sample.bad for samples in points.values() for sample in samples)
    total = sum(sample.total for samples in points.values() for sample in samples)
    if bad > total:
        raise UsageError(
            f"{path}: column {columns.bad!r} adds up to {bad:g} and column {columns.total!r} to only {total:g}.",
            "Bad events are among all events: are --bad and --total the wrong way round?",
        )
