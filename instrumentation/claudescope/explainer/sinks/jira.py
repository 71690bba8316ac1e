"""Tickets as issues of Jira: Cloud (with a user) and Data Center (with a personal access token), REST version 2."""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import quote, urlencode

from ..outbound import AwayError, Caller, bearer
from ..ticket import Ticket, clock

__all__ = ["JiraSink"]

_LABEL: Final = "claudescope"
_MAX_TEXT: Final = 30_000
"""Jira takes 32,767 characters."""


class JiraSink:
    """A project. A label of an issue names its ticket."""

    name = "jira"
    limited = True

    def __init__(self, url: str, project: str, kind: str, login: tuple[str, str], done: str, call: Caller) -> None:
        """``login`` is user and token, the user empty for a bearer token; ``done`` the transition that closes."""
        user, token = login
        self._api = f"{url}/rest/api/2"
        self._search = "search/jql" if user else "search"  # Cloud has taken the other one away
        self._project = project
        self._kind = kind
        self._done = done
        if user:
            self._headers = {"Authorization": f"Basic {base64.b64encode(f'{user}:{token}'.encode()).decode()}"}
        else:
            self._headers = bearer(token)
        self._call = call

    def find(self, ticket: Ticket, since: int) -> str | None:
        """The issue with the ticket's label."""
        asked = {"jql": f'labels = "{_mark(ticket)}"', "fields": "key", "maxResults": 1}
        found = self._ask("GET", f"{self._search}?{urlencode(asked)}")
        issues = found.get("issues") if isinstance(found, dict) else None
        return _key(issues[0]) if isinstance(issues, list) and issues else None

    def open(self, ticket: Ticket) -> str:
        """Makes the issue; its key."""
        fields = {
            "project": {"key": self._project},
            "issuetype": {"name": self._kind},
            "summary": ticket.title,
            "description": _description(ticket),
            "labels": [_LABEL, _mark(ticket)],
        }
        return _key(self._ask("POST", "issue", {"fields": fields}))

    def close(self, ticket: Ticket, ref: str) -> None:
        """Says that it has ended, and closes it where a transition is named that the issue can take."""
        ends = ticket.kept.alert.ends
        assert ends is not None
        issue, said = f"issue/{quote(ref, safe='')}", f"The alert ended at {clock(ends)}."
        there = self._ask("GET", f"{issue}/comment")
        comments = there.get("comments") if isinstance(there, dict) else None
        if not any(isinstance(one, dict) and one.get("body") == said for one in comments or []):
            self._ask("POST", f"{issue}/comment", {"body": said})
        if not self._done:
            return
        found = self._ask("GET", f"{issue}/transitions")
        for one in (found.get("transitions") if isinstance(found, dict) else None) or []:
            if isinstance(one, dict) and str(one.get("name", "")).lower() == self._done.lower():
                self._ask("POST", f"{issue}/transitions", {"transition": {"id": str(one.get("id"))}})
                return

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self._call(method, f"{self._api}/{path}", body, self._headers)


def _mark(ticket: Ticket) -> str:
    return f"claudescope-{ticket.key}"


def _description(ticket: Ticket) -> str:
    """The text as it is: labels come from apps, and must not be read as Jira's markup."""
    text = ticket.text()[:_MAX_TEXT].replace("{noformat}", "{ noformat }")
    links = "\n".join(f"[{name}|{link}]" for name, link in ticket.links_by_name().items())
    return f"{links}\n\n{{noformat}}\n{text}\n{{noformat}}"


def _key(issue: Any) -> str:
    key = issue.get("key") if isinstance(issue, dict) else None
    if not isinstance(key, str) or not key:
        raise AwayError("its answer has no key of an issue")
    return key
