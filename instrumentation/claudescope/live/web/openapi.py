"""The OpenAPI 3.1 document, made from the endpoints that the application serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .endpoint import Endpoint
from .parameters import Parameter
from .schemas import COMPONENTS, ref

__all__ = ["document"]

_ERRORS: Final = {
    400: "A parameter that is unknown or does not parse.",
    401: "The token is needed.",
    414: "The query is too long.",
    421: "On loopback, a Host header that names another machine.",
    503: "It took too long, or the server is too busy or failed.",
}


def document(endpoints: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """The document of these endpoints, as plain data."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "claudescope",
            "version": version,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Reasoning steps of Claude apps: lists, runs, figures. OTLP is taken at /v1/traces,"
            " /v1/metrics and /v1/logs, as OpenTelemetry describes it.",
        },
        "paths": {endpoint.path.replace(":path}", "}"): {"get": _operation(endpoint)} for endpoint in endpoints},
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                str(status): {
                    "description": text,
                    "content": {"application/json": {"schema": ref("Error")}},
                }
                for status, text in _ERRORS.items()
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    own = {
        str(status): {"description": text, "content": {"application/json": {"schema": ref("Error")}}}
        for status, text in endpoint.errors.items()
    }
    shared = {str(status): {"$ref": f"#/components/responses/{status}"} for status in _ERRORS}
    answer = {"description": endpoint.summary, "content": {endpoint.media: {"schema": dict(endpoint.schema)}}}
    return {
        "operationId": "_".join(re.findall(r"\w+", endpoint.path)),
        "summary": endpoint.summary,
        "parameters": [*_parameters("path", endpoint.within), *_parameters("query", endpoint.query)],
        "responses": {"200": answer, **shared, **own},
    }


def _parameters(place: str, parameters: Mapping[str, Parameter]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, parameter in parameters.items():
        schema: dict[str, Any] = parameter.kind.schema
        if parameter.many:
            schema = {"type": "array", "items": schema}
        found.append(
            {"name": name, "in": place, "description": parameter.text, "required": place == "path", "schema": schema}
            | ({"style": "form", "explode": True} if parameter.many else {})
        )
    return found
