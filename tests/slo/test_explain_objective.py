"""The command on an objective: from a Prometheus over real HTTP, and from a store of the embedded server."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / room) for room in ("explainer", "live")]

from explainer_kit import FakePrometheus, Recorder
from live_kit import Sender
from store_kit import open_store

from claudescope import semconv
from claudescope.cli.main import main

SPEC = """\
version: prometheus/v1
service: shop
slos:
  - name: valid
    objective: 99
    indicator: {step_validity: {}}
  - name: query
    objective: 99
    sli: {events: {error_query: 'sum(rate(e_total[{{.window}}]))', total_query: 'sum(rate(t_total[{{.window}}]))'}}
"""
AT_MS = 1_796_032_800_000
HOUR = 3_600_000


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "slo.yml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def explained(spec: Path, *flags: str) -> int:
    return main(["slo", "explain", "--slo", str(spec), "--at", str(AT_MS), *flags])


def test_from_prometheus(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = FakePrometheus()
    answers.exemplars = [
        {
            "seriesLabels": {"service_name": "shop", "gen_ai_tool_name": "search"},
            "exemplars": [{"labels": {"trace_id": "ab" * 16}, "value": "1", "timestamp": AT_MS / 1000 - 5}],
        }
    ]
    with Recorder(answers) as server:
        assert explained(spec, "--objective", "valid", "--prometheus", server.url, "--json", "--window", "30m") == 0
    (first,) = [one for one in json.loads(capsys.readouterr().out)["slices"] if not one.get("alternative")]
    assert first["labels"] == {"gen_ai_tool_name": "search"}
    assert first["bad"] == 90  # .05 a second for half an hour
    ranges = [given for path, given in answers.queries if path == "query_range"]
    assert {given["end"][0] for given in ranges} == {f"{AT_MS / 1000:.3f}"}


def test_a_prometheus_that_does_not_answer(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = FakePrometheus()
    answers.status = 500
    with Recorder(answers) as server:
        assert explained(spec, "--objective", "shop-valid", "--prometheus", server.url) == 2
    assert "Name a Prometheus that has the objective's series." in capsys.readouterr().err


def test_from_the_store(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(1)
    sender = Sender("shop")
    for hour in range(4):
        for at in range(240):
            tool = ("search", "read", "write")[at % 3]
            wrong = chance.random() < (0.5 if hour == 0 and tool == "search" else 0.02)
            sender.step(
                at % 4,
                {semconv.STEP_VALID: not wrong, semconv.TOOL_NAME: tool, semconv.CHAIN_ID: f"run-{hour}-{at}"},
                trace=(hour * 240 + at + 1).to_bytes(16, "big"),
                end_ms=AT_MS - hour * HOUR - at * 10_000 - 1,
            )
    folder = tmp_path / "data"
    with open_store(folder) as store:
        store.write(sender)
    assert explained(spec, "--objective", "valid", "--data", str(folder), "--json") == 0
    first = json.loads(capsys.readouterr().out)["slices"][0]
    assert first["labels"] == {"gen_ai_tool_name": "search"}
    assert first["total"] == 80
    assert len(first["traces"]) == 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "there are 2 objectives. Name one with --objective: shop-valid, shop-query."),
        (["--objective", "x"], "there is no objective 'x'. It has shop-valid, shop-query."),
        (["--objective", "query", "--data", "x"], "shop-query: its indicator is a query."),
        (["--objective", "valid", "--data", "no-folder"], "no-folder"),
        (["--objective", "valid", "--prometheus", "file:///etc/passwd"], "--prometheus is 'file:///etc/passwd'."),
        (["--objective", "valid", "--prometheus", "http://[::1"], "--prometheus is 'http://[::1'."),
        (["--objective", "valid", "--baseline", "3"], "--baseline goes with --csv, --steps or --prometheus."),
        (["--objective", "valid", "--window", "99999999999d"], "--window is '99999999999d'. It takes 366d at most."),
        (["--objective", "valid", "--over", "1s"], "--over goes with --steps."),
        (["--objective", "valid", "--bad", "x"], "--bad goes with --csv."),
    ],
)
def test_wrong_use(spec: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str) -> None:
    assert explained(spec, *flags) == 2
    assert message in capsys.readouterr().err
