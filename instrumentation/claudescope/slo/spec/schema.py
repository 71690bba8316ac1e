"""The JSON Schema of a specification, for editors: made from the models, so that it cannot say anything else."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema

from .models import IndicatorForm, Sli, Slo, Spec, Waits
from .shape import model_of

__all__ = ["schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DURATION: Final = "^((\\d+(\\.\\d+)?|\\.\\d+)(ms|s|m|h|d|w))+$"


class _Schema(GenerateJsonSchema):
    """Without the titles that repeat the names of the keys."""

    schema_dialect = _DIALECT

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> dict[str, Any]:
    """For a file of one document."""
    found = Spec.model_json_schema(by_alias=True, schema_generator=_Schema)
    definitions = found["$defs"]
    for definition in definitions.values():
        definition.pop("title", None)
        for field in definition.get("properties", {}).values():
            if field.get("default", ...) is None:
                del field["default"]
            for kind in field.get("anyOf", ()):
                if "patternProperties" in kind:  # a name that is no label's
                    kind["additionalProperties"] = False
    _one_of(definitions[Sli.__name__], list(Sli.model_fields))
    _one_of(definitions[IndicatorForm.__name__], list(IndicatorForm.model_fields))
    _one_of(definitions[Slo.__name__], ["sli", "indicator"])
    for name, field in IndicatorForm.model_fields.items():
        form = model_of(field.annotation)
        if form is not None and any(inner.is_required() for inner in form.model_fields.values()):
            _not_null(definitions[IndicatorForm.__name__]["properties"][name])
    waits = definitions[Waits.__name__]
    definitions[Waits.__name__] = {"anyOf": [{"type": "string", "pattern": _DURATION}, {"const": 0}, waits]}
    head = {"$schema": _DIALECT, "title": "Objectives of a service (prometheus/v1 of sloth, and what is added to it)"}
    return head | {key: value for key, value in found.items() if key != "title"} | {"patternProperties": {"^x-": {}}}


def _one_of(definition: dict[str, Any], keys: list[str]) -> None:
    """Exactly one of some keys, which may be there without a value as well."""
    definition["oneOf"] = [{"required": [key]} for key in keys]


def _not_null(field: dict[str, Any]) -> None:
    kinds = [kind for kind in field.pop("anyOf") if kind != {"type": "null"}]
    field |= kinds[0]
