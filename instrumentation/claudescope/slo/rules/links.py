"""Where an alert leads: its dashboard, the traces with what is wrong, and the explanation of the burn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

from ... import semconv
from ...semconv.prometheus import SERVICE_LABEL, prometheus_label
from ..objective import Indicator, Objective

__all__ = ["LOCAL", "Links"]

_ATTRIBUTES: Final = {prometheus_label(name): name for name in semconv.ATTRIBUTES}
_BUSINESS: Final = prometheus_label(semconv.LABEL_PREFIX)
_TAGS: Final[Mapping[str, Mapping[str, str]]] = {
    "step_validity": {semconv.STEP_VALID: "false"},
    "tool_success": {semconv.STEP_KIND: "tool_run", semconv.STEP_VALID: "false"},
    "errors": {"error": "true"},
}
"""What Jaeger searches for, by measure."""


class Links(NamedTuple):
    """Addresses as a person's browser sees them, without a slash at the end."""

    grafana: str = "http://localhost:3000"
    jaeger: str = "http://localhost:16686"
    explainer: str = "http://localhost:9096"

    def annotations(self, objective: Objective, window: str) -> dict[str, str]:
        """The links of an alert whose long window is ``window``; alerts fill in their own labels."""
        slo = quote(objective.id, safe="")
        chosen = "".join(f"&{label}={_value(label)}" for label in objective.group_by)
        return {
            "dashboard": f"{self.grafana}/d/claudescope-slo?var-slo={slo}",
            "trace": self._search(objective, window),
            "explanation": f"{self.explainer}/explain?slo={slo}&window={window}{chosen}",
        }

    def _search(self, objective: Objective, window: str) -> str:
        """Jaeger's search. An alert's text cannot name an exemplar's trace; the explanation does."""
        source = objective.source
        services = source.where.service if isinstance(source, Indicator) else ()
        service = quote(services[0] if services else objective.service, safe="")
        tags, slowest = dict[str, str](), ""
        if isinstance(source, Indicator):
            tags = {quote(name): quote(value) for name, value in _TAGS.get(source.measure, {}).items()}
            if source.measure == "step_latency" and source.bound:
                slowest = f"&minDuration={source.bound * 1000:g}ms"
        for label in objective.group_by:
            if label == SERVICE_LABEL:
                service = _value(label)
            elif label in _ATTRIBUTES or label.startswith(_BUSINESS):
                tags[quote(_ATTRIBUTES.get(label, semconv.LABEL_PREFIX + label.removeprefix(_BUSINESS)))] = _value(
                    label
                )
        chosen = "%2C".join(f"%22{name}%22%3A%22{value}%22" for name, value in tags.items())
        found = f"&tags=%7B{chosen}%7D" if tags else ""
        return f"{self.jaeger}/search?service={service}&lookback={window}{slowest}{found}"


LOCAL: Final = Links()
"""The shipped stack on one's own machine."""


def _value(label: str) -> str:
    return f"{{{{ $labels.{label} | urlquery }}}}"
