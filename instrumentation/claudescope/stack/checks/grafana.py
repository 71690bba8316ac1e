"""Grafana: its API answers, and its data sources reach Prometheus and Jaeger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...finding import Finding
from ..ask import ask, named
from ..parts import Stack

__all__ = ["DATA_SOURCES", "api"]

DATA_SOURCES: Final = {"prometheus": "Prometheus", "jaeger": "Jaeger", "alertmanager": "Alertmanager"}
"""The provisioned data sources: uid and name."""
_PROXIED: Final = {"alertmanager": "api/v2/status"}
"""Those that Grafana has no health check for: what is asked of them through it."""


def api(stack: Stack) -> Iterator[Finding]:
    """Whether it answers; with a password or a token, also what it has."""
    answer = ask(f"{stack.grafana}/api/health")
    database = answer.text("database")
    if not database:
        why = answer.problem or f"what has that port answers {answer.status} to Grafana's API"
        fix = "See what has that port, or set CS_GRAFANA_PORT to another one."
        if answer.status is None:
            fix = "Type `docker compose up -d`, then `docker compose logs grafana`."
        yield Finding("grafana", "fix", f"No Grafana at {stack.grafana}: {why}.", fix)
        return
    if database != "ok":
        yield Finding("grafana", "fix", "Grafana's database fails.", "Type `docker compose logs grafana`.")
        return
    yield Finding("grafana", "ok", f"{named('Grafana', answer.find('version'))} answers at {stack.grafana}.")
    if not stack.grafana_login:
        yield Finding("grafana", "note", "Data sources are not looked at: that takes GRAFANA_TOKEN or the password.")
        return
    yield from _contents(stack)


def _contents(stack: Stack) -> Iterator[Finding]:
    login = {"Authorization": stack.grafana_login}
    for uid, name in DATA_SOURCES.items():
        through = f"proxy/uid/{uid}/{_PROXIED[uid]}" if uid in _PROXIED else f"uid/{uid}/health"
        answer = ask(f"{stack.grafana}/api/datasources/{through}", headers=login, timeout=15)
        if answer.status in (401, 403):
            yield Finding(
                "grafana",
                "fix",
                "Grafana does not let us in with GRAFANA_TOKEN, or else the password of .env.",
                "If the password was changed in Grafana, set GRAFANA_TOKEN to a token of a service account.",
            )
            return
        if answer.status == 404:
            yield Finding(
                "grafana",
                "fix",
                f"Grafana has no data source {uid}.",
                "See that dashboards/provisioning is mounted; then `docker compose restart grafana`.",
            )
        elif answer.ok and (uid in _PROXIED or answer.text("status").upper() == "OK"):
            yield Finding("grafana", "ok", f"Grafana reaches {name}.")
        else:
            said = answer.text("message") or answer.problem or f"it answers {answer.status}"
            yield Finding(
                "grafana",
                "fix",
                f"Grafana's data source {uid} fails: {said}.",
                f"If {name} answers here, correct its address in dashboards/provisioning/datasources.",
            )
    found = ask(f"{stack.grafana}/api/search?type=dash-db&limit=1000", headers=login).rows()
    ours = [one for one in found if one.text("uid").startswith("claudescope-")]
    if ours:
        yield Finding("grafana", "ok", f"{len(ours)} dashboards of claudescope are there.")
    else:
        yield Finding(
            "grafana",
            "fix",
            "Grafana has none of claudescope's dashboards.",
            "See that dashboards/json is mounted; then `docker compose restart grafana`.",
        )
