"""Writes the reference tables of docs/ from the code: ``python docs/generate.py`` (``--check``: only compare)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from claudescope import semconv
from claudescope.explainer.options import OPTIONS
from claudescope.settings import SETTINGS, Setting
from claudescope.slo.spec.schema import schema

HERE = Path(__file__).parent

_BOUNDS = """\
Counters are 0 before they count, so that `increase` sees the first event too. `claudescope.step.over` and
`claudescope.step.below` are there only with the settings `CLAUDESCOPE_STEP_BOUNDS` and `CLAUDESCOPE_CONFIDENCE_BOUNDS`:
they are for objectives whose bound is no boundary of a histogram, or that look at one tool or business label. The share
of steps over 1.2 s, and that of calls after which over 90 % of one of the API's rate limits was used:

```promql
sum(rate(claudescope_step_over_total{claudescope_step_bound="1.2", claudescope_step_beyond="true"}[5m]))
  / sum(rate(claudescope_step_over_total{claudescope_step_bound="1.2"}[5m]))

1 - sum(rate(claudescope_ratelimit_used_bucket{le="0.9"}[5m])) / sum(rate(claudescope_ratelimit_used_count[5m]))
```

"""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    if value in ("", None, ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _settings_table(place: str, known: Mapping[str, Setting[Any]]) -> str:
    rows = [
        (f"`{one.variable}`", f"`{key}`", one.type, _default(one.written or one.default), one.sentence)
        for key, one in known.items()
    ]
    return _table(("variable", place, "type", "default", "meaning"), rows)


def settings() -> str:
    """The settings of ``claudescope.settings``."""
    return (
        "# Settings\n\nFrom flag, call argument, environment variable, `claudescope.toml` (first found from the working"
        " directory up to the repository's root, or the file that `CLAUDESCOPE_CONFIG` names), default, in this order."
        " An unknown name is an error.\n\n"
    ) + _settings_table("key in `claudescope.toml`", SETTINGS)


def explainer() -> str:
    """The settings of ``claudescope.explainer.options``."""
    return (
        "# Settings of the explainer\n\nFrom flag (`claudescope explainer --help` has those that have one), environment"
        " variable, the table `[explainer]` of `claudescope.toml`, default, in this order. A secret can be in a file"
        " instead, which the variable or key with `_FILE` or `_file` at its end names, and is no flag. An unknown name"
        " is an error. How they work together: [explainer.md](explainer.md).\n\n"
    ) + _settings_table("key in `[explainer]`", OPTIONS)


def attributes() -> str:
    """The attributes and events of ``claudescope.semconv``."""
    rows = [
        (f"`{attribute.name}`", attribute.type, attribute.where, attribute.source, attribute.brief)
        for attribute in semconv.ATTRIBUTES.values()
    ]
    events = [
        (f"`{event.name}`", ", ".join(f"`{name}`" for name in event.attributes), event.source, event.brief)
        for event in semconv.EVENTS.values()
    ]
    return (
        "# Spans, attributes and events\n\n"
        f"A step is a span `{semconv.STEP_SPAN} {{kind}}`, INTERNAL, child of its call's span; one made by hand is"
        f" `{semconv.MANUAL_STEP_SPAN} {{name}}`. Where no other call span exists, ours is"
        f" `{semconv.CALL_SPAN} {{model}}`, CLIENT. `claudescope.run(name)` makes `{semconv.RUN_SPAN} {{name}}`."
        " Sources: `genai`: the OpenTelemetry GenAI"
        " conventions; `otel`: the general ones; `anthropic`: the SDK's own spans; `claudescope`: this project.\n\n"
        + _table(("attribute", "type", "on", "source", "meaning"), rows)
        + "\n## Events\n\n"
        + _table(("event", "attributes", "source", "meaning"), events)
    )


def metrics() -> str:
    """The instruments of ``claudescope.semconv``."""
    rows = [
        (
            f"`{metric.name}`",
            metric.kind,
            f"`{metric.unit}`",
            ", ".join(f"`{name}`" for name in metric.attributes),
            metric.source,
            metric.brief,
            " ".join(f"{bound:g}" for bound in metric.boundaries),
        )
        for metric in semconv.METRICS.values()
    ]
    return (
        "# Metrics\n\nLabels never hold an id or text. `claudescope.step.index` is a string, `0` to `15`, then `16+`."
        " `gen_ai.tool.name` has the first 50 names, then `other`; business labels are those named in"
        " `CLAUDESCOPE_METRIC_LABELS`, at most 50 values each. `gen_ai.response.model`, `error.type` and the check are"
        " absent where there are none.\n\n" + _BOUNDS
    ) + _table(("metric", "instrument", "unit", "labels", "source", "meaning", "boundaries"), rows)


def slo_schema() -> str:
    """The JSON Schema of a specification of objectives."""
    return json.dumps(schema(), indent=2) + "\n"


def slo_fields() -> str:
    """The keys of a specification of objectives."""
    rows = list(_keys(schema(), schema()["$defs"], ""))
    return (
        "# Keys of a specification\n\nMade from the models that read it. `[]` is an item of a list; a key in bold must"
        " be there. How they work together is in [slo.md](slo.md).\n\n"
    ) + _table(("key", "takes", "default", "meaning"), rows)


def _keys(form: dict[str, Any], definitions: dict[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    for name, field in form["properties"].items():
        kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
        kind = kinds[0]
        here = f"{path}{name}" + ("[]" if kind.get("type") == "array" and "$ref" in kind.get("items", {}) else "")
        inner = definitions.get(kind.get("items", kind).get("$ref", "").rpartition("/")[2], {})
        spelled = f"**`{here}`**" if name in form.get("required", ()) else f"`{here}`"
        takes = " or ".join(dict.fromkeys(map(_takes, inner.get("anyOf", kinds))))
        yield spelled, takes, _default(field.get("default")), field.get("description", "")
        for part in [inner, *inner.get("anyOf", ())]:
            if "properties" in part:
                yield from _keys(part, definitions, f"{here}.")


def _takes(kind: dict[str, Any]) -> str:
    """A type in one word."""
    if kind.get("type") == "boolean" or "yes" in kind.get("enum", ()):
        return "`true` or `false`"
    if words := kind.get("enum") or [kind[key] for key in ("const",) if key in kind]:
        return " or ".join(f"`{str(word).lower() if isinstance(word, bool) else word}`" for word in words)
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(map(_takes, kind["anyOf"])))
    if "(ms|s|m|h|d|w)" in kind.get("pattern", ""):
        return "duration"
    if isinstance(kind.get("type"), list):
        return "text"
    named = {"object": "mapping", "string": "text", "array": "list", "integer": "whole number"}
    return "mapping" if "$ref" in kind else named.get(kind["type"], kind["type"])


PAGES = {
    "settings.md": settings,
    "explainer-settings.md": explainer,
    "attributes.md": attributes,
    "metrics.md": metrics,
    "slo-fields.md": slo_fields,
    "slo.schema.json": slo_schema,
}


def main(check: bool) -> int:
    """Writes the pages, or names those that are not current and gives 1."""
    stale = []
    for name, page in PAGES.items():
        path, text = HERE / name, page()
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, "utf-8")
    for name in stale:
        print(f"docs/{name} {'is not current: run python docs/generate.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
