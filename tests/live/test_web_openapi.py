"""Each answer is as the OpenAPI document says, also to requests that nobody would make."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from live_kit import Client, running
from web_data import CHECKS, CONFIDENCES, KINDS, LATENCIES_MS, MODELS, RUNS, SERVICES, STEPS, TEAMS, TOOLS, fill

from claudescope.live.web.parameters import FILTER, read_filter

OBJECTIVES = """\
version: prometheus/v1
service: shop
slos:
  - {name: good, objective: 90, indicator: {step_validity: {service: "*"}}, group_by: [service, kind], for: 0s}
  - {name: answered, objective: 99.9, indicator: {errors: {}}}
  - name: promql
    objective: 99
    sli: {raw: {error_ratio_query: "avg_over_time(x[{{.window}}])"}}
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("data")
    spec = folder / "slo.yml"
    spec.write_text(OBJECTIVES)
    with running(folder / "data", jaeger="http://127.0.0.1:16686", slo=(spec,)) as live:
        fill(live)
        yield live


@pytest.fixture(scope="module")
def document(filled: Client) -> dict[str, Any]:
    return filled.get("/api/openapi.json").json


def checked(live: Client, document: dict[str, Any], path: str, of: str = "", status: int = 200) -> Any:
    """The answer, after it was found to be as the document says."""
    answer = live.get(path)
    assert answer.status == status, answer.body
    said = document["paths"][of or path.partition("?")[0]]["get"]["responses"][str(status)]
    if "$ref" in said:
        said = document["components"]["responses"][said["$ref"].rpartition("/")[2]]
    schema = said["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**schema, "components": document["components"]})
    errors = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(answer.json)]
    assert errors == []
    return answer.json


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/healthz",
        "/metrics",
        "/api/steps",
        "/api/runs",
        "/api/runs/{run_id}",
        "/api/traces/{trace_id}",
        "/api/heatmap",
        "/api/distribution",
        "/api/facets",
        "/api/slos",
        "/api/slos/{slo_id}",
        "/api/slos/{slo_id}/explain",
        "/api/status",
        "/api/counters",
        "/api/stream",
        "/api/openapi.json",
    }
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, f"{name} is said and never given"


def test_every_answer_with_something_in_it(filled: Client, document: dict[str, Any]) -> None:
    steps = checked(filled, document, "/api/steps?limit=1000")
    assert len(steps["items"]) == RUNS * STEPS
    runs = checked(filled, document, "/api/runs")
    assert len(runs["items"]) == RUNS
    for run in runs["items"]:
        whole = checked(filled, document, f"/api/runs/{quote(run['run_id'], safe='')}", "/api/runs/{run_id}")
        assert (whole["run"], len(whole["steps"]), len(whole["calls"])) == (run, STEPS, 1)
        assert len(whole["spans"]) == STEPS + 2
    trace = checked(filled, document, f"/api/traces/{'01' * 16}", "/api/traces/{trace_id}")
    assert (len(trace["spans"]), len(trace["events"])) == (STEPS + 2, 1)
    heat = checked(filled, document, "/api/heatmap?range=15m")
    assert sum(cell["count"] for cell in heat["items"]) == RUNS * STEPS
    distribution = checked(filled, document, "/api/distribution?range=1h")
    assert distribution["total"]["count"] == RUNS * STEPS
    facets = checked(filled, document, "/api/facets")
    assert {item["value"]: item["count"] for item in facets["service"]} == dict.fromkeys(SERVICES, RUNS * STEPS // 2)
    status = checked(filled, document, "/api/status")
    assert status["dropped"] == [{"reason": "queue_full", "kind": "step", "value": 4.0}]
    assert (status["jaeger_url"], status["content"]) == ("http://127.0.0.1:16686", True)
    assert (status["store"]["steps"], status["store"]["spans"]) == (RUNS * STEPS, RUNS * (STEPS + 2))
    assert len(checked(filled, document, "/api/counters")["items"]) == 2
    until = time.monotonic() + 60
    while not checked(filled, document, "/api/slos")["alerts"]:
        assert time.monotonic() < until
        time.sleep(0.2)
    slos = checked(filled, document, "/api/slos")["items"]
    assert [slo["id"] for slo in slos] == ["shop-good", "shop-answered", "shop-promql"]
    for slo in slos:
        checked(filled, document, f"/api/slos/{slo['id']}", "/api/slos/{slo_id}")
    found = checked(filled, document, "/api/slos/shop-good/explain", "/api/slos/{slo_id}/explain")
    assert found["explanation"]["verdict"] in ("slices", "none", "insufficient_data")
    checked(filled, document, "/healthz")
    checked(filled, document, "/api/openapi.json")


def test_errors_are_as_told(filled: Client, document: dict[str, Any]) -> None:
    assert checked(filled, document, "/api/steps?x=1", status=400)["error"]["code"] == "bad_parameter"
    gone = checked(filled, document, "/api/runs/none", "/api/runs/{run_id}", 404)
    assert gone["error"]["code"] == "no_such_run"
    for path, of in (("none", "{slo_id}"), ("shop-promql/explain", "{slo_id}/explain")):
        gone = checked(filled, document, f"/api/slos/{path}", f"/api/slos/{of}", 404)
        assert gone["error"]["code"] == "no_such_slo"
    gone = checked(filled, document, f"/api/traces/{'0f' * 16}", "/api/traces/{trace_id}", 404)
    assert gone["error"]["code"] == "no_such_trace"
    long = checked(filled, document, "/api/steps?kind=" + "k" * 9000, "/api/steps", 414)
    assert long["error"]["code"] == "query_too_long"


# ---------------------------------------------------------------------------------------------- filters

_KNOWN: dict[str, list[str]] = {
    "service": [*SERVICES, "none"],
    "model": [*filter(None, MODELS), "none"],
    "kind": [*KINDS, "none"],
    "tool": [*TOOLS, "none"],
    "check": [*CHECKS, "other"],
    "index": [str(index) for index in range(17)],
    "valid": ["true", "false", "unknown"],
    "confidence_min": [str(share) for share in CONFIDENCES if share is not None],
    "confidence_max": [str(share) for share in CONFIDENCES if share is not None],
    "confidence_known": ["true", "false"],
    "latency_min_us": [str(ms * 1000) for ms in LATENCIES_MS],
    "latency_max_us": [str(ms * 1000) for ms in LATENCIES_MS],
    "label": [*(f"team:{team}" for team in TEAMS), "tier:gold", "tier:", "none:x"],
}
_ONE = st.sampled_from(sorted(_KNOWN)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(_KNOWN[name])))


