"""Records of steps, explained: slices, nodes, clusters."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from claudescope.cli.main import main
from claudescope.errors import UsageError
from claudescope.slo.explain.steps import History, read_steps

MINUTE = 60_000
START = 1_800_000_000_000


def step(run: int, at: int, ended: int, **more: Any) -> dict[str, Any]:
    return {
        "trace_id": f"{run:032x}",
        "span_id": f"{run * 100 + at:016x}",
        "call_span_id": f"{run * 10 + at // 3:016x}",
        "run_id": f"run-{run}",
        "step_index": at,
        "kind": "tool_run" if at % 3 == 2 else "thinking",
        "name": None,
        "service": "shop",
        "model": "house-model-1",
        "tool": ("search", "read")[at // 3] if at % 3 == 2 else None,
        "ts_ms": ended,
        "latency_us": 500_000,
        "latency_source": "measured",
        "is_valid": True,
        "reasons": [],
        "labels": {"tier": ("gold", "plus")[run % 2]},
        **more,
    }


def records(minutes: int = 10, each: int = 60, slow: bool = False, wrong: bool = True) -> list[dict[str, Any]]:
    """Runs of two calls with a tool each; in the last minute most runs of tool read fail, or are slow."""
    chance = random.Random(1)
    found = []
    for minute in range(minutes):
        for run in range(minute * each, (minute + 1) * each):
            for at in range(6):
                hit = minute == minutes - 1 and at == 5 and chance.random() < 0.8
                bad = (hit and wrong) or chance.random() < 0.02
                found.append(
                    step(
                        run,
                        at,
                        START + minute * MINUTE + run % each * 900 + at * 100,
                        is_valid=not bad,
                        reasons=[{"check": "tool_result", "code": "tool_result.error"}] if bad else [],
                        latency_us=round(chance.uniform(450_000, 550_000)) * (5 if hit and slow else 1),
                    )
                )
    return found


def write(folder: Path, steps: list[dict[str, Any]]) -> Path:
    path = folder / "steps.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in steps), encoding="utf-8")
    return path


def test_the_command_names_slice_node_and_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, records())
    assert main(["slo", "explain", "--steps", str(path), "--window", "1m", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    first = printed["slices"][0]
    # step 5 and tool read are the same steps: the shorter description is one label
    assert first["labels"] in ({"claudescope.step.index": "5"}, {"gen_ai.tool.name": "read"})
    assert first["total"] == 60
    assert printed["nodes"][0]["node"] == "tool read"
    cluster = printed["clusters"][0]
    assert (cluster["reason"], cluster["node"], cluster["shape"]) == ("tool_result.error", "tool read", "chain")
    assert len(cluster["traces"]) == 3
    assert printed["failing"]["chain"]["runs"] == 60
    assert printed["failing"]["chain"]["runs_before"] == 540
    assert printed["failing"]["single"]["runs"] == 0


def test_the_command_says_it_in_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, records())
    assert main(["slo", "explain", "--steps", str(path), "--window", "1m", "--at", str(START + 10 * MINUTE)]) == 0
    text = capsys.readouterr().out
    assert "bad steps beyond what was expected are in" in text
    assert "Below run, tool read is unusual: " in text
    assert "Runs of three steps or more: " in text
    assert " runs failed after good steps at tool read: tool_result.error. For example: " in text


def test_slow_steps_are_explained_by_their_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, records(slow=True, wrong=False))
    flags = ["--window", "60s", "--over", "800ms", "--baseline", "5"]
    assert main(["slo", "explain", "--steps", str(path), *flags]) == 0
    text = capsys.readouterr().out
    assert "Below run, tool read is unusual: 2." in text  # 5 times half a second
    assert "at tool read: slow." in text


def test_times_of_the_app_itself_do_not_count(tmp_path: Path) -> None:
    steps = [step(1, 0, START, latency_source="consumer", latency_us=10**7), step(1, 1, START, is_valid=None)]
    path = write(tmp_path, steps)
    assert [one.bad for one in read_steps(path, over=1.0)] == [None, False]
    assert [one.bad for one in read_steps(path)] == [False, None]
    assert History.of(read_steps(path), START + 1, MINUTE).cells().now.total == 1


def test_what_is_older_than_the_baseline_does_not_count(tmp_path: Path) -> None:
    steps = [step(at, 0, START - at * MINUTE) for at in range(40)]
    history = History.of(read_steps(write(tmp_path, steps)), START + 1, MINUTE)
    assert (len(history.now), len(history.before)) == (1, 24)
    assert len(History.of(read_steps(tmp_path / "steps.jsonl"), START + 1, MINUTE, 3).before) == 3


@pytest.mark.parametrize(
    "line", ["x", "[]", "{}", '{"run_id": "a", "latency_us": "x", "is_valid": true}', "[" * 100_000]
)
def test_what_is_no_record_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, [step(1, 0, START)])
    path.write_text(path.read_text(encoding="utf-8") + "\n" + line, encoding="utf-8")
    with pytest.raises(UsageError, match=r"steps.jsonl:3: not the record of a step"):
        read_steps(path)


def test_a_file_without_steps(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff")
    for name, message in (("empty", "no step in it"), ("binary", "not UTF-8"), ("none", "No such file")):
        with pytest.raises(UsageError, match=message):
            read_steps(tmp_path / name)


def test_how_far_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "steps.jsonl"
    path.write_text((json.dumps(step(1, 0, START)) + "\n") * 20_000, encoding="utf-8")
    read_steps(path, tell=said.append)
    assert said == [f"{path}: 20,000 steps read"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "{}", "--time", "x"], "--time goes with --csv. Leave it out."),
        (["--steps", "{}", "--window", "0"], "--window is '0'."),
        (["--steps", "{}", "--over", "soon"], "--over is 'soon'. It takes a duration such as 7d, 12h, 30m or 90s, or"),
        (["--steps", "{}", "--at", "0"], "no step ended in the 3600 s before 0. Its steps ended from"),
        (["--csv", "{}", "--time", "a", "--bad", "b", "--total", "c"], "--csv needs --at."),
        (
            ["--csv", "{}", "--time", "a", "--bad", "b", "--total", "c", "--at", "1", "--node", "x"],
            "--node goes with --steps.",
        ),
        ([], "Give one of --csv, --steps and --slo"),
        (["--csv", "a", "--steps", "b"], "not allowed with argument"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str) -> None:
    path = write(tmp_path, [step(1, 0, START)])
    assert main(["slo", "explain", *(flag.format(path) for flag in flags)]) == 2
    assert message in capsys.readouterr().err


def test_a_run_of_records_without_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [step(at, 0, START + at, trace_id=None, call_span_id=None, model=None, labels=None) for at in range(9)]
    assert main(["slo", "explain", "--steps", str(write(tmp_path, steps))]) == 0
    assert capsys.readouterr().out == "There were no steps in the baseline.\n"
