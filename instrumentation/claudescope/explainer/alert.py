"""An alert as Alertmanager tells of it, and the webhook (version 4) that brings it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

import orjson

__all__ = ["OBJECTIVE", "Alert", "Delivery", "MalformedError", "moment", "parse"]

OBJECTIVE: Final = "claudescope_slo"
"""The label with the objective's id: service and name, joined by a hyphen."""
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}")
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_MAX_LABELS: Final = 100
_MAX_TEXT: Final = 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class MalformedError(Exception):
    """What came is no webhook of Alertmanager; the text says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; ``fingerprint`` and ``starts`` together name one time that it fired."""

    fingerprint: str
    """Of its labels, 16 hexadecimal digits."""
    starts: int
    """Unix time, milliseconds."""
    ends: int | None
    """None while it fires."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    source: str = ""
    """Where Prometheus shows its expression."""

    @property
    def key(self) -> str:
        """Names the one time that it fired: the same however often it is told."""
        return f"{self.fingerprint}-{self.starts}"

    @property
    def objective(self) -> str:
        """The objective's id; empty for an alert of something else."""
        return self.labels.get(OBJECTIVE, "")

    @property
    def name(self) -> str:
        """What the rule calls it."""
        return self.labels.get("alertname", "")

    @property
    def severity(self) -> str:
        """``page`` or ``ticket``."""
        return self.labels.get("severity", "")


class Delivery(NamedTuple):
    """What one webhook brings."""

    alerts: list[Alert]
    malformed: int
    """Alerts in it that are none."""
    truncated: int
    """Alerts that Alertmanager left out, as ``max_alerts`` tells it to."""


def moment(text: object) -> int | None:
    """Milliseconds of an RFC 3339 time; None for the zero time of Go and for what is none."""
    match = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] == "0001-01-01":
        return None
    day, time, fraction, sign, hours, minutes = match.groups()
    try:
        found = datetime.fromisoformat(f"{day}T{time}+00:00")
        if sign:
            shift = timedelta(hours=int(hours), minutes=int(minutes))
            found = found - shift if sign == "+" else found + shift
    except (ValueError, OverflowError):
        return None
    whole = (found - _EPOCH) // timedelta(milliseconds=1)
    return whole + int((fraction or "0").ljust(3, "0")[:3])


def parse(body: bytes) -> Delivery:
    """The alerts of a webhook. One that is none is counted, so that the others are not lost with it.

    Raises MalformedError for a body that is no webhook of version 4.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MalformedError("it is no JSON") from None
    if not isinstance(found, dict):
        raise MalformedError("it is no JSON object")
    if found.get("version") != "4":
        raise MalformedError('its version is not "4"')
    given = found.get("alerts")
    if not isinstance(given, list):
        raise MalformedError("it has no list of alerts")
    alerts = [_alert(one) for one in given]
    truncated = found.get("truncatedAlerts")
    return Delivery(
        [alert for alert in alerts if alert is not None],
        alerts.count(None),
        truncated if type(truncated) is int and truncated > 0 else 0,
    )


def _alert(given: Any) -> Alert | None:
    if not isinstance(given, dict):
        return None
    fingerprint, status = given.get("fingerprint"), given.get("status")
    starts, ends = moment(given.get("startsAt")), moment(given.get("endsAt"))
    labels, annotations = _texts(given.get("labels")), _texts(given.get("annotations") or {})
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        return None
    if starts is None or not labels or annotations is None or status not in ("firing", "resolved"):
        return None
    if status == "resolved" and (ends is None or ends < starts):
        ends = starts
    source = given.get("generatorURL")
    return Alert(
        fingerprint,
        starts,
        ends if status == "resolved" else None,
        labels,
        annotations,
        source[: 4 * _MAX_TEXT] if isinstance(source, str) else "",
    )


def _texts(given: Any) -> dict[str, str] | None:
    """Labels or annotations, long ones cut; None for what is neither."""
    if not isinstance(given, dict) or len(given) > _MAX_LABELS:
        return None
    if not all(isinstance(value, str) for value in given.values()):
        return None
    return {str(key)[:_MAX_TEXT]: value[:_MAX_TEXT] for key, value in given.items()}
