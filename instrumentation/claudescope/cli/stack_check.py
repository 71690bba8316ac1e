"""It sends one span of a service named `claudescope-stack-check` and waits until Jaeger and Prometheus have it.

Addresses and secrets come from DIR/.env, and variables of the same names in the environment win over it. Grafana is
asked with GRAFANA_TOKEN, a token of a service account, or else the password of .env.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from ..errors import UsageError
from ..finding import Finding
from ..setting_values import number
from ..stack.checks import alertmanager, collector, environment, explainer, grafana, jaeger, prometheus
from ..stack.parts import Certificates, Stack

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope stack check ./observability --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument(
        "folder",
        metavar="DIR",
        type=Path,
        nargs="?",
        default=Path(),
        help="The stack's folder. Default: the working directory.",
    )
    parser.add_argument(
        "--wait", metavar="SECONDS", default="30", help="How long to wait for the span to arrive. Default: 30."
    )
    parser.add_argument("--ca", metavar="FILE", help="Authority of the OTLP ports' certificate, in PEM.")
    parser.add_argument("--cert", metavar="FILE", help="Certificate to show at the OTLP ports, in PEM.")
    parser.add_argument("--key", metavar="FILE", help="Its key. Default: in the same file.")
    parser.add_argument("--no-grafana", action="store_true", help="Leave Grafana out, where it is not part of it.")
    parser.add_argument("--json", action="store_true", help="Print the findings as JSON.")
    parser.add_argument("--fail", action="store_true", help="Exit with 1 when there is something to change.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints the findings."""
    try:
        wait = number(0)(arguments.wait)
    except ValueError as error:
        raise UsageError(f"--wait is {arguments.wait!r}.", f"It takes {error}.") from None
    if not arguments.folder.is_dir():
        raise UsageError(f"There is no folder {arguments.folder}.", "Name that of the stack's docker-compose.yml.")
    certificates = Certificates(arguments.ca, arguments.cert, arguments.key or arguments.cert)
    try:
        certificates.context()
    except OSError as error:
        raise UsageError(f"--ca, --cert or --key: {error}.", "Name files in PEM, the key without a password.") from None
    stack = Stack.load(arguments.folder, certificates=certificates)
    findings: list[Finding] = []
    for finding in _ask(stack, wait, with_grafana=not arguments.no_grafana):
        findings.append(finding)
        if not arguments.json:
            print(finding, flush=True)
    wrong = sum(finding.level == "fix" for finding in findings)
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print(f"{wrong} to change." if wrong else "Nothing to change.")
    return int(bool(wrong and arguments.fail))


def _ask(stack: Stack, wait: float, *, with_grafana: bool) -> Iterator[Finding]:
    """Everything, in the order of the data's way; what was sent first has time to arrive until it is asked for."""
    span, before = collector.TestSpan(), prometheus.counted(stack)
    yield from environment.env_file(stack)
    yield from collector.over_http(stack, span)
    yield from collector.over_grpc(stack)
    in_jaeger, in_prometheus = list(jaeger.api(stack)), list(prometheus.api(stack))
    yield from in_jaeger
    yield from in_prometheus
    yield from alertmanager.api(stack)
    yield from explainer.api(stack)
    if with_grafana:
        yield from grafana.api(stack)
        yield from jaeger.links(stack)
    if span.taken and in_jaeger[0].level == "ok":
        yield from jaeger.arrival(stack, span, wait)
    if span.taken and in_prometheus[0].level == "ok":
        yield from prometheus.arrival(stack, before, wait)
