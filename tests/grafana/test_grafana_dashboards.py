"""The committed dashboards: that they are what the code makes, and what holds for every panel of them."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")

from claudescope.grafana.catalogue import dashboards, encoded
from claudescope.grafana.cost import price_rules
from claudescope.grafana.expressions import expressions, panels
from claudescope.grafana.linter import lost_keys, query_faults
from claudescope.grafana.stack_metrics import WINDOWS
from claudescope.grafana.thresholds import BURN_RATE
from claudescope.prices import Prices
from claudescope.slo.tiers import DEFAULT_TIERS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards" / "json"
UIDS = ["overview", "slo", "steps", "quality", "tools", "cost", "pipeline"]
COMMITTED = {uid: json.loads((FOLDER / f"claudescope-{uid}.json").read_text("utf-8")) for uid in UIDS}
every_dashboard = pytest.mark.parametrize("uid", UIDS)


def all_panels():
    return [pytest.param(uid, panel, id=f"{uid}/{panel['title']}") for uid in UIDS for panel in panels(COMMITTED[uid])]


def test_the_committed_files_are_what_the_code_makes():
    made = {f"{uid}.json": encoded(found) for uid, found in dashboards(Prices.load()).items()}
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*")} == made, "claudescope dashboards build"
    rules = ROOT / "collector" / "rules" / "prices.yml"
    assert rules.read_text("utf-8") == price_rules(Prices.load()), "claudescope dashboards build"


@every_dashboard
def test_the_typed_sdk_loses_no_key(uid):
    assert lost_keys(COMMITTED[uid]) == []


@every_dashboard
def test_every_query_parses_and_every_metric_and_label_is_known(uid):
    assert list(query_faults(COMMITTED[uid])) == []
    assert len(list(expressions(COMMITTED[uid]))) > 20


@every_dashboard
def test_identity_time_and_links(uid):
    found = COMMITTED[uid]
    assert (found["uid"], found["tags"], found["schemaVersion"]) == (f"claudescope-{uid}", ["claudescope"], 41)
    assert found["description"]
    (link,) = found["links"]
    assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == (
        "dashboards",
        ["claudescope"],
        True,
        True,
    )
    assert [variable["name"] for variable in found["templating"]["list"][:3]] == ["datasource", "traces", "service"]


@every_dashboard
def test_panels_fill_the_24_columns_without_overlap_and_have_numbers(uid):
    taken = set()
    everything = COMMITTED[uid]["panels"]
    for panel in everything:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place.get("x", 0), place.get("x", 0) + place["w"])
            for y in range(place.get("y", 0), place.get("y", 0) + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells), panel["title"]
        taken |= cells
    height = 1 + max(y for _, y in taken)
    assert len(taken) == 24 * height, "there is a hole"
    assert [panel["id"] for panel in everything] == list(range(1, len(everything) + 1))


@pytest.mark.parametrize(("uid", "panel"), all_panels())
def test_every_panel_is_described_and_says_what_is_missing(uid, panel):
    assert panel["title"]
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["noValue"] not in ("", "No data")
    assert {target["datasource"]["uid"] for target in panel["targets"]} <= {"${datasource}", "${traces}"}
    letters = [target["refId"] for target in panel["targets"]]
    assert letters == list("ABCDEFGHIJ"[: len(letters)])
    if panel["type"] not in ("table", "heatmap"):
        assert defaults["unit"]
    if panel["type"] == "timeseries":
        assert panel["options"]["legend"]["displayMode"] == "table"
        assert all(target["legendFormat"] for target in panel["targets"])


def titled(uid, title, kind=""):
    (panel,) = [one for one in panels(COMMITTED[uid]) if one["title"] == title and kind in ("", one["type"])]
    return panel


@pytest.mark.parametrize("title", ["Latency, p95", "Mean confidence", "Invalid share"])
def test_heat_maps_by_step_number_keep_zeros_and_match_exemplars_by_the_number(title):
    panel = titled("steps", title)
    (target,) = panel["targets"]
    assert panel["type"] == "heatmap"
    assert (target["legendFormat"], target["exemplar"], target["format"]) == (
        "{{claudescope_step_index}}",
        True,
        "time_series",
    )
    assert panel["options"]["filterValues"] == {"le": -1}
    assert panel["options"]["calculate"] is False
    # Grafana puts an exemplar into the row whose first label it has: there must be no other one
    groups = re.findall(r"by \(([^)]*)\)", target["expr"])
    assert {label.strip() for group in groups for label in group.split(",")} <= {"claudescope_step_index", "le"}


def test_the_distribution_of_a_chosen_step_is_of_buckets_with_exemplars():
    (target,) = titled("steps", "Latency distribution of step $step")["targets"]
    assert (target["format"], target["exemplar"], target["legendFormat"]) == ("heatmap", True, "{{le}}")
    assert 'claudescope_step_index=~"$step"' in target["expr"]
    assert 'claudescope_step_latency_source!="consumer"' in target["expr"]


def links_of(panel):
    return {
        (override["matcher"]["options"], link["title"]): link["url"]
        for override in panel["fieldConfig"]["overrides"]
        for item in override["properties"]
        if item["id"] == "links"
        for link in item["value"]
    }


def test_the_worst_steps_lead_to_their_traces():
    links = links_of(titled("steps", "Most often invalid"))
    url = links["Step", "Traces in which this step (0 to 15) is invalid"]
    assert url.startswith("/explore?")
    for part in (
        "claudescope.step.valid%3Dfalse",
        "claudescope.step.kind%3D${__data.fields.Kind}",
        "claudescope.step.index%3D${__data.fields.Step}",
        "${__data.fields.Service}",
        "${__from}",
    ):
        assert part in url


def test_a_service_of_the_overview_leads_to_its_steps_with_the_time():
    links = links_of(titled("overview", "Services"))
    assert links["Service", "Reasoning steps"] == (
        "/d/claudescope-steps?var-service=${__data.fields.Service:percentencode}&${__url_time_range}"
    )


def test_links_lead_to_dashboards_that_there_are():
    text = json.dumps(COMMITTED)
    assert set(re.findall(r"/d/([\w-]+)", text)) <= {f"claudescope-{uid}" for uid in UIDS}


def test_the_price_table_is_named_with_its_date():
    assert f"List prices of {Prices.load().date}" in COMMITTED["cost"]["description"]
    assert "claude-haiku-5-5 over 100,000 input tokens" in titled("cost", "Cost")["description"]


def test_the_objectives_show_the_explainers_annotations_and_lead_to_its_pages():
    board = COMMITTED["slo"]
    (mark,) = [one for one in board["annotations"]["list"] if one["name"] == "Explanations"]
    assert mark["datasource"] == {"type": "grafana", "uid": "-- Grafana --"}
    assert (mark["target"]["type"], mark["target"]["tags"]) == ("tags", ["claudescope-slo"])
    assert mark["enable"] is True
    (address,) = [one for one in board["templating"]["list"] if one["name"] == "explainer"]
    assert (address["type"], address["query"]) == ("textbox", "http://localhost:9096")
    table = titled("slo", "Objectives", "table")
    found = {
        override["matcher"]["options"]: [link["url"] for prop in override["properties"] for link in prop["value"]]
        for override in table["fieldConfig"]["overrides"]
        if override["properties"][0]["id"] == "links"
    }
    assert found["Objective"][0] == "${explainer}/explanations?slo=${__data.fields.Objective:percentencode}"


def test_the_windows_and_bounds_of_objectives_are_those_of_the_default_tiers():
    windows = {str(window) for tier in DEFAULT_TIERS for window in (tier.short, tier.long)}
    assert set(WINDOWS) == windows
    graph = titled("slo", "Burn rate by window")
    assert [target["legendFormat"].split()[0] for target in graph["targets"]] == [*WINDOWS, "line"]
    assert BURN_RATE.wrong in {tier.factor for tier in DEFAULT_TIERS if tier.severity == "page"}


def test_the_overview_tells_of_objectives_and_of_none():
    for title, said in (
        ("Lowest budget left", "No objectives"),
        ("Burning now", "0"),
        ("Budget left", "No objectives"),
    ):
        assert titled("overview", title)["fieldConfig"]["defaults"]["noValue"] == said
