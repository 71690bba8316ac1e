"""Rules as text: a rule file of Prometheus, and what other systems wrap around the same groups.

It is written by hand and not by PyYAML: expressions stay readable, and 200 objectives take a fraction of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from .rule import Alert, Rule, RuleFile, RuleGroup

__all__ = ["FORMATS", "Format", "resource_name", "text_of"]

Format = Literal["prometheus", "kubernetes", "mimir", "thanos"]
FORMATS: Final[dict[Format, str]] = {
    "prometheus": "a rule file",
    "kubernetes": "a PrometheusRule object, for the operator",
    "mimir": "a rule file with a namespace, for `mimirtool rules load`",
    "thanos": "a rule file for Thanos' ruler, which gives no partial answers",
}
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_:]*")
_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"))


def text_of(
    rules: RuleFile,
    form: Format = "prometheus",
    *,
    name: str = "claudescope-slo",
    namespace: str = "",
    alerts: bool = True,
    prometheus: str = "3",
) -> str:
    """The text, the same for the same objectives. ``name`` is that of the Kubernetes object or of Mimir's namespace."""
    lines = [
        "# Made by `claudescope slo rules`; changes here are lost.",
        f"# For Prometheus {prometheus}. From:",
    ]
    lines += [f"#   {origin.path.rsplit('/', 1)[-1]} sha256:{origin.sha256}" for origin in rules.origins]
    indent = ""
    if form == "kubernetes":
        lines += [
            "apiVersion: monitoring.coreos.com/v1",
            "kind: PrometheusRule",
            "metadata:",
            f"  name: {_scalar(name)}",
            *([f"  namespace: {_scalar(namespace)}"] if namespace else []),
            "  labels: {app.kubernetes.io/managed-by: claudescope}",
            "spec:",
        ]
        indent = "  "
    if form == "mimir":
        lines.append(f"namespace: {_scalar(name)}")
    if form == "thanos":
        lines.append("# A partial answer would be a wrong share, so a store that is away fails the rule.")
    lines.append(f"{indent}groups:")
    for group in rules.groups:
        lines += (f"{indent}  {line}" for line in _group(group, form, alerts))
    return "\n".join(lines) + "\n"


def resource_name(text: str) -> str:
    """A name that Kubernetes takes: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:253] or "claudescope-slo"


def _group(group: RuleGroup, form: Format, alerts: bool) -> Iterable[str]:
    yield from (f"# {note}" for note in group.notes)
    yield f"- name: {_scalar(group.name)}"
    yield f"  interval: {_duration(group.interval_seconds)}"
    if form == "thanos":
        yield "  partial_response_strategy: abort"
    yield "  rules:"
    for rule in group.rules:
        if alerts or not isinstance(rule, Alert):
            yield from (f"    {line}" for line in _rule(rule))


def _rule(rule: Rule) -> Iterable[str]:
    yield f"- {'alert' if isinstance(rule, Alert) else 'record'}: {_scalar(rule.name)}"
    lines = rule.expr.strip().split("\n")
    if len(lines) > 1 and all(line.replace("\t", "").isprintable() for line in lines):
        yield "  expr: |-"
        yield from (f"    {line}".rstrip() for line in lines)
    else:
        yield f"  expr: {_scalar(rule.expr)}"
    if isinstance(rule, Alert):
        if rule.for_seconds:
            yield f"  for: {_duration(rule.for_seconds)}"
        if rule.keep_firing_seconds:
            yield f"  keep_firing_for: {_duration(rule.keep_firing_seconds)}"
    yield from _mapping("labels", rule.labels)
    if isinstance(rule, Alert):
        yield from _mapping("annotations", rule.annotations)


def _mapping(name: str, values: Mapping[str, str]) -> Iterable[str]:
    if values:
        yield f"  {name}:"
        yield from (f"    {_scalar(key)}: {_scalar(value)}" for key, value in sorted(values.items()))


def _scalar(text: str) -> str:
    """Plain where YAML cannot take it for anything else, double-quoted otherwise, and single-quoted where that spares
    escapes.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.endswith(":"):
        return text
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _duration(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
