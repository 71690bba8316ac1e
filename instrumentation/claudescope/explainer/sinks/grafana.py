"""Annotations in Grafana: a mark from the alert's start to its end, with the explanation and where to look."""

from __future__ import annotations

from html import escape
from typing import Any, Final
from urllib.parse import quote

from ...errors import UsageError
from ..outbound import AwayError, RefusedError, shown
from ..ticket import Ticket

__all__ = ["GrafanaSink"]

_TAG: Final = "claudescope-slo"
"""The dashboard of objectives shows annotations with this tag."""
_MAX_TEXT: Final = 4000
_FOR_GOOD: Final = frozenset({400, 413, 422})


class GrafanaSink:
    """A Grafana, by its address and a token of a service account (or ``user:password``), through grafana-client."""

    name = "grafana"
    limited = False

    def __init__(self, url: str, token: str, timeout: float) -> None:
        """Raises UsageError without grafana-client."""
        try:
            from grafana_client import GrafanaApi
            from grafana_client.client import GrafanaException
            from niquests.exceptions import RequestException
        except ImportError:
            raise UsageError(
                "An address of Grafana is set, and the package grafana-client is not installed.",
                "Type pip install 'claudescope[grafana]', into an environment of the explainer's own: it replaces"
                " urllib3. Or unset CLAUDESCOPE_EXPLAINER_GRAFANA.",
            ) from None
        self._failures = (GrafanaException, RequestException, OSError)
        user, colon, password = token.partition(":")
        api = GrafanaApi.from_url(f"{url}/", (user, password) if colon else token)
        api.client.timeout = timeout
        self._annotations = api.annotations

    def find(self, ticket: Ticket, since: int) -> str | None:
        """The annotation with the ticket's tag."""
        starts = ticket.kept.alert.starts
        tags = [quote(tag, safe="") for tag in (_TAG, _mark(ticket))]
        found = self._ask(
            lambda: self._annotations.find_annotations(
                time_from=starts - 1, time_to=starts + 1, ann_type="annotation", tags=tags, limit=1
            )
        )
        first = found[0] if isinstance(found, list) and found else None
        number = first.get("id") if isinstance(first, dict) else None
        return str(number) if type(number) is int else None

    def open(self, ticket: Ticket) -> str:
        """Makes the annotation; its id."""
        alert = ticket.kept.alert
        found = self._ask(
            lambda: self._annotations.add_annotation(
                time_from=alert.starts, time_to=alert.ends, tags=_tags(ticket), text=_text(ticket)
            )
        )
        number = found.get("id") if isinstance(found, dict) else None
        if type(number) is not int:
            raise AwayError("its answer has no id of an annotation")
        return str(number)

    def close(self, ticket: Ticket, ref: str) -> None:
        """Gives it its end; where somebody has deleted it, nothing."""
        alert = ticket.kept.alert
        try:
            self._ask(
                lambda: self._annotations.partial_update_annotation(
                    int(ref), time_from=alert.starts, time_to=alert.ends, tags=_tags(ticket), text=_text(ticket)
                )
            )
        except _NotThereError:
            return

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except self._failures as error:
            status = getattr(error, "status_code", 0)
            problem = f"it answers {status}: {shown(error)}" if status else f"it does not answer: {shown(error)}"
            if status == 404:
                raise _NotThereError(problem) from None
            if status in _FOR_GOOD:
                raise RefusedError(problem) from None
            raise AwayError(problem) from None
        except ValueError:
            raise AwayError("its answer is no JSON") from None


class _NotThereError(AwayError):
    """It answers 404."""


def _mark(ticket: Ticket) -> str:
    return f"alert:{ticket.key}"


def _tags(ticket: Ticket) -> list[str]:
    alert = ticket.kept.alert
    return [_TAG, f"slo:{alert.objective}", f"severity:{alert.severity}", _mark(ticket)]


def _text(ticket: Ticket) -> str:
    """HTML, of which Grafana keeps what is harmless."""
    found = str(ticket.report.get("text") or ticket.report.get("problem") or "")[:_MAX_TEXT]
    links = [*ticket.links_by_name().items()]
    links += [("trace", trace["url"]) for trace in ticket.report.get("traces", []) if trace.get("url")]
    shown_links = " · ".join(f'<a href="{escape(link)}">{escape(name)}</a>' for name, link in links)
    return f"<b>{escape(ticket.title)}</b><br>{escape(found)}<br>{shown_links}".replace("\n", "<br>")
