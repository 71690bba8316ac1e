"""``traceparent`` and ``tracestate``: on every HTTP request exactly once, with the call's own span and sampling."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import anthropic
import pytest
from call_path_functions import ASK
from capture_kit import NATIVE, VERSION, attribute, instrumented, needs_native, new_client
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

import claudescope
from claudescope import semconv
from claudescope.testing.exporters import Telemetry
from claudescope.testing.script import error, say, tool_use

MODES = ["default", "off", "own"] if NATIVE else ["none"]
"""The SDK's own spans: by default (into nothing), off, into a provider of the client's own; or an SDK without any."""


def options_of(mode: str, scope: Any) -> dict[str, Any]:
    return {
        "off": {"open_telemetry": {"traces": False}} if NATIVE else {},
        "own": scope.native_option,
    }.get(mode, {})


def sent(standin: Any, name: str = "traceparent") -> list[list[str]]:
    return [request.header(name) for request in standin.requests]


def parse(header: str) -> tuple[str, str, int]:
    matched = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", header)
    assert matched, header
    return matched[1], matched[2], int(matched[3], 16)


def ids(span: Any) -> tuple[str, str]:
    return trace.format_trace_id(span.context.trace_id), trace.format_span_id(span.context.span_id)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("platform", ["", "bedrock", "vertex"])
@pytest.mark.parametrize("streamed", [False, True])
def test_each_request_carries_the_calls_span_once(standin, scope, mode, platform, streamed):
    standin.use(error(529, retry_after=0.01, attempts=1, then=say("ok")), say("ok"))
    client = new_client(standin.url, platform=platform, max_retries=1, **options_of(mode, scope))
    if streamed:
        list(client.messages.create(**ASK, stream=True))
    else:
        client.messages.create(**ASK)
    client.close()
    headers = sent(standin)
    assert [len(values) for values in headers] == [1, 1]
    assert headers[0] == headers[1]
    trace_id, span_id, flags = parse(headers[0][0])
    assert (trace_id, span_id) == ids(scope.call)
    assert flags & TraceFlags.SAMPLED
    assert sent(standin, "tracestate") == [[], []]


@pytest.mark.parametrize("mode", MODES)
def test_the_apps_span_and_its_tracestate_are_carried_on(standin, scope, mode):
    state = TraceState([("vendor", "x")])
    parent = SpanContext(0xABC, 0xDEF, False, TraceFlags(TraceFlags.SAMPLED), state)
    client = new_client(standin.url, **options_of(mode, scope))
    token = otel_context.attach(trace.set_span_in_context(NonRecordingSpan(parent)))
    try:
        client.messages.create(**ASK)
    finally:
        otel_context.detach(token)
    client.close()
    assert parse(sent(standin)[0][0])[0] == f"{0xABC:032x}"
    assert sent(standin, "tracestate") == [["vendor=x"]]
    assert scope.call.parent.span_id == 0xDEF


@pytest.mark.parametrize("place", ["call", "client"])
@pytest.mark.parametrize("name", ["traceparent", "Traceparent"])
def test_the_apps_own_header_wins_where_we_inject(standin, scope, place, name):
    """The SDK's own propagation replaces it in any case; that is not ours to change."""
    mine = "00-11111111111111111111111111111111-2222222222222222-01"
    options = options_of("off", scope)
    if place == "client":
        client = new_client(standin.url, default_headers={name: mine}, **options)
        client.messages.create(**ASK)
    else:
        client = new_client(standin.url, **options)
        client.messages.create(**ASK, extra_headers={name: mine})
    client.close()
    assert sent(standin) == [[mine]]


def test_a_call_that_is_not_sampled_says_so(standin):
    """Its steps are not sampled either, but counted."""
    with Telemetry() as telemetry:
        provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
        claudescope.instrument(provider, telemetry.meter_provider, telemetry.logger_provider)
        try:
            standin.use(say("one", tool_use("f", {}, "toolu_1")), say("two"))
            client = new_client(standin.url)
            client.messages.create(**ASK)
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
            client.messages.create(**{**ASK, "messages": [{"role": "user", "content": [result]}]})
            client.close()
            assert claudescope.flush(60)
            points = telemetry.metric("claudescope.steps")
        finally:
            claudescope.uninstrument()
    first, second = (parse(values[0]) for values in sent(standin))
    assert not first[2] & TraceFlags.SAMPLED
    assert not second[2] & TraceFlags.SAMPLED
    assert first[0] == second[0]
    assert sum(point.value for point in points) == 4  # text, tool_use, tool_run, text


