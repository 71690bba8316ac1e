"""What an alert says: the labels and annotations that the compiled rules give it, and the notice that carries it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from ...slo.burn import Counts, burn_rate
from ...slo.objective import Notice, Objective, Tier
from ...slo.rules.alerts import absent_name, base_labels, burn_name
from ...slo.rules.canary import canary_name

__all__ = ["ABSENT", "CANARY", "Alert", "absent_alert", "canary_alert", "notice", "tier_alert"]

ABSENT: Final = "absent"
CANARY: Final = "canary"
"""Names of the rules that are no tiers."""
_MAX_ALERTS: Final = 200
"""Of one notice; how many more there are is said."""
_NEVER: Final = "0001-01-01T00:00:00Z"


@dataclass(slots=True)
class Alert:
    """One alert, as Alertmanager would tell of it."""

    labels: dict[str, str]
    annotations: dict[str, str] = field(default_factory=dict)
    starts_ms: int = 0
    ends_ms: int | None = None
    """When it was over; None while it fires."""

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that stay while the labels do."""
        text = orjson.dumps(self.labels, option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(text, digest_size=8).hexdigest()


def tier_alert(
    objective: Objective, tier: Tier, group: Mapping[str, str], short: Counts, long: Counts, url: str
) -> Alert:
    """A tier fires; ``short`` and ``long`` are what its windows hold."""
    notice = objective.page if tier.severity == "page" else objective.ticket
    labels = {
        **_labels(objective, burn_name(objective), group, tier.severity),
        "burnrate_tier": tier.name,
        "long": str(tier.long),
        "short": str(tier.short),
    }
    rates = [burn_rate(counts, objective.budget) or 0.0 for counts in (short, long)]
    summary = (
        f"{objective.service}: {objective.name} burns its error budget {rates[1]:.1f} times as fast as allowed"
        f" over {tier.long}{_of(group)}"
    )
    told = (
        f"{long.bad:g} of {long.total:g} events were bad in {tier.long} (burn rate {rates[1]:.2f}), and the rate over"
        f" {tier.short} is {rates[0]:.2f}; {tier.name} fires above {tier.factor:.4g}."
        f" Target {objective.target * 100:.6g} %."
    )
    return _with(notice, Alert(labels, _annotations(objective, summary, told, url)))


def absent_alert(objective: Objective, group: Mapping[str, str], last_ms: int, url: str) -> Alert:
    """Who sent events sends nothing any more, not even its metrics."""
    summary = f"{objective.service}: {objective.name} has no data"
    told = f"Nothing came since {_time(last_ms)}; absent_after is {objective.absent_after}."
    labels = {**_labels(objective, absent_name(objective), group, "ticket"), "burnrate_tier": ABSENT}
    return _with(objective.ticket, Alert(labels, _annotations(objective, summary, told, url)))


def canary_alert(objective: Objective, group: Mapping[str, str], told: str, url: str) -> Alert:
    """The canary is worse than the baseline."""
    canary = objective.canary
    assert canary is not None
    summary = f"{objective.service}: the canary {canary.canary} fails {objective.name}{_of(group)}"
    labels = {
        **_labels(objective, canary_name(objective), group, "page"),
        canary.label: canary.canary,
        "long": str(canary.window),
        "burnrate_tier": CANARY,
    }
    return _with(objective.page, Alert(labels, _annotations(objective, summary, told, url)))


def _with(notice: Notice, alert: Alert) -> Alert:
    """The alert with what its severity carries besides."""
    return Alert({**alert.labels, **notice.labels}, {**alert.annotations, **notice.annotations})


def _labels(objective: Objective, name: str, group: Mapping[str, str], severity: str) -> dict[str, str]:
    return {
        "alertname": name,
        **base_labels(objective),
        **group,
        "severity": severity,
        **objective.alert_labels,
    }


def _annotations(objective: Objective, summary: str, description: str, url: str) -> dict[str, str]:
    return {
        "summary": summary,
        "description": description,
        "dashboard": f"{url}/",
        "explanation": f"{url}/?{urlencode({'slo': objective.id})}",
        **objective.alert_annotations,
    }


def _of(group: Mapping[str, str]) -> str:
    values = ", ".join(value or "none" for value in group.values())
    return f", for {values}" if values else ""


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def notice(slo: str, alerts: Iterable[Alert], receiver: str, url: str) -> dict[str, Any]:
    """The body of Alertmanager's webhook, version 4, for alerts of one objective."""
    told = list(alerts)
    shown = told[:_MAX_ALERTS]
    return {
        "version": "4",
        "groupKey": f'{{}}:{{claudescope_slo="{slo}"}}',
        "truncatedAlerts": len(told) - len(shown),
        "status": "firing" if any(alert.ends_ms is None for alert in told) else "resolved",
        "receiver": receiver,
        "groupLabels": {"claudescope_slo": slo},
        "commonLabels": _common([alert.labels for alert in shown]),
        "commonAnnotations": _common([alert.annotations for alert in shown]),
        "externalURL": url,
        "alerts": [
            {
                "status": "firing" if alert.ends_ms is None else "resolved",
                "labels": alert.labels,
                "annotations": alert.annotations,
                "startsAt": _time(alert.starts_ms),
                "endsAt": _NEVER if alert.ends_ms is None else _time(alert.ends_ms),
                "generatorURL": f"{url}/?{urlencode({'slo': slo})}",
                "fingerprint": alert.fingerprint,
            }
            for alert in shown
        ],
    }


def _common(all_pairs: list[dict[str, str]]) -> dict[str, str]:
    first, *others = all_pairs
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
