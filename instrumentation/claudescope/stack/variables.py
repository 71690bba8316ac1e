"""Every variable of ``docker-compose.yml``: one table, from which ``.env.example`` and ``.env`` are written."""

from __future__ import annotations

import secrets
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = ["VARIABLES", "Variable", "env_example", "env_file", "missing_secrets", "with_defaults"]


@dataclass(frozen=True)
class Variable:
    """One ``CS_*`` variable. ``default`` is what holds where it is not set; a secret has none and must be set."""

    name: str
    default: str
    sentence: str
    section: str
    secret: bool = False


_REDACT_KEYS: Final = (
    r'["(?i)^(?:.*[._-])?(?:password|passwd|secret|api[._-]?key|authorization|cookie|set[._-]cookie)\\z",'
    r' "(?i)^(?:.*[.])?(?:user|enduser|end_user|customer|patient)'
    r'(?:[._](?:id|name|full_name|email|phone|address))?\\z",'
    r' "^(?:client|source|net[.]peer|network[.]peer)[.](?:address|ip)\\z"]'
)
"""Patterns in JSON, on one line."""

_HEAD: Final = """\
# Variables of docker-compose.yml. `claudescope stack init DIR` writes this file as .env, with secrets of its own;
# by hand: cp .env.example .env && chmod 600 .env, and fill in what has no value. A line that begins with # shows the
# default. docs/stack.md says more.
"""


class _Row(NamedTuple):
    name: str
    default: str
    sentence: str


def _section(title: str, *rows: _Row, secret: bool = False) -> Iterable[Variable]:
    return (Variable(*row, title, secret) for row in rows)


