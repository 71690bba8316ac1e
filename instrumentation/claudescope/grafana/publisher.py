"""Puts dashboards into a running Grafana: into one folder, over nothing that is not ours, and only what differs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ..errors import UsageError
from .board import TAG

__all__ = ["Change", "Publisher"]

_FOLDER_UID: Final = "claudescope"
_OWN_TO_GRAFANA: Final = ("id", "version", "iteration")
"""Keys that Grafana writes into what it stores."""
_CONTEXT: Final = 2
_INSTALL: Final = "Type pip install 'claudescope[grafana]', into an environment of its own: it replaces urllib3."


class Change(NamedTuple):
    """What push does with one dashboard: ``new``, ``changed``, ``same``, or ``refused`` with the reason."""

    uid: str
    title: str
    what: str
    reason: str = ""
    diff: tuple[str, ...] = ()


class Publisher:
    """A Grafana, by its address and a token of a service account (or ``user:password``)."""

    def __init__(self, url: str, credential: str, folder: str) -> None:
        """``folder`` is the title of the folder. Raises UsageError without grafana-client or for no address."""
        try:
            from grafana_client import GrafanaApi
            from grafana_client.client import GrafanaException
            from niquests.exceptions import RequestException
        except ImportError:
            raise UsageError("push needs the package grafana-client, which is not installed.", _INSTALL) from None
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"{url} is no address of a Grafana.", "It takes one such as http://localhost:3000.")
        user, colon, password = credential.partition(":")
        self._url = url
        self._folder = folder
        self._failures = (GrafanaException, RequestException, OSError)
        address = url.rstrip("/") + "/"  # a path, as behind a proxy, must end with it
        self._api = GrafanaApi.from_url(address, (user, password) if colon else credential or None)

    def push(self, dashboards: Mapping[str, Mapping[str, Any]], dry: bool) -> Iterator[Change]:
        """Compares each dashboard (uid -> JSON) with what is there, and writes what differs unless ``dry``.

        Raises UsageError when Grafana does not answer, refuses the credential, or refuses a dashboard.
        """
        ready = dry
        for uid, dashboard in dashboards.items():
            change = self._compare(uid, dashboard)
            if change.what in ("new", "changed") and not dry:
                if not ready:
                    self._make_folder()
                    ready = True
                self._write(dashboard)
            yield change

    def _compare(self, uid: str, dashboard: Mapping[str, Any]) -> Change:
        title = str(dashboard["title"])
        there = self._ask(lambda: self._api.dashboard.get_dashboard(uid), absent=404)
        if there is None:
            return Change(uid, title, "new")
        stored, meta = there["dashboard"], there.get("meta") or {}
        if TAG not in (stored.get("tags") or []):
            reason = f"the dashboard {stored.get('title')!r} has this uid and not the tag {TAG}: it is not ours"
            return Change(uid, title, "refused", reason)
        if meta.get("provisioned"):
            return Change(uid, title, "refused", "it is provisioned from a file; change the file")
        before, after = _lines(stored), _lines(dashboard)
        if before == after:
            return Change(uid, title, "same")
        diff = difflib.unified_diff(before, after, "in Grafana", "ours", n=_CONTEXT, lineterm="")
        return Change(uid, title, "changed", diff=tuple(diff))

    def _make_folder(self) -> None:
        if self._ask(lambda: self._api.folder.get_folder(_FOLDER_UID), absent=404) is None:
            self._ask(lambda: self._api.folder.create_folder(self._folder, _FOLDER_UID))

    def _write(self, dashboard: Mapping[str, Any]) -> None:
        body = {
            "dashboard": {**dashboard, "id": None},
            "folderUid": _FOLDER_UID,
            "overwrite": True,
            "message": "claudescope dashboards push",
        }
        self._ask(lambda: self._api.dashboard.update_dashboard(body))

    def _ask(self, question: Any, absent: int = 0) -> Any:
        try:
            return question()
        except self._failures as error:
            status = getattr(error, "status_code", 0)
            if absent and status == absent:
                return None
            if status in (401, 403):
                fix = "Set GRAFANA_TOKEN to a token of a service account that may write dashboards and folders."
                raise UsageError(f"Grafana at {self._url} refuses: {error}.", fix) from None
            if status:
                raise UsageError(f"Grafana at {self._url} answers: {error}.") from None
            raise UsageError(f"Grafana at {self._url} does not answer: {error}.", "Correct --url.") from None


def _lines(dashboard: Mapping[str, Any]) -> list[str]:
    kept = {key: value for key, value in dashboard.items() if key not in _OWN_TO_GRAFANA}
    return json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
