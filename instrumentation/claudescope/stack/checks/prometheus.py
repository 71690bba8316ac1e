"""Prometheus: takes OTLP, keeps exemplars, has the rules, reaches what it scrapes and whom it alerts."""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...finding import Finding
from ..ask import ask, named
from ..parts import Stack
from .collector import SERVICE

__all__ = ["Count", "api", "arrival", "counted"]

_STALE: Final = 90.0
"""Seconds; the collector sends its counts every 15."""


def api(stack: Stack) -> Iterator[Finding]:
    """Whether it answers, and then each thing that the stack needs of it."""
    answer = ask(f"{stack.prometheus}/api/v1/status/buildinfo")
    version = answer.find("data", "version")
    if not answer.ok or version is None:
        why = answer.problem or f"what has that port answers {answer.status} to Prometheus' API"
        fix = "See what has that port, or set CS_PROMETHEUS_PORT to another one."
        if answer.status is None:
            fix = "Type `docker compose up -d`, then `docker compose logs prometheus`."
        yield Finding("prometheus", "fix", f"No Prometheus at {stack.prometheus}: {why}.", fix)
        return
    yield Finding("prometheus", "ok", f"{named('Prometheus', version)} answers at {stack.prometheus}.")
    yield from _flags(stack)
    yield from _rules(stack)
    yield from _targets(stack)
    yield from _alertmanagers(stack)


def _flags(stack: Stack) -> Iterator[Finding]:
    flags = ask(f"{stack.prometheus}/api/v1/status/flags")
    if flags.text("data", "web.enable-otlp-receiver") != "true":
        yield Finding(
            "prometheus",
            "fix",
            "Prometheus takes no OTLP, so it gets no metrics.",
            "Start it with --web.enable-otlp-receiver, as docker-compose.yml does.",
        )
    if "exemplar-storage" not in flags.text("data", "enable-feature"):
        yield Finding(
            "prometheus",
            "fix",
            "Prometheus keeps no exemplars, so no cell of a heat map leads to a trace.",
            "Start it with --enable-feature=exemplar-storage, as docker-compose.yml does.",
        )


def _rules(stack: Stack) -> Iterator[Finding]:
    groups = ask(f"{stack.prometheus}/api/v1/rules").rows("data", "groups")
    rules = [rule for group in groups for rule in group.rows("rules")]
    broken = [rule for rule in rules if rule.text("health") == "err"]
    if not rules:
        yield Finding(
            "rules",
            "fix",
            "Prometheus has no rules, so it alerts of nothing.",
            "See that collector/rules/ is there and mounted at /etc/prometheus/rules.",
        )
        return
    alerts = [rule for rule in rules if rule.text("type") == "alerting"]
    firing = sorted({rule.text("name") for rule in alerts if rule.text("state") == "firing"})
    yield Finding("rules", "ok", f"{len(rules)} rules are loaded, {len(alerts)} of them alerts.")
    if firing:
        yield Finding("rules", "note", f"Firing now: {', '.join(firing)}.")
    for rule in broken:
        yield Finding(
            "rules",
            "fix",
            f"Rule {rule.text('name')} fails: {rule.text('lastError')}.",
            "Correct it in collector/rules/.",
        )


def _targets(stack: Stack) -> Iterator[Finding]:
    targets = ask(f"{stack.prometheus}/api/v1/targets?state=active").rows("data", "activeTargets")
    down = [target for target in targets if target.text("health") == "down"]
    waiting = [target for target in targets if target.text("health") == "unknown"]
    for target in down:
        yield Finding(
            "targets",
            "fix",
            f"Prometheus cannot scrape {target.text('labels', 'job')} at {target.text('scrapeUrl')}:"
            f" {target.text('lastError')}.",
            "Type `docker compose ps` to see whether it runs; its address is in collector/prometheus.yml.",
        )
    jobs = [target.text("labels", "job") for target in waiting]
    if not targets:  # it finds them some seconds after its start
        configured = ask(f"{stack.prometheus}/api/v1/status/config").text("data", "yaml")
        jobs = re.findall(r"^ *(?:- )?job_name: (\S+)$", configured, re.MULTILINE)
    if jobs:
        names = ", ".join(sorted(jobs))
        yield Finding("targets", "note", f"Not scraped yet: {names}. Ask again in 15 s.")
    if targets and not down and not waiting:
        yield Finding("targets", "ok", f"All {len(targets)} targets are up.")
    if not targets and not jobs:
        yield Finding("targets", "fix", "Prometheus scrapes nothing.", "Restore collector/prometheus.yml.")


def _alertmanagers(stack: Stack) -> Iterator[Finding]:
    if not ask(f"{stack.prometheus}/api/v1/alertmanagers").rows("data", "activeAlertmanagers"):
        yield Finding(
            "prometheus",
            "fix",
            "Prometheus knows no Alertmanager, so nobody is told of an alert.",
            "Name it under `alerting` in collector/prometheus.yml.",
        )


class Count(NamedTuple):
    """How many test spans the collector has counted, ever, as Prometheus has it, and when (Unix time, seconds)."""

    spans: float
    at: float


def counted(stack: Stack) -> Count | None:
    """The newest count of test spans that Prometheus has, None for none of the last five minutes."""
    query = f'traces_span_metrics_calls_total{{service_name="{SERVICE}"}}[5m]'
    answer = ask(f"{stack.prometheus}/api/v1/query?query={urllib.parse.quote(query)}")
    try:
        samples = [series.fields["values"][-1] for series in answer.rows("data", "result")]
        return Count(sum(float(value) for _, value in samples), max(float(at) for at, _ in samples))
    except (LookupError, TypeError, ValueError):
        return None


def arrival(stack: Stack, before: Count | None, seconds: float) -> Iterator[Finding]:
    """Whether what the collector counts of the test span has come to Prometheus; waits for it.

    ``before`` is what it had before the span was sent.
    """
    began, sent = time.monotonic(), time.time()
    while True:
        now, waited = counted(stack), time.monotonic() - began
        # A collector that was started again counts from 1 again: then an older count was not being sent any more.
        stale = before is None or sent - before.at > _STALE
        if now is not None and (before is None or now.spans != before.spans or (stale and now.at > before.at)):
            yield Finding("metrics", "ok", f"What the collector counts is in Prometheus, {waited:.1f} s later.")
            return
        if waited >= seconds:
            yield Finding(
                "metrics",
                "fix",
                f"After {waited:.0f} s Prometheus has nothing of what the collector counts of the test span.",
                "Type `docker compose logs collector` and look for otlp_http/prometheus; what waits is kept on disk.",
            )
            return
        time.sleep(0.5)
