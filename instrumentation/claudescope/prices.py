"""What a call costs: list prices by model, as data with a date.

The table is ``prices.json``, or a file of the same form that the setting ``prices`` names: ``date``, ``source``,
``currency`` (USD), ``per`` (million tokens) and ``models``, each with ``match``, ``input``, ``output``,
``cache_write_5m``, ``cache_write_1h``, ``cache_read`` and, where long prompts cost another price, ``long_prompt``: the
five prices again and ``above``, the input tokens over which they hold for the whole call.

A model that the table does not name has no price; nothing is guessed from its relatives. Results of a message batch
cost half, but their tokens reach no span: the read of the results is one call, without usage.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from .errors import UsageError

__all__ = ["Model", "Price", "Prices"]

_OWN: Final = Path(__file__).with_name("prices.json")
_MILLION: Final = 1_000_000
_MAX_KNOWN: Final = 1000
"""Spellings of models whose price is remembered; senders choose them."""
# Gateways and Vertex put a path before the name, Bedrock a region and the maker; behind it stand Bedrock's version, the
# wide context window, a release's "v2", and the day of the release.
_BEFORE: Final = re.compile(r"^(?:.*/)?(?:(?:[a-z0-9-]+\.)?anthropic\.)?")
_BEHIND: Final = re.compile(r"(?:-v\d+(?::\d+)?(?::\d+k)?|\[1m\])$")
_RELEASE: Final = re.compile(r"(?:-v\d+)?(?:-(?:\d{8}|latest|default))?$")


class Price(NamedTuple):
    """USD a million tokens of one model."""

    input: float
    output: float
    cache_write_5m: float
    cache_write_1h: float
    cache_read: float


class Model(NamedTuple):
    """The prices of one model; ``long`` holds for calls of more than ``above`` input tokens."""

    price: Price
    long: Price | None = None
    above: int = 0


class Prices:
    """A price table. ``date`` (YYYY-MM-DD) is the day it is of, ``source`` where it comes from."""

    def __init__(self, date: str, source: str, models: dict[str, Model]) -> None:
        self.date = date
        self.source = source
        self._models = {_spelled(name): model for name, model in models.items()}
        self._known: dict[str, Model | None] = {}

    @classmethod
    def load(cls, path: Path | None = None) -> Prices:
        """Reads ``path``, or our own table for None. Raises UsageError that names the line or the key."""
        file = path or _OWN
        try:
            table = json.loads(file.read_text("utf-8"))
        except json.JSONDecodeError as error:
            raise UsageError(
                f"{file} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}.", "Correct the file."
            ) from None
        except (OSError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"The prices in {file} cannot be read: {error}.", "Correct the setting prices.") from None
        try:
            return _read(table)
        except ValueError as error:
            raise UsageError(f"{file}: {error}.", "The form is that of claudescope/prices.json.") from None

    def cost(
        self,
        model: str | None,
        input_tokens: int,
        cache_read: int,
        cache_write: int,
        output_tokens: int,
        cache_write_1h: int = 0,
    ) -> float | None:
        """USD of one call; None for a model without a price. Input includes what was read from and written to the
        cache; writes count as those for 5 minutes but for ``cache_write_1h`` of them.
        """
        found = self._find(model) if model else None
        if found is None:
            return None
        price = found.long if found.long is not None and input_tokens > found.above else found.price
        hour = min(cache_write_1h, cache_write)
        return (
            max(0, input_tokens - cache_read - cache_write) * price.input
            + cache_read * price.cache_read
            + (cache_write - hour) * price.cache_write_5m
            + hour * price.cache_write_1h
            + output_tokens * price.output
        ) / _MILLION

    def _find(self, model: str) -> Model | None:
        try:
            return self._known[model]
        except KeyError:
            pass
        name = _spelled(model)
        version = _BEHIND.sub("", name)
        found = self._models.get(name) or self._models.get(version) or self._models.get(_RELEASE.sub("", version))
        if len(self._known) < _MAX_KNOWN:
            self._known[model] = found
        return found


def _spelled(model: str) -> str:
    return _BEFORE.sub("", model.strip().lower()).replace(".", "-").replace("@", "-")


def _read(table: Any) -> Prices:
    if not isinstance(table, dict):
        raise ValueError("it is not an object")
    date = table.get("date")
    if not isinstance(date, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise ValueError(f"date is {date!r}; it takes a day such as 2026-11-10")
    for key, only in (("currency", "USD"), ("per", "million tokens")):
        if table.get(key) != only:
            raise ValueError(f"{key} is {table.get(key)!r}; it takes {only!r}")
    rows = table.get("models")
    if not isinstance(rows, list) or not rows:
        raise ValueError("models is not a list with at least one model")
    models: dict[str, Model] = {}
    for number, row in enumerate(rows):
        place = f"models[{number}]"
        if not isinstance(row, dict):
            raise ValueError(f"{place} is not an object")
        name = row.get("match")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{place}.match is {name!r}; it takes the name of a model")
        if name in models:
            raise ValueError(f"{place}.match is {name!r}, which an earlier model has")
        models[name] = _model(row, place)
    return Prices(date, str(table.get("source", "")), models)


def _model(row: dict[str, Any], place: str) -> Model:
    price = _price(row, place)
    long = row.get("long_prompt")
    if long is None:
        return Model(price)
    if not isinstance(long, dict):
        raise ValueError(f"{place}.long_prompt is not an object")
    return Model(price, _price(long, f"{place}.long_prompt"), int(_number(long, "above", f"{place}.long_prompt")))


def _price(row: dict[str, Any], place: str) -> Price:
    return Price(*(_number(row, field, place) for field in Price._fields))


def _number(row: dict[str, Any], key: str, place: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{place}.{key} is {value!r}; it takes a number of at least 0")
    return float(value)
