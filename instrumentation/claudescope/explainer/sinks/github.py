"""Tickets as issues of a GitHub repository."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Final
from urllib.parse import urlencode

from ..outbound import AwayError, Caller, bearer
from ..ticket import Ticket, clock

__all__ = ["GitHubSink"]

_LABEL: Final = "claudescope"
_MAX_BODY: Final = 60_000
"""GitHub takes 65,536 characters."""
_PAGE: Final = 100


class GitHubSink:
    """A repository. An issue's first line, which is not shown, names its ticket."""

    name = "github"
    limited = True

    def __init__(self, api: str, repository: str, token: str, call: Caller) -> None:
        self._issues = f"{api}/repos/{repository}/issues"
        self._headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            **bearer(token),
        }
        self._call = call

    def find(self, ticket: Ticket, since: int) -> str | None:
        """The issue with the ticket's name, among those changed since then."""
        at = datetime.fromtimestamp(since // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        asked = {"labels": _LABEL, "state": "all", "since": at, "per_page": _PAGE, "sort": "created"}
        found = self._ask("GET", f"{self._issues}?{urlencode(asked)}")
        for issue in found if isinstance(found, list) else []:
            if isinstance(issue, dict) and str(issue.get("body") or "").startswith(_mark(ticket)):
                return _number(issue)
        return None

    def open(self, ticket: Ticket) -> str:
        """Makes the issue; its number."""
        body = {"title": ticket.title, "body": _body(ticket), "labels": [_LABEL]}
        return _number(self._ask("POST", self._issues, body))

    def close(self, ticket: Ticket, ref: str) -> None:
        """Closes it, with a comment; not that of somebody who has closed it before."""
        issue = self._ask("GET", f"{self._issues}/{ref}")
        if isinstance(issue, dict) and issue.get("state") == "closed":
            return
        ends = ticket.kept.alert.ends
        assert ends is not None
        self._ask("POST", f"{self._issues}/{ref}/comments", {"body": f"The alert ended at {clock(ends)}."})
        self._ask("PATCH", f"{self._issues}/{ref}", {"state": "closed", "state_reason": "completed"})

    def _ask(self, method: str, url: str, body: object = None) -> Any:
        return self._call(method, url, body, self._headers)


def _mark(ticket: Ticket) -> str:
    return f"<!-- claudescope {ticket.key} -->"


def _body(ticket: Ticket) -> str:
    """The text as it is: labels come from apps, and must not be read as Markdown."""
    text = ticket.text()[:_MAX_BODY]
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=2))
    links = " · ".join(f"[{name}]({link})" for name, link in ticket.links_by_name().items())
    return f"{_mark(ticket)}\n{links}\n\n{fence}text\n{text}\n{fence}\n"


def _number(issue: Any) -> str:
    number = issue.get("number") if isinstance(issue, dict) else None
    if type(number) is not int:
        raise AwayError("its answer has no number of an issue")
    return str(number)
