"""Alertmanager: its API answers, and whether anybody is told of an alert."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...finding import Finding
from ..ask import ask, named
from ..parts import Stack

__all__ = ["api"]


def api(stack: Stack) -> Iterator[Finding]:
    """Whether it answers, and which receivers lead out of it."""
    answer = ask(f"{stack.alertmanager}/api/v2/status")
    version = answer.find("versionInfo", "version")
    if not answer.ok or version is None:
        why = answer.problem or f"what has that port answers {answer.status} to Alertmanager's API"
        fix = "See what has that port, or set CS_ALERTMANAGER_PORT to another one."
        if answer.status is None:
            fix = "Type `docker compose up -d`, then `docker compose logs alertmanager`."
        yield Finding("alerts", "fix", f"No Alertmanager at {stack.alertmanager}: {why}.", fix)
        return
    yield Finding("alerts", "ok", f"{named('Alertmanager', version)} answers at {stack.alertmanager}.")
    # The configuration in force comes as YAML; a receiver with a way out has a list named for it.
    if not re.search(r"^ *(?:- )?[a-z]+_configs:", answer.text("config", "original"), re.MULTILINE):
        yield Finding(
            "alerts",
            "note",
            "No receiver leads out of Alertmanager: alerts are seen on its page only.",
            "Fill in a receiver in collector/alertmanager.yml.",
        )