@needs_native
def test_a_native_span_that_is_not_sampled(standin):
    with instrumented() as scope:
        provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
        client = new_client(standin.url, open_telemetry={"tracer_provider": provider})
        client.messages.create(**ASK)
        list(client.messages.create(**ASK, stream=True))
        client.close()
        assert scope.calls == []
        assert scope.steps == []
        assert [parse(values[0])[2] & TraceFlags.SAMPLED for values in sent(standin)] == [0, 0]
        assert sum(point.value for point in scope.ours.metric("claudescope.steps")) == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_signature_of_a_bedrock_request_holds(standin, scope, mode, streamed):
    """Recomputed as AWS does: over the headers that the request says are signed, as they arrived."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    client = new_client(standin.url, platform="bedrock", **options_of(mode, scope))
    client.messages.create(**ASK, stream=streamed)
    client.close()
    (request,) = standin.requests
    assert len(request.header("traceparent")) == 1
    (authorization,) = request.header("authorization")
    matched = re.search(r"Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]+)", authorization)
    assert matched
    signed = {name: request.header(name)[0] for name in matched[2].split(";")}
    assert len([name for name in matched[2].split(";") if len(request.header(name)) != 1]) == 0
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "secret"), "bedrock", "us-east-1")
    made = AWSRequest("POST", standin.url + request.target, data=request.body, headers=signed)
    made.context["timestamp"] = request.header("x-amz-date")[0]
    canonical = auth.canonical_request(made)
    assert auth.signature(auth.string_to_sign(made, canonical), made) == matched[3]


GLOBAL = """
    import json, os, sys
    sys.path.insert(0, os.getcwd())
    import anthropic, claudescope
    from opentelemetry import trace
    from call_path_functions import ASK
    from claudescope import semconv
    from claudescope.testing.exporters import Telemetry
    from claudescope.testing.script import say, thinking, tool_use
    from claudescope.testing.standin import StandIn

    claudescope.instrument()
    telemetry = Telemetry()
    if os.environ["APP_SETS"] == "true":
        trace.set_tracer_provider(telemetry.tracer_provider)
    with StandIn() as standin:
        standin.use(say(thinking("hm"), tool_use("f", {"a": 1}, "toolu_1")), say("two"))
        with anthropic.Anthropic(base_url=standin.url, api_key="k", max_retries=0) as client:
            list(client.messages.create(**ASK, stream=True))
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
            client.messages.create(**{**ASK, "messages": [{"role": "user", "content": [result]}]})
        headers = [request.header("traceparent") for request in standin.requests]
    claudescope.flush(60)
    print(json.dumps({
        "headers": headers,
        "calls": [[span.name, span.instrumentation_scope.name, span.context.trace_id, span.context.span_id]
                  for span in telemetry.calls],
        "steps": [[span.attributes[semconv.STEP_KIND], span.attributes[semconv.STEP_INDEX], span.parent.span_id]
                  for span in telemetry.steps],
    }))
"""


@pytest.mark.parametrize("native", [True, False])
def test_the_apps_global_provider(native):
    """A global provider that is set after claudescope gets native calls where the SDK makes them, else ours."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(GLOBAL)],
        env={
            **os.environ,
            "APP_SETS": "true",
            "ANTHROPIC_OPEN_TELEMETRY": "true" if native else "false",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=os.path.dirname(__file__),
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    expected = semconv.NATIVE_SCOPE if native and NATIVE else semconv.SCOPE
    assert [scope for _, scope, _, _ in told["calls"]] == [expected] * 2
    first, second = told["calls"]
    assert first[2] == second[2]  # one agent run without an active span is one trace
    assert [[kind, index] for kind, index, _ in told["steps"]] == [
        ["thinking", 0],
        ["tool_use", 1],
        ["tool_run", 2],
        ["text", 3],
    ]
    assert [parent for _, _, parent in told["steps"]] == [first[3]] * 3 + [second[3]]
    for header, call in zip(told["headers"], (first, second), strict=True):
        assert [parse(value)[1] for value in header] == [f"{call[3]:016x}"]


def test_a_broken_propagator_of_the_apps_changes_nothing(standin, scope, monkeypatch, nothing_is_logged):
    from opentelemetry import propagate

    def inject(*arguments: Any, **keywords: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(propagate, "inject", inject)
    client = new_client(standin.url, **options_of("off", scope))
    client.messages.create(**ASK)
    client.close()
    assert attribute(scope.call, semconv.HTTP_STATUS) == 200
    assert [record.levelname for record in nothing_is_logged] == ["WARNING"]
    nothing_is_logged.clear()


def test_the_versions_under_test_are_known():
    assert VERSION >= (0, 75)
    assert (VERSION >= (1, 14)) == NATIVE, anthropic.__version__
