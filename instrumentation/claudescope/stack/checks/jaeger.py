"""Jaeger: its API answers, the Monitor tab has its metrics, and the test span has arrived."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ...finding import Finding
from ..ask import Answer, ask
from ..links import JAEGER_UI, grafana_of
from ..parts import Stack
from .collector import TestSpan

__all__ = ["api", "arrival", "links"]


def api(stack: Stack) -> Iterator[Finding]:
    """Whether the API answers, and what it knows."""
    answer = ask(f"{stack.jaeger}/api/v3/services")
    services = answer.find("services")
    if not answer.ok or not isinstance(services, list):
        yield Finding("jaeger", "fix", f"No Jaeger at {stack.jaeger}: {_why(answer)}.", _fix(answer))
        return
    yield Finding("jaeger", "ok", f"Jaeger answers at {stack.jaeger}; it has traces of {len(services)} services.")
    monitor = ask(f"{stack.jaeger}/api/metrics/minstep")
    if not monitor.ok:
        yield Finding(
            "jaeger",
            "fix",
            "Jaeger's Monitor tab is off.",
            "Name a metric backend in collector/jaeger.yaml, as `metrics` of jaeger_query.",
        )


def links(stack: Stack) -> Iterator[Finding]:
    """Whether the links of Jaeger's page lead to where Grafana is; says so only where they do not."""
    try:
        led = grafana_of((stack.folder / JAEGER_UI).read_text("utf-8"))
    except (OSError, ValueError):
        return  # not the folder of the stack's files
    if led and led != stack.grafana_page.rstrip("/"):
        yield Finding(
            "jaeger",
            "fix",
            f"Links of Jaeger's page lead to {led}, and Grafana is at {stack.grafana_page}.",
            f"Type `claudescope stack init {stack.folder}`, then `docker compose up -d --force-recreate jaeger`.",
        )


def arrival(stack: Stack, span: TestSpan, seconds: float) -> Iterator[Finding]:
    """Whether the test span has come all the way; waits for it."""
    began = time.monotonic()
    while True:
        answer = ask(f"{stack.jaeger}/api/v3/traces/{span.trace_id}")
        waited = time.monotonic() - began
        if answer.ok:
            yield Finding("traces", "ok", f"The test span is in Jaeger, {waited:.1f} s later.")
            return
        if waited >= seconds:
            yield Finding(
                "traces",
                "fix",
                f"The collector took the test span, and after {waited:.0f} s Jaeger does not have it.",
                "Type `docker compose logs collector` and look for otlp_grpc/jaeger; what waits is kept on disk.",
            )
            return
        time.sleep(0.25)


def _why(answer: Answer) -> str:
    return answer.problem or f"what has that port answers {answer.status} to Jaeger's API"


def _fix(answer: Answer) -> str:
    if answer.status is None:
        return "Type `docker compose up -d`, then `docker compose logs jaeger`."
    return "See what has that port, or set CS_JAEGER_PORT to another one."
