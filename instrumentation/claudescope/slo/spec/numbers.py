"""Types of numbers: a comma, a percent sign, quotes and leading zeros are told from what was meant."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from .scalars import scalar_of, wrong

__all__ = ["NUMBER", "Chance", "Number", "Percent", "Rate", "Share", "Whole", "share_of"]

NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _number_of(value: Any, example: str) -> float:
    scalar = scalar_of(value, example)
    text = scalar.text
    if not scalar.plain:
        raise wrong(
            f"is text, {text!r}",
            f"Write a number without quotes: {text if NUMBER.fullmatch(text) else example}.",
        )
    if NUMBER.fullmatch(text):
        whole = text.lstrip("+-")
        if len(whole) > 1 and whole.isdigit() and whole[0] == "0":
            raise wrong(f"is {text}, which some read as an octal number", f"Write {whole.lstrip('0') or 0}.")
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise wrong(f"is {text}", f"Write a number: {example}.")
        return number
    if text.endswith("%") and NUMBER.fullmatch(text[:-1].strip()):
        raise wrong(f"is {text}", f"Write a number without the percent sign: {example}.")
    if re.fullmatch(r"\d+,\d+", text, re.ASCII):
        raise wrong(f"is {text}", f"Write a point and no comma: {text.replace(',', '.')}.")
    if re.fullmatch(r"\d[\d_]*\d", text, re.ASCII):
        raise wrong(f"is {text}", f"Write {text.replace('_', '')}.")
    raise wrong(f"is {text!r}, which is no number", f"Write a number: {example}.")


def _percent(value: Any) -> float:
    scalar = scalar_of(value, "99.9")
    if scalar.text.endswith("%") and NUMBER.fullmatch(scalar.text[:-1].strip()):
        raise wrong(f"is {scalar.text}", f"It is a percentage anyway: write {scalar.text[:-1].strip()}.")
    number = _number_of(scalar, "99.9")
    if number == 100:
        raise wrong("is 100, which leaves no budget", "Write less, such as 99.9: with 100 every bad event would page.")
    if 99.999999 < number < 100:
        raise wrong(f"is {scalar.text}, a budget of one in over 100 million", "Write at most 99.999999.")
    if not 0 < number < 100:
        raise wrong(f"is {scalar.text}", "It is a percentage between 0 and 100, such as 99.9.")
    if number < 1:
        raise wrong(f"is {scalar.text}, under one percent", f"It is a percentage: write {100 * number:.10g}.")
    return number


def share_of(value: Any, below: bool = False) -> float:
    """A share over 0 and at most 1, or ``below`` 1."""
    scalar = scalar_of(value, "0.8")
    text = scalar.text
    if text.endswith("%") and NUMBER.fullmatch(text[:-1].strip()):
        raise wrong(f"is {text}", f"Write it as a share: {float(text[:-1].strip()) / 100:.10g}.")
    number = _number_of(scalar, "0.8")
    if 1 < number <= 100:
        raise wrong(f"is {text}, over 1", f"It is a share from 0 to 1: write {number / 100:.10g} for {text} %.")
    if below and 0.99999999 < number < 1:
        raise wrong(f"is {text}, a budget of one in over 100 million", "Write at most 0.99999999.")
    if not 0 < number <= 1 or (below and number == 1):
        most = "below 1, such as 0.99" if below else "at most 1, such as 0.8"
        raise wrong(f"is {text}", f"It is a share over 0 and {most}.")
    return number


def _share(value: Any) -> float:
    return share_of(value)


def _chance(value: Any) -> float:
    scalar = scalar_of(value, "0.0001")
    if scalar.text.lower() in ("off", "false", "no"):
        return 0.0
    number = _number_of(scalar, "0.0001")
    if not 0 <= number <= 0.1:
        raise wrong(f"is {scalar.text}", "It is a probability from 0 (off) to 0.1, such as 0.0001.")
    return number


def _positive(value: Any) -> float:
    number = _number_of(value, "14.4")
    if number <= 0:
        raise wrong(f"is {scalar_of(value, '14.4').text}", "It is over 0, such as 14.4.")
    return number


def _rate(value: Any) -> float:
    scalar = scalar_of(value, "5000")
    if match := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kK]|/s|qps|QPS|rps)", scalar.text):
        factor = 1000 if match[2] in "kK" else 1
        raise wrong(f"is {scalar.text}", f"It is events a second: write {float(match[1]) * factor:.10g}.")
    number = _number_of(scalar, "5000")
    if number <= 0:
        raise wrong(f"is {scalar.text}", "It is events a second, over 0, such as 5000.")
    return number


def _whole(value: Any) -> int:
    number = _number_of(value, "10")
    if number != int(number) or number < 0 or number > 1_000_000_000:
        raise wrong(f"is {scalar_of(value, '10').text}", "It is a whole number from 0, such as 10.")
    return int(number)


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
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 0.1}, {"enum": ["off", False]}]}),
]
Whole = Annotated[int, PlainValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 0, "examples": [10]})]
