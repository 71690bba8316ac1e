"""Files of JSON documents: one a line, or the whole file one; and what kind of content a document is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import orjson

from ..live.receiver.otlp_json import parse

__all__ = ["Document", "Kind", "kind_of", "read_documents"]

MAX_DOCUMENT: Final = 64 * 2**20
"""Bytes of a line, and of a file that is one document."""

Kind = Literal["spans", "logs", "metrics", "records", "unknown"]
_KINDS: Final[tuple[tuple[frozenset[str], Kind], ...]] = (
    (frozenset({"resourceSpans"}), "spans"),
    (frozenset({"resource_spans"}), "spans"),
    (frozenset({"resourceLogs"}), "logs"),
    (frozenset({"resource_logs"}), "logs"),
    (frozenset({"resourceMetrics"}), "metrics"),
    (frozenset({"resource_metrics"}), "metrics"),
    (frozenset({"run_id", "step_index", "trace_id", "span_id"}), "records"),
)
"""Names that tell a document's kind: it has all of them."""


class Document(NamedTuple):
    """One line's content: ``data`` is None for one that is not JSON, and ``problem`` says why."""

    line: int
    size: int
    data: Any
    problem: str = ""


def kind_of(data: Any) -> Kind:
    """What a document is, by the names in it."""
    if isinstance(data, dict):
        for names, kind in _KINDS:
            if names <= data.keys():
                return kind
    return "unknown"


def read_documents(file: BinaryIO) -> Iterator[Document]:
    """The documents of a file, a line in memory at a time; lines of blanks are none.

    A first line that is not JSON by itself may begin a document of many lines: then the file is read as one.
    """
    head = file.readline(MAX_DOCUMENT + 1)
    if _document(head, 1).problem:
        head += file.read(max(0, MAX_DOCUMENT - len(head))) + file.readline(MAX_DOCUMENT + 1)
        if not (whole := _document(head, 1)).problem:
            yield whole
            return
    number = 0
    for part in (io.BytesIO(head), file):
        while line := _line(part):
            number += 1
            if line.strip():
                yield _document(line, number)


def _line(file: BinaryIO) -> bytes:
    """The next line, of which no more is kept than shows that it is too long."""
    line = part = file.readline(MAX_DOCUMENT + 1)
    while len(part) > MAX_DOCUMENT and not part.endswith(b"\n"):
        part = file.readline(MAX_DOCUMENT + 1)
    return line


def _document(text: bytes, line: int) -> Document:
    if len(text) > MAX_DOCUMENT:
        return Document(line, len(text), None, f"is longer than {MAX_DOCUMENT // 2**20} MiB")
    try:
        return Document(line, len(text), parse(text))
    except orjson.JSONDecodeError as error:
        return Document(line, len(text), None, f"is not JSON: {error}")
