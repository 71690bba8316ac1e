"""YAML with the line of every key and value. What a scalar is, only its reader knows: nothing is guessed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

__all__ = [
    "MOST_BYTES",
    "Document",
    "DocumentError",
    "Entry",
    "Location",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "read_documents",
]

MOST_BYTES: Final = 4_000_000
_MOST_NODES: Final = 200_000
"""Counted with every alias spelled out, so that a few lines of anchors cannot fill the memory."""
_MOST_DEPTH: Final = 40
_DEEP: Final = (f"There are over {_MOST_DEPTH} levels.", "No specification has more than ten.")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STANDARD: Final = "tag:yaml.org,2002:"
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Location = tuple[str | int, ...]
"""Keys and positions from the document's top down to a value."""


class DocumentError(Exception):
    """The text is no YAML that can be read on. ``line`` is from 1."""

    def __init__(self, line: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.line, self.what, self.fix = line, what, fix


@dataclass(slots=True)
class Scalar:
    """Text as it is written; ``plain`` without quotes, so that it may be a number or a truth value."""

    text: str
    plain: bool
    line: int
    size: int = 1

    @property
    def empty(self) -> bool:
        """Whether YAML reads it as no value."""
        return self.plain and self.text in _NULLS

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class Entry:
    """A key's line and its value."""

    line: int
    value: Node


@dataclass(slots=True)
class Mapping:
    """Keys in the order in which they are written."""

    line: int
    entries: dict[str, Entry] = field(default_factory=dict)
    size: int = 1
    key: Scalar | None = None
    """While it is read: the key whose value comes next."""
    merged: list[Mapping] = field(default_factory=list)


@dataclass(slots=True)
class Sequence:
    """Values one after the other."""

    line: int
    items: list[Node] = field(default_factory=list)
    size: int = 1


Node = Scalar | Mapping | Sequence


@dataclass(slots=True)
class Document:
    """One document of a file."""

    root: Node
    repeated: list[tuple[int, str, int]] = field(default_factory=list)
    """Line, key and line of the first one, for keys that are written twice; the first one counts."""

    def line(self, location: Location) -> int:
        """Of a value, or of its key where it is a mapping or a list; of the nearest thing around what is not there."""
        node, line = self.root, self.root.line
        for part in location:
            if isinstance(node, Mapping) and part in node.entries:
                entry = node.entries[str(part)]
                node, line = entry.value, entry.line
                if isinstance(node, Scalar):
                    line = node.line
            elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
                line = node.line
            else:
                break
        return line

    def key_line(self, location: Location) -> int:
        """Of the key at a location."""
        node = self.find(location[:-1])
        if isinstance(node, Mapping) and location[-1] in node.entries:
            return node.entries[str(location[-1])].line
        return self.line(location)

    def find(self, location: Location) -> Node | None:
        """What is there, if anything."""
        node: Node | None = self.root
        for part in location:
            if isinstance(node, Mapping) and part in node.entries:
                node = node.entries[str(part)].value
            elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
            else:
                return None
        return node


def read_documents(data: bytes) -> Iterator[Document]:
    """The documents of a file, empty ones left out. Raises DocumentError at the first place that is not YAML."""
    text = _decoded(data)
    try:
        yield from _Composer().documents(text)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text) from None


