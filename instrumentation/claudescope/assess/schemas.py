"""JSON schemas out of requests, compiled once and kept by a hash of their content.

Nothing is fetched: a reference to somewhere else makes a schema one that cannot decide. So does a regular expression
that may take exponential time, since it stops every thread of the app while it runs.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry

from .schema_form import well_formed

__all__ = ["LONGEST_MATCHED", "Schemas", "Undecided", "Violation"]

Violation = tuple[str | int, ...]
"""Path to the value that breaks the schema: names and positions from the outside in."""

LONGEST_MATCHED: Final = 256
"""Where a schema has regular expressions, strings above this many characters leave it undecided."""
_SLOW_PATTERN: Final = re.compile(r"\)(?:[*+]|\{(?![1-4]\}))|\\[1-9]|\(\?P=")
"""A repeated group or a back reference: what it takes for exponential time, and for more than that."""


class Undecided(Exception):  # noqa: N818 - not an error: the check has nothing to say
    """The schema is broken, refers to somewhere else, or asks for more work than a check may cost."""


class _Compiled(NamedTuple):
    validator: Any
    matches: bool
    """Whether it holds regular expressions."""


class Schemas:
    """The schemas seen last, compiled; at most ``capacity``. For one thread."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._compiled: OrderedDict[bytes, _Compiled | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._compiled)

    def violation(self, schema: object, instance: object) -> Violation | None:
        """Where ``instance`` breaks the schema first, or None when it conforms. Raises Undecided."""
        key = self._key(schema)
        compiled = self._compile(key, schema)
        if compiled is None:
            raise Undecided("not a usable schema")
        if compiled.matches and any(len(string) > LONGEST_MATCHED for string in _strings(instance)):
            raise Undecided("too long for a regular expression")
        try:
            error = next(compiled.validator.iter_errors(instance), None)
        except Exception as problem:  # noqa: BLE001 - unresolvable or endless references, another dialect's expressions
            self._compiled[key] = None
            raise Undecided(type(problem).__name__) from None
        return None if error is None else tuple(error.absolute_path)

    @staticmethod
    def _key(schema: object) -> bytes:
        try:
            return sha256(orjson.dumps(schema)).digest()
        except orjson.JSONEncodeError as problem:  # too deep, or integers beyond 64 bits
            raise Undecided(str(problem)) from None

    def _compile(self, key: bytes, schema: object) -> _Compiled | None:
        if key in self._compiled:
            self._compiled.move_to_end(key)
            return self._compiled[key]
        compiled = self._compiled[key] = _usable(schema)
        if len(self._compiled) > self._capacity:
            self._compiled.popitem(last=False)
        return compiled


def _usable(schema: Any) -> _Compiled | None:
    patterns = well_formed(schema)
    if patterns is None or any(_SLOW_PATTERN.search(pattern) for pattern in patterns):
        return None
    dialect: Any = validator_for(schema, default=Draft202012Validator)
    # The empty registry keeps references from being fetched over the network.
    return _Compiled(dialect(schema, registry=Registry()), bool(patterns))


def _strings(instance: object) -> Iterator[str]:
    """Every string of a JSON value, names too."""
    for node in _nodes(instance):
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            yield from node


def _nodes(value: object) -> Iterator[object]:
    rest = [value]
    while rest:
        node = rest.pop()
        yield node
        if isinstance(node, dict):
            rest.extend(node.values())
        elif isinstance(node, list):
            rest.extend(node)
