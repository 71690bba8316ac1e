"""Grafana's provisioning files, and that they agree with the dashboards and with docker-compose.yml."""

import json
import re
from pathlib import Path

import pytest
import yaml

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

import promql_parser as promql

from claudescope import semconv
from claudescope.grafana.linter import known_labels, undocumented
from claudescope.grafana.series import SERVICE, label
from claudescope.stack.checks.grafana import DATA_SOURCES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards" / "provisioning"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]


def load(name):
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


SOURCES = {source["uid"]: source for source in load("datasources/stack.yaml")["datasources"]}


def test_data_sources_are_services_of_the_compose_file():
    assert {uid: source["name"] for uid, source in SOURCES.items()} == DATA_SOURCES  # what `stack check` asks for
    for source in SOURCES.values():
        host = source["url"].removeprefix("http://").split(":")[0]
        assert host in COMPOSE


def test_an_exemplar_leads_to_its_trace():
    (destination,) = SOURCES["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert (destination["name"], destination["datasourceUid"]) == ("trace_id", "jaeger")


def test_a_span_leads_to_the_metrics_of_its_like():
    metrics = SOURCES["jaeger"]["jsonData"]["tracesToMetrics"]
    assert metrics["datasourceUid"] == "prometheus"
    assert {tag["key"]: tag["value"] for tag in metrics["tags"]} == {
        semconv.SERVICE_NAME: SERVICE,
        semconv.STEP_KIND: label(semconv.STEP_KIND),
        semconv.REQUEST_MODEL: label(semconv.REQUEST_MODEL),
    }
    assert SOURCES["jaeger"]["jsonData"]["nodeGraph"] == {"enabled": True}
    for query in metrics["queries"]:
        # Grafana makes one dollar sign of two, then puts the tags in
        assert "$$__tags" in query["query"]
        assert "$" not in query["query"].replace("$$__tags", "")
        tags = ", ".join(f'{tag["value"]}="x"' for tag in metrics["tags"])
        assert undocumented(promql.parse(query["query"].replace("$$__tags", tags)), known_labels()) == []


def test_dashboards_and_the_home_dashboard_are_where_the_compose_file_mounts_them():
    grafana = COMPOSE["grafana"]
    mounts = {volume.split(":")[1]: volume.split(":")[0] for volume in grafana["volumes"]}
    (provider,) = load("dashboards/claudescope.yaml")["providers"]
    assert mounts[provider["options"]["path"]] == "./dashboards/json"
    assert mounts["/etc/grafana/provisioning"] == "./dashboards/provisioning"
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert json.loads((ROOT / "dashboards" / "json" / home.name).read_text("utf-8"))["title"] == "Overview"


def links_from_elsewhere():
    patterns = json.loads((ROOT / "collector" / "jaeger-ui.json").read_text("utf-8"))["linkPatterns"]
    yield from (pattern["url"] for pattern in patterns)
    for path in (ROOT / "collector" / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
            yield from (rule["annotations"]["dashboard"] for rule in group["rules"] if "alert" in rule)


def test_links_of_jaeger_and_of_alerts_lead_to_dashboards_and_variables_that_there_are():
    found = list(links_from_elsewhere())
    assert len(found) > 10
    for link in found:
        uid, _, query = link.partition("/d/")[2].partition("?")
        board = json.loads((ROOT / "dashboards" / "json" / f"{uid}.json").read_text("utf-8"))
        variables = {variable["name"] for variable in board["templating"]["list"]}
        assert {name.removeprefix("var-") for name in re.findall(r"var-[a-z]+", query)} <= variables
