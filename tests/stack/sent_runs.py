"""Runs as spans with exact ids and times, sent over OTLP to a server."""

from __future__ import annotations

import hashlib
import urllib.request
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from claudescope import semconv

MODEL = "claude-sonnet-5-5"


class SentRun:
    """Spans of one run. Times are milliseconds after ``start_ms``, ids come from names: ``run.id("call 1")``."""

    def __init__(self, name: str, start_ms: int, service: str = "shop", trace: str | None = None) -> None:
        self.start_ms = start_ms
        self.run_id = hashlib.sha256(name.encode()).hexdigest()[:32]
        self.trace_id = hashlib.sha256(f"trace {trace or name}".encode()).hexdigest()[:32]
        self.request = ExportTraceServiceRequest()
        resource = self.request.resource_spans.add()
        _put(resource.resource.attributes, {semconv.SERVICE_NAME: service})
        self.spans = resource.scope_spans.add().spans

    def id(self, name: str) -> str:
        """The span id, 16 hex, of a span's name."""
        return hashlib.sha256(f"{self.run_id} {name}".encode()).hexdigest()[:16]

    def span(
        self, name: str, start: float, end: float, parent: str = "", attributes: Any = None, error: str | None = None
    ) -> str:
        """Any span; returns its id. ``parent`` is an id."""
        span = self.spans.add(
            name=name,
            trace_id=bytes.fromhex(self.trace_id),
            span_id=bytes.fromhex(self.id(name)),
            parent_span_id=bytes.fromhex(parent),
            start_time_unix_nano=round((self.start_ms + start) * 1e6),
            end_time_unix_nano=round((self.start_ms + end) * 1e6),
            kind=Span.SPAN_KIND_INTERNAL,
        )
        _put(span.attributes, attributes or {})
        if error is not None:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=error))
        return self.id(name)

    def call(self, name: str, start: float, end: float, parent: str = "", error: str | None = None, **more: Any) -> str:
        """A call's span. ``more`` has attribute names with dots as double underscores."""
        given = {
            semconv.OPERATION_NAME: "chat",
            semconv.REQUEST_MODEL: MODEL,
            semconv.CHAIN_ID: self.run_id,
            semconv.FINISH_REASONS: ["end_turn"],
            semconv.USAGE_INPUT: 1000,
            semconv.USAGE_OUTPUT: 100,
            **_dotted(more),
        }
        if error is not None:
            given[semconv.ERROR_TYPE] = error
        return self.span(name, start, end, parent, given, error)

    def step(self, index: int, kind: str, start: float, end: float, call: str, **more: Any) -> str:
        """A step's span, named ``step INDEX`` for ``id``. ``more`` as for ``call``."""
        given = {
            semconv.STEP_INDEX: index,
            semconv.STEP_KIND: kind,
            semconv.CHAIN_ID: self.run_id,
            semconv.REQUEST_MODEL: MODEL,
            semconv.STEP_LATENCY_SOURCE: "measured",
            **_dotted(more),
        }
        return self.span(
            f"step {index}", start, end, call, {key: value for key, value in given.items() if value is not None}
        )

    def send(self, url: str) -> None:
        """Posts the spans added since the last time. Raises OSError where they are refused."""
        body = self.request.SerializeToString()
        request = urllib.request.Request(f"{url}/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        urllib.request.urlopen(request, timeout=30).close()
        del self.spans[:]


def _dotted(names: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in names.items()}


def _put(attributes: Any, values: dict[str, Any]) -> None:
    for key, value in values.items():
        target = attributes.add(key=key).value
        if isinstance(value, bool):
            target.bool_value = value
        elif isinstance(value, int):
            target.int_value = value
        elif isinstance(value, float):
            target.double_value = value
        elif isinstance(value, str):
            target.string_value = value
        else:
            for item in value:
                target.array_value.values.add(string_value=item)


def rich_run(name: str, start_ms: int) -> SentRun:
    """A run of 13.5 s with everything in it.

    A root; a call with a retry that thinks and asks for a tool wrongly (step 2, characters 25 to 31 of its text) and
    rightly; the tool's run with a sub-agent of another run in it; a call with a server's tool, read slowly; a call that
    fails. Confidences .9, .6 and .8: the chain ends at .432.
    """
    run = SentRun(name, start_ms)
    root = run.span(
        "invoke_workflow refunds",
        0,
        13_500,
        "",
        {semconv.OPERATION_NAME: "invoke_workflow", semconv.CHAIN_ID: run.run_id},
    )
    first = run.call(
        "call 1", 100, 4_100, root,
        http__request__resend_count=2, gen_ai__response__time_to_first_chunk=1.4, gen_ai__request__stream=True,
        gen_ai__usage__input_tokens=12_000, gen_ai__usage__cache_read__input_tokens=9_000,
        gen_ai__usage__cache_creation__input_tokens=1_500, gen_ai__response__finish_reasons=["tool_use"],
        gen_ai__input__messages='[{"role":"user","parts":[{"type":"text","content":"Refund order A-1044, please."}]}]',
        gen_ai__output__messages='[{"role":"assistant","parts":[{"type":"tool_call","name":"refund","arguments":{"amount":"39,90"}}]}]',
    )  # fmt: skip
    run.step(0, "thinking", 1_500, 2_600, first, claudescope__step__name="step 1", claudescope__step__confidence=0.9,
             claudescope__step__confidence__method="verbalised", claudescope__step__confidence__calibrated=False,
             claudescope__chain__confidence=0.9)  # fmt: skip
    run.step(1, "text", 2_600, 3_000, first, claudescope__step__text="Let me refund it. " * 200)
    run.step(2, "tool_use", 3_000, 3_600, first, gen_ai__tool__name="refund", gen_ai__tool__call__id="toolu_1",
             claudescope__step__valid=False, claudescope__step__validity__checks=["tool_input", "tool_name"],
             claudescope__step__validity__reason="tool_input.schema_mismatch@25-31",
             claudescope__step__text='{"note":"🍵🍵","amount":   "39,9"}',
             claudescope__step__confidence=0.6, claudescope__step__confidence__method="verbalised",
             claudescope__step__confidence__calibrated=True, claudescope__chain__confidence=0.54)  # fmt: skip
    run.step(3, "tool_use", 3_600, 4_100, first, gen_ai__tool__name="research", gen_ai__tool__call__id="toolu_2",
             claudescope__step__valid=True, claudescope__step__validity__checks=["tool_input", "tool_name"],
             claudescope__step__text='{"question":"Is the kettle known to break?"}')  # fmt: skip
    run.step(4, "tool_run", 4_100, 4_200, first, gen_ai__tool__name="refund", gen_ai__tool__call__id="toolu_1",
             claudescope__step__valid=False, claudescope__step__validity__checks=["tool_result"],
             claudescope__step__validity__reason="tool_result.is_error")  # fmt: skip
    run.step(5, "tool_run", 4_100, 8_000, first, gen_ai__tool__name="research", gen_ai__tool__call__id="toolu_2",
             claudescope__step__valid=True, claudescope__step__validity__checks=["tool_result"])  # fmt: skip
    tool = run.span("execute_tool research", 4_250, 7_950, root, {semconv.OPERATION_NAME: "execute_tool"})
    other = {semconv.CHAIN_ID: "c" * 32}
    agent = run.call("sub-agent call", 4_300, 7_800, tool, claudescope__chain__id="c" * 32)
    run.span("sub-agent step", 4_300, 7_800, agent, {**other, semconv.STEP_INDEX: 0, semconv.STEP_KIND: "text",
             semconv.STEP_LATENCY_SOURCE: "apportioned"})  # fmt: skip
    second = run.call("call 2", 8_000, 12_000, root, gen_ai__response__time_to_first_chunk=0.5)
    run.step(
        6, "server_tool_use", 8_500, 8_900, second, gen_ai__tool__name="web_search", gen_ai__tool__call__id="srv_1"
    )
    run.step(7, "web_search_tool_result", 8_900, 9_900, second, gen_ai__tool__call__id="srv_1")
    run.step(8, "text", 9_900, 12_000, second, claudescope__step__latency__source="consumer",
             claudescope__step__confidence=0.8, claudescope__step__confidence__method="verbalised",
             claudescope__step__valid=True, claudescope__step__validity__checks=["stop_reason"],
             claudescope__chain__confidence=0.432, claudescope__label__tenant="acme")  # fmt: skip
    run.call("call 3", 12_500, 13_400, root, error="overloaded_error", http__response__status_code=529)
    return run


def long_run(name: str, start_ms: int, steps: int, a_call: int = 6) -> SentRun:
    """A run of ``steps`` steps of 100 ms in calls of ``a_call`` of them, each asking for one tool that takes 50 ms.

    The last step of a call but one is its tool use; the step after it its run. Every 37th step is invalid.
    """
    run = SentRun(name, start_ms)
    at, index, first = 0.0, 0, ""
    while index < steps:
        call = run.id(f"call {index}")
        begun, number = at, index
        inside = min(a_call - 1, steps - index)
        for place in range(inside):
            kind = "tool_use" if place == a_call - 2 else "thinking" if place == 0 else "text"
            given: dict[str, Any] = {"claudescope__step__confidence": 0.995} if kind == "text" else {}
            if kind == "tool_use":
                given = {"gen_ai__tool__name": "search", "gen_ai__tool__call__id": f"t{number}"}
            if index % 37 == 36:
                given |= {"claudescope__step__valid": False, "claudescope__step__validity__reason": "stream.failed"}
            run.step(index, kind, at, at + 100, call, **given)
            at, index = at + 100, index + 1
        if index < steps:
            run.step(
                index, "tool_run", at, at + 50, call, gen_ai__tool__name="search", gen_ai__tool__call__id=f"t{number}"
            )
            index += 1
        run.call(f"call {number}", begun, at, first)
        first = first or call
        at += 50
    return run
