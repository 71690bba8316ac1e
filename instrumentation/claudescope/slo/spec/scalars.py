"""Types of single values: each reads the text as it is written, and says what to write instead."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from .document import Scalar

__all__ = ["Choice", "Flag", "Index", "LabelName", "Name", "Query", "Text", "Texts", "scalar_of", "wrong"]

_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LONGEST: Final = 200
"""Characters of anything but text and queries."""
_LONGEST_TEXT: Final = 20_000


def wrong(what: str, fix: str) -> PydanticCustomError:
    """The error of a value. ``what`` goes on after the name of the value: "is 100"."""
    return PydanticCustomError("spec", "{what}", {"what": what, "fix": fix})


def scalar_of(value: Any, example: str, most: int = _LONGEST) -> Scalar:
    """The scalar, where it is one and not empty; ``example`` is what to write instead."""
    if not isinstance(value, Scalar):
        kind = "a list" if isinstance(value, list) else "a mapping"
        quoted = " Text with braces or brackets needs quotes." if isinstance(value, dict) else ""
        raise wrong(f"is {kind}", f"Write one value: {example}.{quoted}")
    if value.empty:
        raise wrong("is empty", f"Write a value: {example}.")
    if len(value.text) > most:
        raise wrong(f"has {len(value.text)} characters", f"Write at most {most}.")
    return value


def _text(value: Any) -> str:
    """Any scalar, as it is written: `2`, `yes` and `2024-01-01` are text here."""
    if isinstance(value, Scalar) and value.empty:
        return ""
    return scalar_of(value, '"text"', _LONGEST_TEXT).text


def _name(value: Any) -> str:
    text = scalar_of(value, "step-validity").text
    if not _NAME.fullmatch(text):
        nearest = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-_.")
        raise wrong(
            f"is {text!r}",
            "A name has letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit"
            + (f": write {nearest}." if nearest else "."),
        )
    if len(text) > 128:
        raise wrong(f"has {len(text)} characters", "Write at most 128.")
    return text


def _label_name(value: Any) -> str:
    """Of a key, which comes as text, or of a value."""
    text = value if isinstance(value, str) else scalar_of(value, "service_name").text
    if not _LABEL.fullmatch(text) or text == "__name__":
        nearest = re.sub(r"[^a-zA-Z0-9_]", "_", text)
        nearest = f"_{nearest}" if nearest[:1].isdigit() else nearest
        raise wrong(
            f"{text!r} is no name of a label",
            "It has letters, digits and `_`, and begins with no digit"
            + (f": write {nearest}." if nearest and nearest != "__name__" else "."),
        )
    return text


def _flag(value: Any) -> bool:
    scalar = scalar_of(value, "true")
    word = scalar.text.lower()
    if scalar.plain and word in _TRUE | _FALSE:
        return word in _TRUE
    if word in _TRUE | _FALSE:
        raise wrong(f"is text, {scalar.text!r}", f"Write it without quotes: {'true' if word in _TRUE else 'false'}.")
    raise wrong(f"is {scalar.text!r}", "Write true or false.")


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise wrong("is an empty list", "Name a value, or remove the key to count all.")
    found = tuple(scalar_of(item, "a, or [a, b]").text for item in values)
    for text in found:
        if not text:
            raise wrong("has an empty text", "Name a value, or remove the key to count all.")
        if "*" in text and text != "*":
            raise wrong(f"is {text!r}, a pattern", "Write the values themselves, as a list: [a, b].")
    if len(set(found)) < len(found):
        raise wrong("names a value twice", "Write each once.")
    return found


def _indexes(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    for text in found:
        if match := re.fullmatch(r"([0-9]{1,2})\s*(?:-|\.\.)\s*([0-9]{1,2})", text):
            first, last = int(match[1]), min(int(match[2]), 15)
            raise wrong(f"is {text!r}", f"Write each number: {list(range(first, last + 1))}.")
        number = int(text) if re.fullmatch("0|[1-9][0-9]{0,8}", text) else None
        if number is not None and number > 15:
            raise wrong(f"is {text}", 'Steps from number 16 on are counted together: write "16+".')
        if text != "16+" and number is None:
            raise wrong(f"is {text!r}", 'A number of a step is 0 to 15, or "16+" for all further ones.')
    return found


@dataclass(frozen=True)
class Choice:
    """One of some words, as they are spelled: ``Annotated[Literal["a", "b"], Choice("a", "b")]``."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def _read(self, value: Any) -> str:
        text = scalar_of(value, self.words[0]).text
        if text not in self.words:
            near = difflib.get_close_matches(text.lower(), self.words, n=1, cutoff=0.5)
            *others, last = self.words
            raise wrong(
                f"is {text!r}", f"Write {near[0] if near else ' or '.join(filter(None, [', '.join(others), last]))}."
            )
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"enum": list(self.words)}


def _query(value: Any) -> str:
    text = scalar_of(value, "sum(rate(errors_total[{{.window}}]))", _LONGEST_TEXT).text.strip()
    if not text:
        raise wrong("is empty", "Write a query in PromQL.")
    return re.sub(r"\{\{-?\s*\.window\s*-?\}\}", "{{.window}}", text)


_SIMPLE: Final = {"type": ["string", "number", "boolean"]}
_INDEX: Final = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 15}, {"const": "16+"}]}


def _one_or_more(item: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}]})


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})]
Name = Annotated[
    str,
    PlainValidator(_name),
    WithJsonSchema({"type": ["string", "number"], "pattern": f"^{_NAME.pattern}$", "maxLength": 128}),
]
LabelName = Annotated[
    str, PlainValidator(_label_name), WithJsonSchema({"type": "string", "pattern": f"^{_LABEL.pattern}$"})
]
Query = Annotated[str, PlainValidator(_query), WithJsonSchema({"type": "string", "minLength": 1})]
Flag = Annotated[
    bool, PlainValidator(_flag), WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no", "on", "off"]}]})
]
Texts = Annotated[tuple[str, ...], PlainValidator(_texts), _one_or_more(_SIMPLE)]
Index = Annotated[tuple[str, ...], PlainValidator(_indexes), _one_or_more(_INDEX)]
