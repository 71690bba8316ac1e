"""The explainer, where it is part of the stack: it answers, wants its token, delivers, and Alertmanager leads to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...finding import Finding
from ..ask import ask, named
from ..parts import Stack

__all__ = ["api"]

_SERVICE = "claudescope explainer"


def api(stack: Stack) -> Iterator[Finding]:
    """Nothing where it is no part of the stack."""
    if not stack.explainer:
        return
    login = {"Authorization": f"Bearer {stack.explainer_token}"}
    answer = ask(f"{stack.explainer}/healthz", headers=login)
    if answer.text("service") != _SERVICE:
        why = answer.problem or f"what has that port answers {answer.status} to its health check"
        fix = "See what has that port, or set CS_EXPLAINER_PORT to another one."
        if answer.status is None:
            fix = "Type `docker compose up -d`, then `docker compose logs explainer`."
        yield Finding("explainer", "fix", f"No explainer at {stack.explainer}: {why}.", fix)
        return
    if not answer.ok:
        yield Finding("explainer", "fix", "The explainer's queue fails.", "Type `docker compose logs explainer`.")
        return
    yield Finding("explainer", "ok", f"{named('The explainer', answer.find('version'))} answers at {stack.explainer}.")
    yield from _token(stack, answer.find("places") is not None)
    problems = answer.find("problems")
    for place, problem in (problems if isinstance(problems, dict) else {}).items():
        yield Finding("explainer", "fix", f"The explainer's {place} does not work: {problem}.", "Correct its setting.")
    dead = answer.find("dead")
    if isinstance(dead, int) and dead:
        yield Finding(
            "explainer",
            "fix",
            f"The explainer has {dead} dead letters.",
            "See /healthz for why; `claudescope explainer --revive` tries them again.",
        )
    yield from _route(stack)


def _token(stack: Stack, known: bool) -> Iterator[Finding]:
    if not known:
        yield Finding(
            "explainer",
            "fix",
            "The explainer does not know CS_EXPLAINER_TOKEN.",
            "Type `docker compose up -d`, so that it has the one of .env.",
        )
    if ask(f"{stack.explainer}/explanations").status != 401:
        yield Finding(
            "explainer", "fix", "The explainer shows its pages without its token.", "See what has CS_EXPLAINER_PORT."
        )


def _route(stack: Stack) -> Iterator[Finding]:
    configured = ask(f"{stack.alertmanager}/api/v2/status").text("config", "original")
    if configured and not re.search(r"^ *(?:- )?receiver: explainer$", configured, re.MULTILINE):
        yield Finding(
            "explainer",
            "fix",
            "Alertmanager sends nothing to the explainer.",
            "Type `claudescope stack init DIR --explainer`; where alertmanager.yml is changed, take the lines of"
            " alertmanager.yml.new. Then `docker compose restart alertmanager`.",
        )
