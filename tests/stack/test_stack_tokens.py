"""Without the right token nothing is taken, and the app's log says so once."""

from __future__ import annotations

import urllib.error
import urllib.request

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from stack_apps import app_environment, finish, start_app

from claudescope.testing.script import say

pytestmark = pytest.mark.stack

APP = """
import anthropic, time
client = anthropic.Anthropic()
for number in range(20):
    client.messages.create(model="claude-test", max_tokens=99, messages=[{"role": "user", "content": "go"}])
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def stack(new_stack):
    return new_stack(names=("collector",))


WRONG = [None, "Bearer wrong", "Basic wrong", "Bearer "]


@pytest.mark.parametrize("signal", ["traces", "metrics", "logs"])
@pytest.mark.parametrize("header", WRONG)
def test_http(stack, signal, header) -> None:
    headers = {"content-type": "application/x-protobuf"} | ({} if header is None else {"authorization": header})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{stack.endpoint}/v1/{signal}", b"", headers), timeout=10)
    refused.value.close()
    assert refused.value.code == 401


def test_http_with_the_token(stack) -> None:
    headers = {"content-type": "application/x-protobuf", "authorization": f"Bearer {stack.token}"}
    for signal in ("traces", "metrics", "logs"):
        request = urllib.request.Request(f"{stack.endpoint}/v1/{signal}", b"", headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("header", [*WRONG, "right"])
def test_grpc(stack, header) -> None:
    metadata = () if header is None else (("authorization", header.replace("right", f"Bearer {stack.token}")),)
    with grpc.insecure_channel(f"127.0.0.1:{stack.ports['grpc']}") as channel:
        call = TraceServiceStub(channel).Export
        if header == "right":
            call(ExportTraceServiceRequest(), metadata=metadata, timeout=10)
            return
        with pytest.raises(grpc.RpcError) as refused:
            call(ExportTraceServiceRequest(), metadata=metadata, timeout=10)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("headers", ["", "authorization=Bearer%20wrong"], ids=["missing", "wrong"])
def test_the_app_says_it_once(stack, standin, tmp_path, headers) -> None:
    standin.use(say("done"))
    script = tmp_path / "app.py"
    script.write_text(APP, "utf-8")
    env = app_environment(stack, standin, OTEL_EXPORTER_OTLP_HEADERS=headers, CLAUDESCOPE_EXIT_WAIT="2")
    _, errors = finish(start_app(script, env=env))
    # 20 calls in many batches of two signals: one line while it runs, and the account at the end
    running, account = [line for line in errors.splitlines() if "401" in line]
    assert f"{stack.endpoint} refuses everything (HTTP 401 Unauthorized)" in running
    assert "Set OTEL_EXPORTER_OTLP_HEADERS" in running
    assert account.startswith("claudescope: 40 spans"), "20 calls and 20 steps"
    assert f"not delivered to {stack.endpoint}" in account
    assert stack.token not in errors
    assert "wrong" not in errors