VARIABLES: Final[dict[str, Variable]] = {
    variable.name: variable
    for variable in (
        *_section(
            "Secrets",
            _Row(
                "CS_OTLP_TOKEN", "", "Bearer token that the apps send with their telemetry: letters, digits, - and _."
            ),
            _Row(
                "CS_HMAC_KEY",
                "",
                "Key, at least 32 bytes, under which personal details and secrets are hashed. Another key gives other"
                " hashes: keep it.",
            ),
            _Row(
                "CS_GRAFANA_PASSWORD",
                "",
                "Password of Grafana's user admin. It holds from Grafana's first start; later, change it in Grafana.",
            ),
            _Row(
                "CS_EXPLAINER_TOKEN",
                "",
                "Bearer token that Alertmanager shows to the explainer, and the password of the explainer's pages.",
            ),
            secret=True,
        ),
        *_section(
            "Where the parts are reached",
            _Row(
                "CS_OTLP_BIND", "127.0.0.1", "Address on which OTLP is published. 0.0.0.0: for apps on other machines."
            ),
            _Row("CS_OTLP_GRPC_PORT", "4317", "Published port of OTLP/gRPC."),
            _Row("CS_OTLP_HTTP_PORT", "4318", "Published port of OTLP/HTTP."),
            _Row(
                "CS_UI_BIND",
                "127.0.0.1",
                "Address on which the pages are published. Only Grafana asks who is there: put a proxy that does"
                " before the others.",
            ),
            _Row("CS_GRAFANA_PORT", "3000", "Published port of Grafana."),
            _Row("CS_JAEGER_PORT", "16686", "Published port of Jaeger's page and API."),
            _Row("CS_PROMETHEUS_PORT", "9090", "Published port of Prometheus."),
            _Row("CS_ALERTMANAGER_PORT", "9093", "Published port of Alertmanager."),
            _Row("CS_EXPLAINER_PORT", "9096", "Published port of the explainer."),
            _Row(
                "CS_GRAFANA_URL",
                "http://localhost:3000",
                "Where a browser reaches Grafana. Default: at the port above. After a change of either, `claudescope"
                " stack init` writes it into the links of Jaeger's page.",
            ),
            _Row(
                "CS_PROMETHEUS_URL", "http://localhost:9090", "Where a browser reaches Prometheus, for links in alerts."
            ),
            _Row("CS_ALERTMANAGER_URL", "http://localhost:9093", "Where a browser reaches Alertmanager."),
            _Row("CS_JAEGER_URL", "http://localhost:16686", "Where a browser reaches Jaeger, for links in tickets."),
            _Row("CS_EXPLAINER_URL", "http://localhost:9096", "Where a browser reaches the explainer."),
        ),
        *_section(
            "How long and how much",
            _Row(
                "CS_JAEGER_RETENTION",
                "168h",
                "How long traces are kept. For metrics: `retention` in collector/prometheus.yml.",
            ),
            _Row("CS_MEMORY_LIMIT_MIB", "1024", "MiB at which the collector refuses data until it has less."),
            _Row("CS_MEMORY_SPIKE_MIB", "256", "MiB of it that are kept free for a burst."),
            _Row(
                "CS_COLLECTOR_MEMORY",
                "1536m",
                "Memory limit of the collector's container: above CS_MEMORY_LIMIT_MIB by half.",
            ),
            _Row("CS_JAEGER_MEMORY", "1g", "Memory limit of Jaeger's container."),
            _Row("CS_PROMETHEUS_MEMORY", "2g", "Memory limit of Prometheus' container."),
            _Row("CS_ALERTMANAGER_MEMORY", "256m", "Memory limit of Alertmanager's container."),
            _Row("CS_GRAFANA_MEMORY", "512m", "Memory limit of Grafana's container."),
        ),
        *_section(
            "What the collector does",
            _Row(
                "CS_RECEIVER",
                "otlp",
                "otlp/tls: the OTLP ports speak TLS, with secrets/tls/tls.crt and tls.key.",
            ),
            _Row(
                "CS_TLS_CLIENT_CA",
                "",
                "With TLS, the authority of the certificates that apps must show: /etc/otelcol/tls/ca.crt for"
                " secrets/tls/ca.crt.",
            ),
            _Row(
                "CS_SAMPLE_PERCENT",
                "100",
                "Share of traces that is kept without a reason. Below 100, what is failing, invalid, slow or marked"
                " claudescope.keep is kept besides.",
            ),
            _Row("CS_SLOW_MS", "30000", "Milliseconds from which a trace is slow."),
            _Row("CS_DECISION_WAIT", "10s", "How long a trace without a root span waits for its decision."),
            _Row(
                "CS_ROOT_WAIT",
                "1s",
                "How long one waits after its root span: what waits is lost if the collector dies.",
            ),
            _Row("CS_SAMPLING_TRACES", "50000", "Traces that may wait."),
            _Row("CS_REDACT_KEYS", _REDACT_KEYS, "Patterns of attributes of which the whole value is hashed."),
            _Row("CS_QUEUE_SPANS", "200000", "Spans that wait on disk while Jaeger is away."),
            _Row("CS_QUEUE_POINTS", "100000", "Metric points that wait on disk while Prometheus is away."),
            _Row(
                "CS_QUEUE_FSYNC", "false", "Whether each write is forced to disk: for a machine that loses its power."
            ),
            _Row("CS_SPAN_METRICS_INTERVAL", "15s", "How often the metrics of spans (Jaeger's Monitor tab) are sent."),
            _Row("CS_SPAN_METRICS_EXPIRATION", "1h", "How long a series of theirs is sent after its last span."),
            _Row("CS_SPAN_METRICS_LIMIT", "2000", "Series of theirs at most; the rest is counted in one."),
            _Row("CS_LOGS_EXPORTERS", "[nop]", "Where log events go; [otlp_http/logs] sends them to CS_LOGS_ENDPOINT."),
            _Row("CS_LOGS_ENDPOINT", "http://localhost:3100/otlp", "An OTLP/HTTP store of logs, such as Loki."),
            _Row("CS_LOG_LEVEL", "info", "What the collector and Jaeger say of themselves: debug, info, warn, error."),
        ),
        *_section(
            "Explainer (claudescope stack init DIR --explainer)",
            _Row(
                "CS_EXPLAINER_GRAFANA_TOKEN",
                "",
                "Token of a service account of Grafana that may write annotations. Default: the user admin.",
            ),
            _Row("CS_EXPLAINER_WEBHOOK", "", "Where each ticket is posted as JSON."),
            _Row("CS_EXPLAINER_WEBHOOK_TOKEN", "", "Bearer token for it."),
            _Row("CS_EXPLAINER_JIRA", "", "Address of Jira, for an issue for each alert of an objective."),
            _Row("CS_EXPLAINER_JIRA_PROJECT", "", "Key of its project."),
            _Row("CS_EXPLAINER_JIRA_USER", "", "User of the token, as Jira Cloud wants it; empty for a bearer token."),
            _Row("CS_EXPLAINER_JIRA_TOKEN", "", "API token or personal access token."),
            _Row("CS_EXPLAINER_JIRA_DONE", "", "Transition that closes an issue when the alert ends."),
            _Row("CS_EXPLAINER_GITHUB_REPO", "", "Repository (owner/name) for an issue for each alert."),
            _Row("CS_EXPLAINER_GITHUB_TOKEN", "", "Token that may write its issues."),
            _Row("CS_EXPLAINER_MEMORY", "512m", "Memory limit of the explainer's container."),
        ),
        *_section(
            "Demo (docker compose --profile demo up)",
            _Row(
                "CS_DEMO_PACKAGE",
                ".",
                "What pip installs into the images of demo and explainer: `.` is the tree beside docker-compose.yml.",
            ),
            _Row("CS_DEMO_MEMORY", "512m", "Memory limit of the demo's container."),
        ),
    )
}
"""Every variable by name, in the order of the file."""


def env_file(values: Mapping[str, str]) -> str:
    """The text of a ``.env`` that sets ``values`` and shows the default of everything else."""
    blocks = [_HEAD]
    section = ""
    for variable in VARIABLES.values():
        if variable.section != section:
            section = variable.section
            blocks.append(f"\n# ---- {section}\n")
        is_set = variable.name in values
        blocks.append(
            f"{textwrap.fill(variable.sentence, 118, initial_indent='# ', subsequent_indent='# ')}\n"
            f"{'' if is_set else '# '}{variable.name}={values[variable.name] if is_set else variable.default}\n"
        )
    return "\n".join(blocks)


def env_example() -> str:
    """The committed ``.env.example``: nothing is set, and secrets have no value."""
    return env_file({name: "" for name, variable in VARIABLES.items() if variable.secret})


def missing_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """A new random value for each secret that ``values`` lacks."""
    # The prefix keeps a value from being read as a number or a flag, whatever its random part begins with.
    return {
        name: f"cs_{secrets.token_urlsafe(32)}"
        for name, variable in VARIABLES.items()
        if variable.secret and not values.get(name)
    }


def with_defaults(values: Mapping[str, str]) -> dict[str, str]:
    """Every variable's value where ``values`` sets some; as in Compose, an empty one counts as not set."""
    return {name: values.get(name) or variable.default for name, variable in VARIABLES.items()}
