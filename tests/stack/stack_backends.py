"""What Jaeger, Prometheus and Alertmanager say through their APIs, and waiting until they say it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Labels = tuple[tuple[str, str], ...]
_KINDS = {"stringValue": str, "boolValue": bool, "intValue": int, "doubleValue": float}


def get(url: str, **query: Any) -> Any:
    """The JSON at ``url``. Raises urllib.error.HTTPError."""
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}" if query else url, timeout=30) as answer:
        return json.load(answer)


def eventually(ask: Callable[[], T], seconds: float = 30.0, every: float = 0.25) -> T:
    """The first truthy answer, or the last one after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < deadline:
        time.sleep(every)
    return answer


def _value(value: dict[str, Any]) -> Any:
    if "arrayValue" in value:
        return [_value(item) for item in value["arrayValue"].get("values", [])]
    [(kind, content)] = value.items()
    return _KINDS[kind](content) if kind in _KINDS else content


def _attributes(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: _value(item["value"]) for item in items}


class Jaeger:
    """Jaeger's query service."""

    def __init__(self, url: str) -> None:
        self.url = url

    def trace(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace as stored, each with ``attributes`` and ``resource`` as plain values; [] if unknown."""
        try:
            found = get(f"{self.url}/api/v3/traces/{trace_id}")["result"]["resourceSpans"]
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return []
            raise
        return [
            {
                **span,
                "attributes": _attributes(span.get("attributes", [])),
                "resource": _attributes(part["resource"].get("attributes", [])),
                "scope": scope.get("scope", {}).get("name", ""),
            }
            for part in found
            for scope in part["scopeSpans"]
            for span in scope["spans"]
        ]

    def services(self) -> list[str]:
        return sorted(get(f"{self.url}/api/services")["data"] or [])

    def trace_ids(self, service: str, limit: int = 5000) -> list[str]:
        """The ids of the traces of a service in the last hour."""
        return [trace["traceID"] for trace in self.raw(service, limit)]

    def raw(self, service: str, limit: int = 5000) -> list[dict[str, Any]]:
        """The traces of a service in the last hour, as Jaeger's page gets them."""
        return get(f"{self.url}/api/traces", service=service, limit=limit, lookback="1h")["data"] or []

    def spans(self, service: str) -> list[dict[str, Any]]:
        """All spans of a service, once each."""
        return [span for trace_id in self.trace_ids(service) for span in self.trace(trace_id)]


class Prometheus:
    """Prometheus' query API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, **more: Any) -> list[dict[str, Any]]:
        return get(f"{self.url}/api/v1/query", query=expression, **more)["data"]["result"]

    def value(self, expression: str) -> float | None:
        """The one value of an expression; None without data."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression} gives {len(found)} series"
        return float(found[0]["value"][1]) if found else None

    def series(self, selector: str) -> list[dict[str, str]]:
        return get(f"{self.url}/api/v1/series", **{"match[]": selector})["data"]

    def samples(
        self, selector: str, window: str = "1h"
    ) -> dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]:
        """Every stored sample: labels -> (seconds, value) in order of time."""
        return {
            tuple(sorted(series["metric"].items())): [(at, float(value)) for at, value in series["values"]]
            for series in self.query(f"{selector}[{window}]")
        }

    def exemplars(self, metric: str, seconds: float = 3600) -> list[dict[str, Any]]:
        now = time.time()
        found = get(f"{self.url}/api/v1/query_exemplars", query=metric, start=now - seconds, end=now + 60)["data"]
        return [exemplar for series in found for exemplar in series["exemplars"]]

    def names(self) -> list[str]:
        return get(f"{self.url}/api/v1/label/__name__/values")["data"]

    def metadata(self) -> dict[str, Any]:
        return get(f"{self.url}/api/v1/metadata")["data"]

    def alerts(self) -> dict[str, str]:
        """Alert -> ``pending`` or ``firing``."""
        return {a["labels"]["alertname"]: a["state"] for a in get(f"{self.url}/api/v1/alerts")["data"]["alerts"]}