def _decoded(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise DocumentError(1, f"The file has over {MOST_BYTES:,} bytes.", "Split it.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(line, "The file is not UTF-8.", "Save it as UTF-8.") from None
    if match := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise DocumentError(line, f"There is a control character, U+{ord(match.group()):04X}.", "Delete it.")
    return text


class _Composer:
    """Events of PyYAML's parser to documents, without recursion: depth is a number here and not a stack overflow."""

    def __init__(self) -> None:
        self.stack: list[Mapping | Sequence] = []
        self.open: list[tuple[str, int]] = []
        self.anchors: dict[str, Node] = {}
        self.repeated: list[tuple[int, str, int]] = []

    def documents(self, text: str) -> Iterator[Document]:
        root: Node | None = None
        for event in yaml.parse(text, Loader=_LOADER):
            line = event.start_mark.line + 1 if event.start_mark else 1
            done: Node | None = None
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors, self.repeated, root = {}, [], None
            elif isinstance(event, yaml.DocumentEndEvent):
                if root is not None and not (isinstance(root, Scalar) and root.empty):
                    yield Document(root, self.repeated)
            elif isinstance(event, yaml.AliasEvent):
                done = self._alias(str(event.anchor), line)
            elif isinstance(event, yaml.ScalarEvent):
                done = self._scalar(event, line)
                if event.anchor:
                    self.anchors[event.anchor] = done
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                done = self._end()
            if done is not None:
                if self.stack:
                    self._add(done)
                else:
                    root = done

    def _alias(self, name: str, line: int) -> Node:
        if name in self.anchors:
            return self.anchors[name]
        if any(name == anchor for anchor, _ in self.open):
            raise DocumentError(line, f"*{name} is inside of what it stands for.", "Write the value itself.")
        raise DocumentError(line, f"*{name} stands for nothing.", f"Mark what it should be with &{name} above it.")

    def _scalar(self, event: Any, line: int) -> Scalar:
        tag = event.tag or ""
        if tag not in ("", "!") and tag.removeprefix(_STANDARD) not in ("str", "int", "float", "bool", "null"):
            raise DocumentError(line, f"The tag {_short_tag(tag)} means nothing here.", "Remove it.")
        plain = event.style in (None, "") and tag not in ("!", f"{_STANDARD}str")
        return Scalar(event.value, plain, line)

    def _start(self, event: Any, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if isinstance(top, Mapping) and top.key is None:
            raise DocumentError(line, "A key is a list or a mapping.", "Put text with braces or brackets in quotes.")
        tag = event.tag or ""
        if tag not in ("", "!") and tag.removeprefix(_STANDARD) not in ("map", "seq"):
            raise DocumentError(line, f"The tag {_short_tag(tag)} means nothing here.", "Remove it.")
        if len(self.stack) >= _MOST_DEPTH:
            raise DocumentError(line, *_DEEP)
        self.open.append((event.anchor or "", line))
        self.stack.append(Mapping(line) if isinstance(event, yaml.MappingStartEvent) else Sequence(line))

    def _end(self) -> Node:
        node = self.stack.pop()
        anchor, _ = self.open.pop()
        if isinstance(node, Mapping):
            for other in node.merged:
                for name, entry in other.entries.items():
                    node.entries.setdefault(name, entry)
        if anchor:
            self.anchors[anchor] = node
        return node

    def _add(self, node: Node) -> None:
        top = self.stack[-1]
        if isinstance(top, Mapping) and top.key is None:
            if not isinstance(node, Scalar):
                raise DocumentError(top.line, "A key is a list or a mapping.", "Write text.")
            top.key = node
            return
        top.size += node.size
        if top.size > _MOST_NODES:
            what = f"There are over {_MOST_NODES:,} values, with aliases spelled out."
            raise DocumentError(top.line, what, "Split the file, or use fewer aliases.")
        if isinstance(top, Sequence):
            top.items.append(node)
            return
        key, top.key = top.key, None
        assert key is not None  # or the branch above was taken
        if key.plain and key.text == "<<":
            top.merged += self._mappings(node, key.line)
        elif key.text in top.entries:
            self.repeated.append((key.line, key.text, top.entries[key.text].line))
        else:
            top.entries[key.text] = Entry(key.line, node)

    def _mappings(self, node: Node, line: int) -> list[Mapping]:
        found = [node] if isinstance(node, Mapping) else node.items if isinstance(node, Sequence) else []
        mappings = [item for item in found if isinstance(item, Mapping)]
        if not mappings or len(mappings) != len(found):
            raise DocumentError(line, "<< takes mappings.", "Write `<<: *name`, where &name marks a mapping.")
        return mappings


def _short_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_STANDARD)}" if tag.startswith(_STANDARD) else tag


def _syntax(error: yaml.MarkedYAMLError, text: str) -> DocumentError:
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines() or [""]
    at = min(mark.line if mark is not None else 0, len(lines) - 1)
    said = " ".join(part for part in (error.problem, error.context) if part)
    written = lines[at]
    start = min(error.context_mark.line, at) if error.context_mark is not None else at
    what, fix = f"This is not YAML: {said}.", "Look at the indentation, the quotes and the colons here."
    if "\t" in written[: len(written) - len(written.lstrip())]:
        what, fix = "The line is indented with a tab.", "Indent with spaces."
    elif "escape c" in said:
        what = "In double quotes, what follows a backslash here is no escape that YAML has."
        fix = "Write two backslashes, or the character itself."
    elif "end of stream" in said or "quoted scalar" in said:
        at, what, fix = start, "A quotation mark is opened here and never closed.", "Close it."
    elif "nesting depth" in said:
        what, fix = _DEEP
    elif dashes := [line for line in (at, at - 1) if line >= 0 and re.match(r"\s*-[^\s-].*:", lines[line])]:
        at, what, fix = dashes[0], "A `-` has no space after it.", "Write `- name: value`."
    elif "could not find expected ':'" in said:
        at, what = start, "The line has no key, or no space after the colon."
        fix = "Write `key: value`."
    elif "mapping values are not allowed" in said:
        what, fix = (
            "There is a second colon, or the line is indented deeper than what it belongs to.",
            "Put text that has `: ` in it in quotes, and indent as the lines around.",
        )
    elif "cannot start any token" in said:
        what, fix = "A value begins with a character that YAML keeps for itself.", "Put the value in quotes."
    elif "flow node" in said:
        what, fix = (
            "A bracket or brace is opened, and its content does not end.",
            "Close it, or put the text in quotes.",
        )
    elif "expected ',' or" in said:
        at = start
        what, fix = "A bracket or brace is opened here and not closed.", "Close it, or put the text in quotes."
    elif "did not find expected key" in said or "'-' indicator" in said or "block mapping" in said:
        what, fix = (
            "The line is not indented as those that it belongs to.",
            "Indent the keys of one mapping, and the `-` of one list, equally.",
        )
    elif "incompatible YAML" in said or "directive" in said:
        what, fix = "The line is a YAML directive that is not known.", "Remove it."
    return DocumentError(at + 1, what, fix)
