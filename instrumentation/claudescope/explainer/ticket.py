"""What a ticket says, wherever it goes: who burns what, which slice, on which way through the services, and where to
look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode, urlsplit

from ..slo.explain.sentences import where
from .options import Options
from .queue import Kept

__all__ = ["Links", "Ticket", "clock"]

_MAX_TITLE: Final = 200
_SHOWN_CALLS: Final = 30
_MARGIN: Final = 600
"""Seconds around the window in the dashboard's time range."""


def clock(milliseconds: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(frozen=True, slots=True)
class Links:
    """Where a browser reaches the pages; an empty one is not there."""

    explainer: str
    grafana: str = ""
    jaeger: str = ""

    @classmethod
    def of(cls, options: Options, address: str) -> Links:
        """From the settings; ``address`` is where the explainer listens."""
        return cls(
            options.public or address,
            options.grafana_public or options.grafana,
            options.jaeger_public or options.jaeger,
        )

    def explanation(self, kept: Kept) -> str:
        """The page of an alert."""
        return f"{self.explainer}/explanations/{kept.alert.fingerprint}?starts={kept.alert.starts}"

    def dashboard(self, kept: Kept) -> str:
        """The objective's dashboard at the time of the burn, or the one that the alert names."""
        named = kept.alert.annotations.get("dashboard", "")
        if named.startswith(("http://", "https://")):
            # rules are compiled with an address of Grafana; where one is set here, that is the right one
            place = urlsplit(named)
            base = f"{self.grafana}{place.path}?{place.query}" if self.grafana and "/d/" in place.path else named
        elif not self.grafana:
            return ""
        elif named.startswith("/"):
            base = self.grafana + named
        else:
            base = f"{self.grafana}/d/claudescope-slo?{urlencode({'var-slo': kept.alert.objective})}"
        window = (kept.report or {}).get("window") or {}
        start = int(window.get("from_ms", kept.alert.starts)) - _MARGIN * 1000
        end = int(window.get("to_ms", kept.alert.starts)) + _MARGIN * 1000
        return f"{base}{'&' if '?' in base else '?'}from={start}&to={end}"

    def trace(self, trace_id: str) -> str:
        """A trace in Jaeger."""
        return f"{self.jaeger}/trace/{quote(trace_id, safe='')}" if self.jaeger else ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """An alert with its explanation, as it goes out."""

    kept: Kept
    links: Links

    @property
    def key(self) -> str:
        """Names this one time that the alert fired; the same in each try."""
        return self.kept.alert.key

    @property
    def status(self) -> Literal["firing", "resolved"]:
        """As Alertmanager says it."""
        return "firing" if self.kept.alert.ends is None else "resolved"

    @property
    def report(self) -> Mapping[str, Any]:
        """What was found; empty before."""
        return self.kept.report or {}

    @property
    def title(self) -> str:
        """One line: what burns, and the first slice."""
        alert = self.kept.alert
        what = alert.annotations.get("summary", "").strip() or f"{alert.objective or alert.name} burns its error budget"
        title = f"{what}{f': {self.slice}' if self.slice else ''} ({alert.severity or 'alert'})"
        return " ".join(title.split())[:_MAX_TITLE]

    @property
    def slice(self) -> str:
        """The first slice in words; empty for none."""
        return where(self._slices()[0]["labels"]) if self._slices() else ""

    def _slices(self) -> list[dict[str, Any]]:
        explanation = self.report.get("explanation") or {}
        return [found for found in explanation.get("slices", []) if isinstance(found, dict)]

    def links_by_name(self) -> dict[str, str]:
        """Dashboard, explanation, and the alert's expression in Prometheus: those that there are."""
        alert = self.kept.alert
        found = {
            "explanation": self.links.explanation(self.kept),
            "dashboard": self.links.dashboard(self.kept),
            "prometheus": alert.source if alert.source.startswith(("http://", "https://")) else "",
        }
        return {name: link for name, link in found.items() if link}

    def json(self) -> dict[str, Any]:
        """The body of the generic webhook, and of the file."""
        alert = self.kept.alert
        return {
            "version": 1,
            "key": self.key,
            "status": self.status,
            "title": self.title,
            "fingerprint": alert.fingerprint,
            "starts_ms": alert.starts,
            "ends_ms": alert.ends,
            "labels": dict(alert.labels),
            "annotations": dict(alert.annotations),
            "objective": self.report.get("objective"),
            "window": self.report.get("window"),
            "explanation": self.report.get("explanation"),
            "problem": self.report.get("problem", ""),
            "text": self.text(),
            "links": self.links_by_name(),
            "traces": self.report.get("traces", []),
            "topology": self.report.get("topology", {"services": [], "calls": []}),
        }

    def text(self) -> str:
        """Plain text, in paragraphs."""
        return "\n\n".join(filter(None, (self._head(), self._finding(), self._ways(), self._links(), self._labels())))

    def _head(self) -> str:
        alert, objective = self.kept.alert, self.report.get("objective") or {}
        lines = [alert.annotations.get("summary", ""), alert.annotations.get("description", "")]
        if objective:
            target = f"{100 * objective['target']:.6g} %"
            lines.append(
                f"Objective {objective['id']}: {target} over {objective['period']}. {objective['description']}"
            )
        lines.append(f"Firing since {clock(alert.starts)}.")
        if alert.ends is not None:
            lines.append(f"Ended {clock(alert.ends)}.")
        return "\n".join(line.strip() for line in lines if line.strip())

    def _finding(self) -> str:
        text = str(self.report.get("text", ""))
        problem = str(self.report.get("problem", ""))
        return "\n".join(filter(None, ("What burns:", text, problem))) if text or problem else ""

    def _ways(self) -> str:
        calls = (self.report.get("topology") or {}).get("calls", [])
        lines = [f"{call['from']} -> {call['to']} ({call['kind']}): {call['count']:g} calls" for call in calls]
        more = len(lines) - _SHOWN_CALLS
        shown = lines[:_SHOWN_CALLS] + ([f"and {more} more"] if more > 0 else [])
        return "\n".join(["Services and what they call:", *shown]) if lines else ""

    def _links(self) -> str:
        lines = [f"{name.capitalize()}: {link}" for name, link in self.links_by_name().items()]
        lines += [f"Trace: {trace['url'] or trace['id']}" for trace in self.report.get("traces", [])]
        return "\n".join(lines)

    def _labels(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(self.kept.alert.labels.items()))
        return f"Alert {self.key}: {labels}"
