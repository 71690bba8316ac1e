"""Objectives in a whole server: counted, told, explained, read again, and there after a restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from live_kit import Client, Sender, running
from objectives_kit import Receiver

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.live.objectives.specs import Specs
from claudescope.live.server import LiveServer
from claudescope.settings import Settings

T = TypeVar("T")
SERVE_OBJECTIVES = (
    "import sys; from pathlib import Path; from claudescope.live.server import serve;"
    "from claudescope.settings import Settings;"
    "s = Settings({'port': 0, 'grpc_port': 0, 'data': Path(sys.argv[1]), 'slo': (Path(sys.argv[2]),)});"
    "sys.exit(serve(s, open_browser=False, on_ready=lambda url: print(url, flush=True)))"
)

SPEC = """\
version: prometheus/v1
service: app
slos:
  - name: good
    objective: 99
    indicator: {step_validity: {}}
    group_by: [model]
    for: 0s
    keep_firing_for: 10s
    windows:
      - {name: fast, severity: page, short: 5m, long: 1h, factor: 14.4}
  - name: sloth
    objective: 99.9
    sli:
      events:
        error_query: sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))
        total_query: sum(rate(http_requests_total[{{.window}}]))
"""


def wait_for(what: Callable[[], T | None], seconds: float = 60) -> T:
    until = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < until
        time.sleep(0.1)


def send(live: Client, bad: int, good: int, ago_ms: int = 30_000, model: str = "m", **more: Any) -> None:
    now = int(time.time() * 1000)
    for at in range(0, bad + good, 500):
        sender = Sender("app")
        for number in range(at, min(at + 500, bad + good)):
            trace = os.urandom(16)
            attributes = {
                semconv.STEP_VALID: number >= bad,
                semconv.REQUEST_MODEL: model,
                semconv.CHAIN_ID: trace.hex(),
                **{key.replace("__", "."): value for key, value in more.items()},
            }
            sender.step(number % 3, attributes, trace=trace, end_ms=now - ago_ms - number)
        live.send(sender)


def slo(live: Client, name: str = "app-good") -> dict[str, Any]:
    answer = live.get(f"/api/slos/{name}")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "slo.yml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def server(tmp_path: Path, spec: Path, receiver: Receiver) -> Callable[..., Any]:
    """Starts one with the objectives and a webhook."""

    def start(**more: Any) -> Any:
        given = {"slo": (spec,), "slo_webhook": receiver.url, "slo_webhook_token": "t", **more}
        return running(tmp_path / "data", **given)

    return start


def test_a_burn_is_counted_told_and_over(
    server: Callable[..., Any],
    receiver: Receiver,
    spec: Path,
) -> None:
    with server() as live:
        listed = wait_for(lambda: (found := live.get("/api/slos").json)["evaluated_ms"] and found)
        assert [(one["id"], one["state"]) for one in listed["items"]] == [
            ("app-good", "no_data"),
            ("app-sloth", "uncounted"),
        ]
        assert listed["items"][1]["why_not"] == "its indicator is PromQL"
        assert listed["files"] == [str(spec)]
        assert listed["channels"] == [{"name": "webhook", "error": None}]
        send(live, 0, 300, model="n")  # before those that fire: an evaluation may come between the two
        send(live, 40, 160)
        body = wait_for(lambda: receiver.notices and receiver.notices[0])
        (alert,) = body["alerts"]
        assert (body["status"], alert["labels"]["gen_ai_request_model"]) == ("firing", "m")
        assert alert["labels"]["burnrate_tier"] == "fast"
        assert alert["annotations"]["description"].startswith("40 of 200 events were bad in 1h (burn rate 20.00)")
        assert receiver.tokens[0] == "Bearer t"
        now = slo(live)
        # 40 of 500 are bad: .08 / .01 = 8 times the budget, so 1 - 8 is left
        assert (now["state"], now["bad"], now["total"]) == ("burning", 40, 500)
        assert now["budget_remaining"] == pytest.approx(-7)
        assert [(group["labels"], group["bad"], group["total"]) for group in now["groups"]] == [
            ({"gen_ai_request_model": "m"}, 40, 200),
            ({"gen_ai_request_model": "n"}, 0, 300),
        ]
        assert now["windows"][0] == {"window": "5m", "bad": 40, "total": 500, "burn_rate": pytest.approx(8)}
        assert [tier["state"] for tier in now["tiers"]] == ["firing"]
        assert sum(bad for _, bad, _ in now["spark"]) == 40
        (alert,) = live.get("/api/slos").json["alerts"]
        assert alert["labels"]["claudescope_slo"] == "app-good"
        figures = live.get("/metrics").body.decode()
        own = 'claudescope_slo="app-good",claudescope_slo_name="good",claudescope_slo_service="app"'
        assert f"slo:objective:ratio{{{own}}} 0.99" in figures
        assert f'slo:sli_error:ratio_rate5m{{{own},gen_ai_request_model="m"}} 0.2' in figures

    with server() as live:  # what was told is not told again
        wait_for(lambda: slo(live)["state"] == "burning")
        send(live, 0, 4000)  # 40 of 4200 in an hour: below 14.4 %, for ten seconds
        body = wait_for(lambda: len(receiver.notices) > 1 and receiver.notices[1])
        assert [(alert["status"], alert["labels"]["burnrate_tier"]) for alert in body["alerts"]] == [
            ("resolved", "fast")
        ]
        assert slo(live)["state"] == "ok"  # 40 of 4500 is under 1 %
    assert len(receiver.notices) == 2


def test_files_that_become_bad_keep_the_objectives(server: Callable[..., Any], spec: Path) -> None:
    with server() as live:
        spec.write_text(SPEC.replace("99.9", "101"))
        error = wait_for(lambda: live.get("/api/slos").json["error"])
        assert f"{spec}:" in error
        assert slo(live)["target"] == 0.99
        spec.write_text(SPEC.replace("objective: 99\n", "objective: 98\n").replace("- name: good", "- name: better"))
        wait_for(lambda: live.get("/api/slos").json["items"][0]["id"] == "app-better")
        assert live.get("/api/slos").json["error"] is None
        assert live.get("/api/slos/app-good").status == 404
        assert live.get("/api/slos/app-good/explain").status == 404
        assert live.get("/api/slos/app-sloth/explain").status == 404


def test_stored_steps_are_counted_when_an_objective_comes(tmp_path: Path, spec: Path) -> None:
    with running(tmp_path / "data") as live:
        send(live, 5, 6000)
        assert live.get("/api/slos").json["items"] == []
        assert live.get("/api/slos/app-good").status == 404
    with running(tmp_path / "data", slo=(spec,)) as live:
        wait_for(lambda: (found := slo(live))["state"] == "ok" and found["total"] == 6005)
        assert slo(live)["bad"] == 5


def test_an_explanation_finds_the_slice(server: Callable[..., Any], tmp_path: Path, spec: Path) -> None:
    with server() as live:
        for hour in range(8, 0, -1):
            send(live, 1, 99, hour * 3_600_000 + 60_000, gen_ai__tool__name="search", claudescope__label__tier="gold")
            send(live, 1, 99, hour * 3_600_000 + 60_000, claudescope__label__tier="free")
        send(live, 60, 40, gen_ai__tool__name="search", claudescope__label__tier="gold")
        send(live, 1, 99, claudescope__label__tier="free")
        answer = live.get("/api/slos/app-good/explain")
        assert answer.status == 200, answer.body
        found = answer.json
        assert found["to_ms"] - found["from_ms"] == 3_600_000
        assert found["explanation"]["verdict"] == "slices"
        best = found["explanation"]["slices"][0]
        assert (best["bad"], best["total"]) == (60, 100)
        assert set(best["labels"].items()) & {("gen_ai_tool_name", "search"), ("claudescope_label_tier", "gold")}
        assert len(best["traces"]) == 3
        run = best["traces"][0]["url"].partition("run=")[2].partition("&")[0]
        (step,) = live.items(f"/api/steps?run={run}")
        assert (step["is_valid"], step["tool"]) == (False, "search")
        only = live.get("/api/slos/app-good/explain?group=claudescope_label_tier:free").json
        assert only["explanation"]["verdict"] != "slices"


def test_without_a_time_before_slices_are_compared_with_all_else(server: Callable[..., Any]) -> None:
    with server() as live:
        send(live, 40, 20, gen_ai__tool__name="search")
        send(live, 1, 299, gen_ai__tool__name="pay")
        found = live.get("/api/slos/app-good/explain").json
        assert found["baseline_from_ms"] == found["from_ms"]
        assert found["text"].startswith("No history yet: compared with everything else in the same time.")
        best = found["explanation"]["slices"][0]
        # of 360 events 41 are bad, so 6.8 of the 60 of the tool were to be expected
        assert (best["labels"], best["bad"], best["total"]) == ({"gen_ai_tool_name": "search"}, 40, 60)
        assert best["expected"] == pytest.approx(41 / 360 * 60, rel=0.05)


def test_calls_are_explained(tmp_path: Path) -> None:
    spec = tmp_path / "slo.yml"
    spec.write_text(
        "version: prometheus/v1\nservice: app\nslos:\n"
        "  - {name: errors, objective: 99, indicator: {errors: {}}}\n"
        "  - {name: first, objective: 99, indicator: {time_to_first_chunk: {over: 2560ms}}}\n"
        "  - {name: used, objective: 99, indicator: {saturation: {over: 0.8}}}\n"
        "  - {name: sure, objective: 99, indicator: {step_confidence: {below: 0.5}}}\n"
        "  - {name: quick, objective: 99, indicator: {step_latency: {over: 800ms}}}\n"
    )
    now = int(time.time() * 1000)
    with running(tmp_path / "data", slo=(spec,)) as live:
        for back, share in ((5_400_000, 50), (60_000, 2)):
            sender = Sender("app")
            for number in range(400):
                bad = number % share == 0 and number % 2 == 0
                model = "m" if number % 2 == 0 else "n"
                trace = os.urandom(16)
                limit = {"claudescope.ratelimit.tokens.limit": 100}
                call = {
                    semconv.OPERATION_NAME: "chat",
                    semconv.REQUEST_MODEL: model,
                    semconv.TIME_TO_FIRST_CHUNK: 3.0 if bad else 1.0,
                    **({semconv.ERROR_TYPE: "x"} if bad else {}),
                    **limit,
                    "claudescope.ratelimit.tokens.remaining": 10 if bad else 90,
                }
                parent = sender.span(call, trace, end_ms=now - back)
                step = {
                    semconv.REQUEST_MODEL: model,
                    semconv.STEP_CONFIDENCE: 0.4 if bad else 0.9,
                    semconv.STEP_LATENCY_SOURCE: "measured",
                }
                sender.step(0, step, trace=trace, parent=parent, end_ms=now - back, latency_ms=900 if bad else 10)
            live.send(sender)
        for name in ("errors", "first", "used", "sure", "quick"):
            found = wait_for(lambda name=name: (one := slo(live, f"app-{name}"))["total"] == 800 and one)
            assert found["bad"] == 208
            best = live.get(f"/api/slos/app-{name}/explain").json["explanation"]["slices"][0]
            assert (best["labels"], best["bad"], best["total"]) == ({"gen_ai_request_model": "m"}, 200, 200)
            assert len(best["traces"]) == 3


def test_a_bad_file_is_an_error_at_the_start(tmp_path: Path, spec: Path) -> None:
    spec.write_text("version: prometheus/v1\n")
    with pytest.raises(UsageError, match=r"slo\.yml"):
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path / "data", "slo": (spec,)}))
    with running(tmp_path / "data"):  # and nothing is held
        pass


async def test_specs_are_read_again_when_asked(spec: Path) -> None:
    specs = Specs([spec.parent])
    assert [objective.id for objective, _ in specs.counted] == ["app-good"]
    specs.ask()
    assert not await specs.changed()  # the same objectives
    spec.unlink()
    assert not await specs.reload()
    assert specs.error is not None


async def test_an_editors_lock_hides_no_change(spec: Path) -> None:
    (spec.parent / ".#slo.yml").symlink_to("user@host.1")
    specs = Specs([spec.parent])
    spec.write_text(spec.read_text().replace("99", "98"))
    assert await asyncio.wait_for(specs.changed(), 10)


async def test_whatever_a_file_does_the_objectives_of_before_go_on(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = Specs([spec.parent])
    monkeypatch.setattr(specs, "_load", lambda: 1 / 0)
    assert not await specs.reload()
    assert specs.error == "The files cannot be read: ZeroDivisionError."
    assert [objective.id for objective, _ in specs.counted] == ["app-good"]


def test_sighup_reads_the_files(tmp_path: Path, spec: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE_OBJECTIVES, str(tmp_path / "data"), str(spec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with contextlib.ExitStack() as ending:
        ending.callback(process.kill)
        assert process.stdout is not None
        live = Client(process.stdout.readline().decode().strip())
        before = wait_for(lambda: live.get("/api/slos").json["loaded_ms"])
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: live.get("/api/slos").json["loaded_ms"] > before)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0
        assert b"SLO app-sloth is shown and not evaluated, since its indicator is PromQL." in said


def test_without_a_receiver_it_is_logged(tmp_path: Path, spec: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), running(tmp_path / "data", slo=(spec,)) as live:
        send(live, 40, 160)
        wait_for(lambda: any("fast fires: app: good burns" in line for line in caplog.messages))


def test_a_command_hears_of_it(tmp_path: Path, spec: Path) -> None:
    out = tmp_path / "out.json"
    script = tmp_path / "tell.py"
    script.write_text("import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())")
    command = f"{sys.executable} '{script}' '{out}'"
    with running(tmp_path / "data", slo=(spec,), slo_command=command) as live:
        send(live, 40, 160)
        body = wait_for(lambda: out.exists() and out.read_text() and json.loads(out.read_text()))
    assert body["alerts"][0]["labels"]["severity"] == "page"


def test_kill_9_counts_nothing_twice_and_loses_nothing(tmp_path: Path, spec: Path) -> None:
    """The ledger says what the table of steps says, however often the server is killed while it writes."""
    for number in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE_OBJECTIVES, str(tmp_path / "data"), str(spec)], stdout=subprocess.PIPE
        )
        with contextlib.ExitStack() as ending:
            ending.callback(process.wait, 30)
            ending.callback(process.kill)
            assert process.stdout is not None
            ending.callback(process.stdout.close)
            live = Client(process.stdout.readline().decode().strip())
            stop = threading.Event()

            def push(live: Client = live, stop: threading.Event = stop) -> None:
                with contextlib.suppress(Exception):  # it is killed meanwhile
                    while not stop.is_set():
                        send(live, 3, 60)

            thread = threading.Thread(target=push)
            thread.start()
            wait_for(lambda live=live, least=number * 400: live.get("/api/status").json["store"]["steps"] > least + 400)
            process.kill()
            stop.set()
            thread.join()
    with running(tmp_path / "data", slo=(spec,)) as live:
        steps = live.get("/api/status").json["store"]["steps"]
        found = wait_for(lambda: (one := slo(live))["total"] >= steps and not one["waiting"] and one)
        assert found["total"] == steps
        runs = live.get("/api/counters").json["stored"]
        assert (found["total"] - found["bad"], found["bad"]) == (runs["valid"], runs["invalid"])
