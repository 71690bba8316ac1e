"""Beside other instrumentations: the call spans with claudescope are those without it, and ours only if none were."""

import json
import os
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
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
CASES = [(providers, beside, native) for providers in PROVIDERS for beside in BESIDE for native in (True, False)]


@pytest.fixture(scope="module")
def results(compat_python, standin):
    def all_of(providers):
        cases = [
            {"providers": providers, "beside": beside, "native": native, "claudescope": order}
            for of, beside, native in CASES
            if of == providers
            for order in ("no", "first", "last")
        ]
        env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        env |= {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
        done = subprocess.run(
            [compat_python, str(APP), standin.url],
            input="".join(f"{json.dumps(case)}\n" for case in cases),
            env=env,
            capture_output=True,
            text=True,
            timeout=110,
        )
        lines = [[json.loads(part) for part in line.split("\t")] for line in done.stdout.splitlines()]
        assert len(lines) == len(cases), done.stderr
        return {(*case.values(),): line for case, line in zip(cases, lines, strict=True)}

    with ThreadPoolExecutor(2) as pool:
        return {key: line for part in pool.map(all_of, PROVIDERS) for key, line in part.items()}


def calls_of(spans):
    return Counter((span["scope"], span["name"], span["kind"]) for span in spans if not span["step"])


@pytest.mark.timeout(240)
@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize(("providers", "beside", "native"), CASES)
def test_beside(results, providers, beside, native, order):
    without, _ = results[providers, beside, native, "no"]
    result, told = results[providers, beside, native, order]
    assert "found" in result, result.get("failed")
    assert told == "", "warnings and log messages"
    for call in CALLS:
        before, after = without["found"][call], result["found"][call]
        assert after["answer"] == before["answer"], call
        expected = calls_of(before["spans"])
        assert calls_of(after["spans"]) == (expected or Counter([OURS])), call
        by_id = {span["id"]: span for span in after["spans"]}
        steps = [span for span in after["spans"] if span["step"]]
        assert [step["step"] for step in steps] == ["thinking", "text"], call
        scopes = {scope for scope, _, _ in expected}
        inner = [NATIVE, *(SCOPES[name] for name in SCOPES)]
        parent = next((scope for scope in inner if scope in scopes), "claudescope")
        assert {by_id[step["parent"]]["scope"] for step in steps} == {parent}, call
        assert by_id[steps[0]["parent"]]["chain"] == steps[0]["chain"], call
        # the spans of a call are in as many traces as without us: nothing is re-parented
        assert len({span["trace"] for span in after["spans"]}) == (len({s["trace"] for s in before["spans"]}) or 1)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("beside", "native", "count"),
    [
        ("none", True, 1),
        ("none", False, 0),
        ("genai", True, 2),
        ("genai", False, 1),
        ("openinference", True, 2),
        ("openinference", False, 1),
        ("traceloop", True, 2),
        ("traceloop", False, 1),
    ],
)
def test_what_docs_coexistence_says_of_the_app_without_us(results, beside, native, count):
    without, _ = results["global", beside, native, "no"]
    assert {call: len(found["spans"]) for call, found in without["found"].items()} == dict.fromkeys(CALLS, count)
