"""The types of single values: each reads the text as it is written, and says what to write instead."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Any, Final, NoReturn

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..window import CalendarPeriod, Period, Window
from .document import Scalar

__all__ = [
    "Chance",
    "Flag",
    "Index",
    "LabelName",
    "Moment",
    "Name",
    "Number",
    "Percent",
    "PeriodText",
    "PositiveWindow",
    "Query",
    "Rate",
    "Seconds",
    "Share",
    "Text",
    "Texts",
    "Whole",
    "WindowOrNever",
    "choice",
    "refuse",
]

_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-zA-Zµ]+)\s*")
_DURATION: Final = re.compile(r"(?:(?:\d+(?:\.\d+)?|\.\d+)(?:ms|s|m|h|d|w))+")
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_WORDS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_MOST_SECONDS: Final = 10 * 366 * 86_400


def refuse(what: str, fix: str) -> NoReturn:
    """Ends the reading of a value. ``what`` goes on after the name of the value: "is 100"."""
    raise PydanticCustomError("spec", "{what}", {"what": what, "fix": fix})


def _scalar(value: Any, example: str) -> Scalar:
    if not isinstance(value, Scalar):
        kind = "a list" if isinstance(value, list) else "a mapping"
        quoted = " Text with braces or brackets needs quotes." if isinstance(value, dict) else ""
        refuse(f"is {kind}", f"Write one value: {example}.{quoted}")
    if value.empty:
        refuse("is empty", f"Write a value: {example}.")
    return value


def _text(value: Any) -> str:
    """Any scalar, as it is written: `2`, `yes` and `2024-01-01` are text here."""
    if isinstance(value, Scalar) and value.empty:
        return ""
    return _scalar(value, '"text"').text


def _name(value: Any) -> str:
    text = _scalar(value, "step-validity").text
    if not _NAME.fullmatch(text):
        nearest = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-_.")
        refuse(
            f"is {text!r}",
            "A name has letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit"
            + (f": write {nearest}." if nearest else "."),
        )
    if len(text) > 128:
        refuse(f"has {len(text)} characters", "Write at most 128.")
    return text


def _label_name(value: Any) -> str:
    """Of a key, which comes as text, or of a value."""
    text = value if isinstance(value, str) else _scalar(value, "service_name").text
    if not _LABEL.fullmatch(text) or text == "__name__":
        nearest = re.sub(r"[^a-zA-Z0-9_]", "_", text)
        nearest = f"_{nearest}" if nearest[:1].isdigit() else nearest
        refuse(
            f"{text!r} is no name of a label",
            "It has letters, digits and `_`, and begins with no digit"
            + (f": write {nearest}." if nearest and nearest != "__name__" else "."),
        )
    return text


def _number_of(value: Any, example: str) -> float:
    scalar = _scalar(value, example)
    text = scalar.text
    if not scalar.plain:
        refuse(
            f"is text, {text!r}",
            f"Write a number without quotes: {text if _NUMBER.fullmatch(text) else example}.",
        )
    if _NUMBER.fullmatch(text):
        whole = text.lstrip("+-")
        if len(whole) > 1 and whole.isdigit() and whole[0] == "0":
            refuse(f"is {text}, which some read as an octal number", f"Write {whole.lstrip('0') or 0}.")
        number = float(text)
        if number in (float("inf"), float("-inf")):
            refuse(f"is {text}", f"Write a number: {example}.")
        return number
    if text.endswith("%") and _NUMBER.fullmatch(text[:-1].strip()):
        refuse(f"is {text}", f"Write a number without the percent sign: {example}.")
    if re.fullmatch(r"\d+,\d+", text):
        refuse(f"is {text}", f"Write a point and no comma: {text.replace(',', '.')}.")
    if re.fullmatch(r"\d[\d_]*\d", text):
        refuse(f"is {text}", f"Write {text.replace('_', '')}.")
    refuse(f"is {text!r}, which is no number", f"Write a number: {example}.")


def _percent(value: Any) -> float:
    scalar = _scalar(value, "99.9")
    if scalar.text.endswith("%") and _NUMBER.fullmatch(scalar.text[:-1].strip()):
        refuse(f"is {scalar.text}", f"It is a percentage anyway: write {scalar.text[:-1].strip()}.")
    number = _number_of(scalar, "99.9")
    if number == 100:
        refuse("is 100, which leaves no budget", "Write less, such as 99.9: with 100 every bad event would page.")
    if not 0 < number < 100:
        refuse(f"is {scalar.text}", "It is a percentage between 0 and 100, such as 99.9.")
    if number < 1:
        refuse(f"is {scalar.text}, under one percent", f"It is a percentage: write {100 * number:.10g}.")
    return number


def _share(value: Any) -> float:
    scalar = _scalar(value, "0.8")
    text = scalar.text
    if text.endswith("%") and _NUMBER.fullmatch(text[:-1].strip()):
        refuse(f"is {text}", f"Write it as a share: {float(text[:-1].strip()) / 100:.10g}.")
    number = _number_of(scalar, "0.8")
    if 1 < number <= 100:
        refuse(f"is {text}, over 1", f"It is a share from 0 to 1: write {number / 100:.10g} for {text} %.")
    if not 0 < number <= 1:
        refuse(f"is {text}", "It is a share over 0 and at most 1, such as 0.8.")
    return number


def _chance(value: Any) -> float:
    scalar = _scalar(value, "0.0001")
    if not scalar.plain or scalar.text.lower() not in _FALSE:
        number = _number_of(scalar, "0.0001")
        if not 0 <= number <= 0.1:
            refuse(f"is {scalar.text}", "It is a probability from 0 (off) to 0.1, such as 0.0001.")
        return number
    return 0.0


def _positive(value: Any) -> float:
    number = _number_of(value, "14.4")
    if number <= 0:
        refuse(f"is {_scalar(value, '14.4').text}", "It is over 0, such as 14.4.")
    return number


def _rate(value: Any) -> float:
    scalar = _scalar(value, "5000")
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kK]|/s|qps|QPS|rps)", scalar.text):
        factor = 1000 if match[2] in "kK" else 1
        refuse(f"is {scalar.text}", f"It is events a second: write {float(match[1]) * factor:.10g}.")
    number = _number_of(scalar, "5000")
    if number <= 0:
        refuse(f"is {scalar.text}", "It is events a second, over 0, such as 5000.")
    return number


def _whole(value: Any) -> int:
    number = _number_of(value, "10")
    if number != int(number) or number < 0 or number > 1_000_000_000:
        refuse(f"is {_scalar(value, '10').text}", "It is a whole number from 0, such as 10.")
    return int(number)


def _flag(value: Any) -> bool:
    scalar = _scalar(value, "true")
    word = scalar.text.lower()
    if scalar.plain and word in _TRUE | _FALSE:
        return word in _TRUE
    if word in _TRUE | _FALSE:
        refuse(f"is text, {scalar.text!r}", f"Write it without quotes: {'true' if word in _TRUE else 'false'}.")
    refuse(f"is {scalar.text!r}", "Write true or false.")


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        refuse("is an empty list", "Name a value, or remove the key to count all.")
    found = tuple(_scalar(item, "a, or [a, b]").text for item in values)
    for text in found:
        if not text:
            refuse("has an empty text", "Name a value, or remove the key to count all.")
        if "*" in text and text != "*":
            refuse(f"is {text!r}, a pattern", "Write the values themselves, as a list: [a, b].")
    if len(set(found)) < len(found):
        refuse("names a value twice", "Write each once.")
    return found


def _indexes(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    for text in found:
        if match := re.fullmatch(r"(\d+)\s*(?:-|\.\.)\s*(\d+)", text):
            first, last = int(match[1]), min(int(match[2]), 15)
            refuse(f"is {text!r}", f"Write each number: {list(range(first, last + 1))}.")
        if text.isdigit() and str(int(text)) == text and int(text) > 15:
            refuse(f"is {text}", 'Steps from number 16 on are counted together: write "16+".')
        if text != "16+" and not (text.isdigit() and str(int(text)) == text):
            refuse(f"is {text!r}", 'A number of a step is 0 to 15, or "16+" for all further ones.')
    return found


def choice(*words: str) -> PlainValidator:
    """Reads one of some words, as they are spelled."""

    def read(value: Any) -> str:
        text = _scalar(value, words[0]).text
        if text not in words:
            near = difflib.get_close_matches(text.lower(), words, n=1, cutoff=0.5)
            listed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
            refuse(f"is {text!r}", f"Write {near[0] if near else listed}.")
        return text

    return PlainValidator(read)


def _query(value: Any) -> str:
    text = _scalar(value, "sum(rate(errors_total[{{.window}}]))").text.strip()
    if not text:
        refuse("is empty", "Write a query in PromQL.")
    return re.sub(r"\{\{-?\s*\.window\s*-?\}\}", "{{.window}}", text)


_TEXT: Final = {"type": ["string", "number", "boolean", "null"]}
_DURATION_SCHEMA: Final = {"type": "string", "pattern": r"^((\d+(\.\d+)?|\.\d+)(ms|s|m|h|d|w))+$"}
_ALL: Final = {"type": ["string", "number", "boolean"]}

Text = Annotated[str, PlainValidator(_text), WithJsonSchema(_TEXT)]
Name = Annotated[
    str,
    PlainValidator(_name),
    WithJsonSchema({"type": ["string", "number"], "pattern": f"^{_NAME.pattern}$", "maxLength": 128}),
]
LabelName = Annotated[
    str, PlainValidator(_label_name), WithJsonSchema({"type": "string", "pattern": f"^{_LABEL.pattern}$"})
]
Query = Annotated[str, PlainValidator(_query), WithJsonSchema({"type": "string", "minLength": 1})]
Percent = Annotated[
    float,
    PlainValidator(_percent),
    WithJsonSchema({"type": "number", "minimum": 1, "exclusiveMaximum": 100, "examples": [99.9]}),
]
Number = Annotated[
    float, PlainValidator(_positive), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "examples": [14.4]})
]
Rate = Annotated[
    float, PlainValidator(_rate), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "examples": [5000]})
]
Share = Annotated[
    float,
    PlainValidator(_share),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "examples": [0.8]}),
]
Chance = Annotated[
    float,
    PlainValidator(_chance),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 0.1}, {"const": False}, {"const": "off"}]}),
]
Whole = Annotated[int, PlainValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 0, "examples": [10]})]
Flag = Annotated[
    bool,
    PlainValidator(_flag),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no", "on", "off"]}]}),
]
Seconds = Annotated[float, PlainValidator(_seconds), WithJsonSchema({**_DURATION_SCHEMA, "examples": ["800ms"]})]
PositiveWindow = Annotated[
    Window, PlainValidator(_window), WithJsonSchema({**_DURATION_SCHEMA, "examples": ["5m", "1h", "3d"]})
]
Moment = Annotated[
    Window,
    PlainValidator(_moment),
    WithJsonSchema({"anyOf": [{**_DURATION_SCHEMA, "examples": ["2m"]}, {"const": 0}]}),
]
WindowOrNever = Annotated[
    Window | None,
    PlainValidator(_never),
    WithJsonSchema({"anyOf": [_DURATION_SCHEMA, {"enum": ["never", False]}]}),
]
PeriodText = Annotated[
    Period,
    PlainValidator(_period),
    WithJsonSchema({"anyOf": [{"enum": ["week", "month", "quarter"]}, {**_DURATION_SCHEMA, "examples": ["30d"]}]}),
]
Texts = Annotated[
    tuple[str, ...],
    PlainValidator(_texts),
    WithJsonSchema({"anyOf": [_ALL, {"type": "array", "items": _ALL, "minItems": 1, "uniqueItems": True}]}),
]
Index = Annotated[
    tuple[str, ...],
    PlainValidator(_indexes),
    WithJsonSchema(
        {
            "anyOf": [
                one := {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 15}, {"const": "16+"}]},
                {"type": "array", "items": one, "minItems": 1, "uniqueItems": True},
            ]
        }
    ),
]
