"""Documents against models: what does not fit, with the line, and the nearest of what would."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from .document import Document, Location, Mapping, Node, Scalar, Sequence
from .report import MOST_ERRORS, Report, spelled

__all__ = ["Refusals", "data_of", "fit", "model_of", "without"]

_Model = TypeVar("_Model", bound=BaseModel)
Refusals = dict[str, tuple[str, str]]
_COMMENT: Final = "x-"
"""Top-level keys that begin so hold what other values are aliases of."""


def data_of(node: Node, key: str = "") -> Any:
    """Dictionaries, lists and scalars, without keys that have no value: those are as if they were not there.

    Only a measure without a value is there: ``indicator: {errors:}`` counts all calls. ``key`` is the node's own.
    """
    if isinstance(node, Mapping):
        return {
            name: data_of(Mapping(entry.line) if empty else entry.value, name)
            for name, entry in node.entries.items()
            if not (empty := isinstance(entry.value, Scalar) and entry.value.empty) or key == "indicator"
        }
    if isinstance(node, Sequence):
        return [data_of(item) for item in node.items]
    return node


def without(data: Any, locations: list[Location]) -> Any:
    """The data without what is at some locations; of a list, items are not left out."""
    gone = {location[0] for location in locations if len(location) == 1 and isinstance(location[0], str)}
    if isinstance(data, dict):
        return {
            key: without(value, [location[1:] for location in locations if location[:1] == (key,)])
            for key, value in data.items()
            if key not in gone
        }
    if isinstance(data, list):
        return [without(item, [at[1:] for at in locations if at[:1] == (number,)]) for number, item in enumerate(data)]
    return data


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside of ``X``, ``X | None``, ``list[X]`` or ``Annotated[X, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_of(part))), None)


def fit(
    model: type[_Model],
    document: Document,
    at: Location,
    report: Report,
    data: Any = None,
    refused: Refusals | None = None,
) -> _Model | None:
    """The model with the data at a location; None where it does not fit, which the report then says.

    ``refused`` are keys that are known and that nothing is done with: why, and what to write instead.
    """
    if data is None:
        node = document.find(at)
        data = {} if node is None else data_of(node)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        errors: list[dict[str, Any]] = error.errors(include_url=False)  # type: ignore[assignment]  # TypedDicts
        unknown = [found["loc"] for found in errors if found["type"] == "extra_forbidden"][:MOST_ERRORS]
        for found in errors:
            if report.full:
                report.unsaid((*at, *found["loc"]))
                continue
            *parent, key = found["loc"] or ("",)
            beside = [str(other[-1]) for other in unknown if list(other[:-1]) == parent]
            if found["type"] == "missing" and any(
                _stands_for(other, str(key), refused or _REFUSED) for other in beside
            ):
                continue  # what is there in its place is said to be wrong
            _tell(model, document, at, found, report, refused or _REFUSED)
        return None


def _tell(
    model: type[BaseModel],
    document: Document,
    at: Location,
    error: dict[str, Any],
    report: Report,
    refused: Refusals,
) -> None:
    inner: Location = tuple(error["loc"])
    if inner and inner[-1] == "[key]":
        inner = inner[:-1]
        report.error_at_key((*at, *inner), f"{error['ctx']['what']}.", error["ctx"]["fix"])
        return
    where = (*at, *inner)
    kind = error["type"]
    if isinstance(where[-1:] and document.find(where[:-1]), (Scalar, Sequence)) and isinstance(where[-1], str):
        where = where[:-1]  # one value that stands for all keys, as of `for`
    if kind == "spec":
        report.error(where, f"{spelled(where)} {error['ctx']['what']}.", error["ctx"]["fix"])
    elif kind == "missing":
        _missing(document, where, report, _within(model, inner[:-1]))
    elif kind == "extra_forbidden":
        _unknown(model, inner, where, report, refused)
    elif kind in ("model_type", "model_attributes_type", "dict_type"):
        what = f"{spelled(where)} is {_kind(error['input'])} and not a mapping."
        named = bool(inner) and isinstance(inner[-1], str)  # and no item of a list
        if named and str(error["input"]) in _keys(_within(model, inner) or model):  # its only key, without a value
            report.error(where, what, f"Write `{inner[-1]}: {{{error['input']}: {{}}}}`.")
            return
        report.error(where, what, _keys_of(_within(model, inner), str(inner[-1]) if inner else ""))
    elif kind == "list_type":
        report.error(
            where, f"{spelled(where)} is {_kind(error['input'])} and not a list.", "Begin each item with `- `."
        )
    elif kind == "too_short":
        report.error(where, f"{spelled(where)} is empty.", "Write at least one, or remove the key.")
    else:  # pragma: no cover - no other kind is known
        report.error(where, f"{spelled(where)}: {error['msg']}.", "See the reference of the fields.")


def _keys_of(form: type[BaseModel] | None, name: str) -> str:
    if form is None:
        return "Write `name: value`."
    needed = [field.alias or key for key, field in form.model_fields.items() if field.is_required()]
    keys = ", ".join([*needed, *(key for key in _keys(form) if key not in needed)][:5])
    return f"Its keys are {keys}." if needed or not name else f"Write `{name}: {{}}`, with any of {keys}."


def _kind(value: Any) -> str:
    if isinstance(value, Scalar):
        return f"{value.text!r}" if len(value.text) <= 40 else "text"
    return "a list" if isinstance(value, list) else "a mapping"


def _stands_for(key: str, missing: str, refused: Refusals) -> bool:
    return key in refused or bool(difflib.get_close_matches(_snake(key), [missing]))


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower().replace("-", "_")


def _missing(document: Document, where: Location, report: Report, form: type[BaseModel] | None) -> None:
    fields = form.model_fields.items() if form else ()
    field = next((field for name, field in fields if (field.alias or name) == where[-1]), None)
    meaning = f" {field.description}" if field and field.description else ""
    key = where[-1]
    parent = document.find(where[:-1])
    if isinstance(parent, Mapping) and key in parent.entries:
        report.error_at_key(where, f"{spelled(where)} is empty.", f"Write a value.{meaning}")
        return
    report.error(where[:-1], f"{spelled(where)} is missing.", f"Add `{key}: ...`.{meaning}")


def _within(model: type[BaseModel] | None, location: Location) -> type[BaseModel] | None:
    for part in location:
        if model is None or isinstance(part, int):
            continue
        field = next((field for name, field in model.model_fields.items() if (field.alias or name) == part), None)
        model = model_of(field.annotation) if field else None
    return model


def _keys(form: type[BaseModel]) -> Iterator[str]:
    return (field.alias or name for name, field in form.model_fields.items())


def _elsewhere(model: type[BaseModel], key: str, path: str = "") -> Iterator[str]:
    """Where else in the model a key is known."""
    for name, field in model.model_fields.items():
        spelled_name = field.alias or name
        inner = model_of(field.annotation)
        here = f"{path}{spelled_name}"
        if spelled_name == key:
            yield here
        if inner:
            yield from _elsewhere(inner, key, f"{here}[]." if "list[" in str(field.annotation) else f"{here}.")


def _unknown(model: type[BaseModel], inner: Location, where: Location, report: Report, refused: Refusals) -> None:
    key = str(inner[-1])
    form = _within(model, inner[:-1]) or model
    keys = list(_keys(form))
    if len(where) == 1 and key.startswith(_COMMENT):
        return
    what = f"{spelled(where)} is not known."
    if key in refused:
        reason, fix = refused[key]
        report.error_at_key(where, f"{spelled(where)}: {reason}", fix)
        return
    snake = _snake(key)
    places = sorted(_elsewhere(model, key), key=len)
    if "indicator" in inner:  # what another measure has is no place for it
        places = [place for place in places if ".indicator." not in place]
    near = (
        [snake] if snake in keys else difflib.get_close_matches(snake, keys, n=1, cutoff=0.7 if len(snake) > 3 else 0.6)
    )
    if near and not (places and snake not in keys):
        report.error_at_key(where, what, f"Did you mean `{near[0]}`?")
        return
    if places:
        report.error_at_key(where, what, f"It belongs to `{places[0]}`.")
        return
    more = " A key that only holds anchors begins with `x-`." if len(where) == 1 else ""
    report.error_at_key(where, what, f"Known here: {', '.join(keys)}.{more}")


_REFUSED: Final[Refusals] = {
    "plugin": (
        "a plug-in of sloth is a program in Go, which nothing here runs.",
        "Write its query: `events: {error_query: ..., total_query: ...}`, or `indicator`.",
    ),
    "slo_plugins": ("a plug-in of sloth is a program in Go, which nothing here runs.", "Remove it."),
    "plugins": ("a plug-in of sloth is a program in Go, which nothing here runs.", "Remove it."),
}
