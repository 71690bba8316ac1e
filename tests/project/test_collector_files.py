"""What collector/ says of itself is so: variables, defaults, components, links and names."""

import json
import re
from pathlib import Path

import yaml

from claudescope import semconv

COLLECTOR = Path(__file__).parents[2] / "collector"
README = (COLLECTOR / "README.md").read_text("utf-8")
USED = re.compile(r"\$\{env:(CS_\w+)(?::-((?:[^{}]|\{[^{}]*\})*))?\}")


def _used() -> dict[str, set[str]]:
    """Variable -> its defaults, wherever it is used; "" where there is none."""
    found: dict[str, set[str]] = {}
    for file in ("otelcol.yaml", "jaeger.yaml"):
        for name, default in USED.findall((COLLECTOR / file).read_text("utf-8")):
            found.setdefault(name, set()).add(default)
    return found


def _documented() -> dict[str, str]:
    rows = re.findall(r"^\| `(CS_\w+)` \| (.*?) ?\| .+ \|$", README, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a variable has two rows"
    return dict(rows)


def test_every_variable_has_one_default_and_a_row() -> None:
    used, documented = _used(), _documented()
    assert set(used) == set(documented)
    for name, defaults in used.items():
        assert len(defaults) == 1, f"{name} has several defaults"
        [default] = defaults
        if name != "CS_REDACT_KEYS":  # too long for a table
            assert documented[name].strip("`") == default, name


def _modules(kind: str) -> list[str]:
    builder = yaml.safe_load((COLLECTOR / "builder.yaml").read_text("utf-8"))
    return [entry["gomod"].split()[0].rsplit("/", 1)[1] for entry in builder[kind]]


def test_the_built_collector_has_what_the_configuration_names() -> None:
    config = yaml.safe_load((COLLECTOR / "otelcol.yaml").read_text("utf-8"))
    folders = {
        "file_storage": "filestorage",
        "otlp_grpc": "otlpexporter",
        "otlp_http": "otlphttpexporter",
        "bearertokenauth": "bearertokenauthextension",
    }
    for kind in ("receivers", "processors", "exporters", "connectors", "extensions"):
        named = {name.partition("/")[0] for name in config[kind]}
        wanted = {folders.get(name, name.replace("_", "") + kind[:-1]) for name in named}
        assert wanted <= set(_modules(kind)), kind


def test_every_component_is_used() -> None:
    config = yaml.safe_load((COLLECTOR / "otelcol.yaml").read_text("utf-8"))
    text = (COLLECTOR / "otelcol.yaml").read_text("utf-8").partition("\nservice:\n")[2]
    optional = {"otlp/tls", "otlp_http/logs"}  # put in by a variable
    for kind in ("receivers", "processors", "exporters", "connectors", "extensions"):
        unused = {name for name in config[kind] if not re.search(rf"[\[\s\-\"]{re.escape(name)}[\],}}\"\s]", text)}
        assert unused - optional == set(), kind


def test_attributes_and_metrics_are_ours() -> None:
    """Names in the configuration and the rules are those that claudescope emits."""
    ours = {re.sub(r"\W", "_", name) for name in (*semconv.ATTRIBUTES, *(metric for metric in semconv.METRICS))}
    for rules in (COLLECTOR / "rules").glob("*.yml"):
        for name in re.findall(r"\b(?:claudescope|gen_ai)_\w+", rules.read_text("utf-8")):
            if re.fullmatch(r"claudescope_slo(_name|_service|_info|_measure|_objective|_period)?", name):
                continue  # what the rules of objectives record themselves
            assert re.sub("(_seconds)?(_(total|bucket|sum|count|ratio))?$", "", name) in ours, f"{rules.name}: {name}"
    for name in re.findall(
        r"\bclaudescope\.(?:step|keep|chain)[\w.]*", (COLLECTOR / "otelcol.yaml").read_text("utf-8")
    ):
        assert name in semconv.ATTRIBUTES, name


def test_the_links_of_jaegers_page() -> None:
    page = json.loads((COLLECTOR / "jaeger-ui.json").read_text("utf-8"))
    dashboards = {"overview", "slo", "steps", "quality", "tools", "cost", "pipeline"}
    for link in page["linkPatterns"]:
        assert re.search(r"/d/claudescope-(\w+)\?", link["url"]).group(1) in dashboards
        if "key" in link:
            assert link["key"] in semconv.ATTRIBUTES


def test_every_alert_says_how_bad_what_and_where() -> None:
    dashboards = "overview|slo|steps|quality|tools|cost|pipeline"
    for file in (COLLECTOR / "rules").glob("*.yml"):
        for group in yaml.safe_load(file.read_text("utf-8"))["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
                    assert {"summary", "description", "dashboard"} <= set(rule["annotations"]), rule["alert"]
                    assert re.search(
                        rf"^(http://localhost:3000)?/d/claudescope-({dashboards})\b", rule["annotations"]["dashboard"]
                    ), rule["alert"]