def test_every_parameter_of_a_filter_is_tried() -> None:
    assert set(_KNOWN) == set(FILTER)


@given(query=st.lists(_ONE, min_size=1, max_size=4))
@settings(max_examples=80, derandomize=True, deadline=None, phases=[Phase.generate])
def test_answers_are_those_that_the_filter_says(
    filled: Client, document: dict[str, Any], query: list[tuple[str, str]]
) -> None:
    """Lists, facets and figures against ``StepFilter.matches`` on all records."""
    text = "&".join(f"{name}={quote(value)}" for name, value in query)
    try:
        where = read_filter(query)
    except ValueError:
        checked(filled, document, f"/api/steps?{text}", status=400)
        return
    every = filled.items("/api/steps?limit=1000&order=asc")
    wanted = [step for step in every if where.matches(step)]  # type: ignore[arg-type]
    assert checked(filled, document, f"/api/steps?limit=1000&order=asc&{text}")["items"] == wanted
    runs = checked(filled, document, f"/api/runs?limit=1000&{text}")["items"]
    assert {run["run_id"] for run in runs} == {step["run_id"] for step in wanted}
    figures = checked(filled, document, f"/api/distribution?{text}")
    if figures["exact"] and not figures["partial"]:
        assert figures["total"]["count"] == len(wanted)
        assert sum(item["count"] for item in figures["items"]) == len(wanted)
    facets = checked(filled, document, f"/api/facets?{text}")
    assert facets["exact"] == figures["exact"]


# ---------------------------------------------------------------------------------------------- schemathesis


@pytest.mark.skipif(sys.version_info < (3, 11), reason="schemathesis needs Python 3.11")
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_requests_that_nobody_would_make(filled: Client, document: dict[str, Any], mode: str) -> None:
    import schemathesis
    from schemathesis.config import SchemathesisConfig
    from schemathesis.generation import GenerationMode

    config = SchemathesisConfig.from_dict(
        {
            "checks": {
                "negative_data_rejection": {"expected-statuses": [400, 404, 405, 414]},
                "positive_data_acceptance": {"enabled": False},  # a range upside down is an error that no schema tells
            }
        }
    )
    schema = schemathesis.openapi.from_dict(document, config=config)
    for found in schema.get_all_operations():
        operation = found.ok()
        takes = document["paths"][operation.path]["get"]["parameters"]
        if operation.path == "/api/stream" or (mode == "negative" and not takes):
            continue  # it never ends; nothing could be wrong

        @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
        @settings(
            max_examples=10,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            case.call_and_validate(base_url=filled.url)

        ask()


def test_the_documents_parameters_are_in_the_docs(document: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
    for path, item in document["paths"].items():
        assert re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), path) in text
        for parameter in item["get"]["parameters"]:
            assert f"`{parameter['name']}`" in text or parameter["in"] == "path"
