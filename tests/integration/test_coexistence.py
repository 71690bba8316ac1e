"""Beside other instrumentations: the call spans with claudescope are those without it, and ours only if none were."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

APP = Path(__file__).with_name("coexistence_app.py")
SCOPES = {
    "genai": "opentelemetry.instrumentation.genai.anthropic",
    "openinference": "openinference.instrumentation.anthropic",
    "traceloop": "opentelemetry.instrumentation.anthropic",
}
NATIVE = "com.anthropic.sdk.python"
OURS = ("claudescope", "chat claude-sonnet-4-5", "CLIENT")
CALLS = ("create", "stream", "helper", "acreate", "astream", "ahelper")
BESIDE = ("none", *SCOPES, "all")
"""``all`` instruments in the order of ``SCOPES``: the first one's span is the innermost."""
PROVIDERS = ("global", "own", "given", "late")
"""Global, the client's own, told to each `instrument()`, or set globally after all of them."""
ORDERS = ("no", "first", "last")


def run_all(providers, python, standin):
    """What each case gave, by (beside, native, claudescope)."""
    keys = [(beside, native, order) for beside in BESIDE for native in (True, False) for order in ORDERS]
    cases = [
        {"providers": providers, "beside": beside, "native": native, "claudescope": order}
        for beside, native, order in keys
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    env |= {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    done = subprocess.run(
        [python, str(APP), standin.url],
        input="".join(f"{json.dumps(case)}\n" for case in cases),
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
    )
    lines = [[json.loads(part) for part in line.split("\t")] for line in done.stdout.splitlines()]
    assert len(lines) == len(cases), done.stderr
    return dict(zip(keys, lines, strict=True))


def calls_of(spans):
    return Counter((span["scope"], span["name"], span["kind"]) for span in spans if not span["step"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("providers", PROVIDERS)
def test_beside(providers, compat_python, standin):
    results = run_all(providers, compat_python, standin)
    for beside in BESIDE:
        for native in (True, False):
            without, _ = results[beside, native, "no"]
            if providers == "global" and beside != "all":
                # the numbers of docs/coexistence.md: two call spans beside the SDK's own tracing, one without it
                count = native + (beside != "none")
                assert {len(found["spans"]) for found in without["found"].values()} == {count}, beside
            for order in ORDERS[1:]:
                for call in CALLS:
                    where = f"beside {beside}, {native=}, claudescope {order}, {call}"
                    result, told = results[beside, native, order]
                    assert "found" in result, f"{where}: {result.get('failed')}"
                    assert told == "", f"{where}: a warning or log message"
                    check(where, without["found"][call], result["found"][call])


def check(where, before, after):
    assert after["answer"] == before["answer"], where
    expected = calls_of(before["spans"])
    assert calls_of(after["spans"]) == (expected or Counter([OURS])), where
    by_id = {span["id"]: span for span in after["spans"]}
    steps = [span for span in after["spans"] if span["step"]]
    assert [step["step"] for step in steps] == ["thinking", "text"], where
    scopes = {scope for scope, _, _ in expected}
    parent = next((scope for scope in (NATIVE, *SCOPES.values()) if scope in scopes), "claudescope")
    assert {by_id[step["parent"]]["scope"] for step in steps} == {parent}, where
    assert by_id[steps[0]["parent"]]["chain"] == steps[0]["chain"], where
    # the spans of a call are in as many traces as without us: nothing is re-parented
    traces = {span["trace"] for span in before["spans"]}
    assert len({span["trace"] for span in after["spans"]}) == (len(traces) or 1), where
