"""Every recorded exchange through the real client over real HTTP: without claudescope, then in both step modes."""

import hashlib
import inspect
import json
import logging
import warnings
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from opentelemetry.trace import StatusCode
from recordings import HEADER, PROSE, ReplayServer, load

import claudescope
from claudescope import semconv
from claudescope.testing import Telemetry

pytest.importorskip("yaml", reason="pyyaml is a development dependency")
anthropic = pytest.importorskip("anthropic")

FILES = {"yaml": 302, "json": 18, "sse": 3, "txt": 7}
EXCHANGES = {"yaml": 421, "json": 32, "sse": 3, "txt": 7}
"""Counted by hand from the folder: the recordings (421 requests), the SDK's snapshots, and its bare streams."""
LEFT_OUT = {
    "file without a POST to /v1/messages": 81,  # Bedrock converse, other vendors, file uploads, count_tokens
    "request to another path or host": 179,
    ".md file": 1,
}


STOPPED = ("refusal", "max_tokens", "model_context_window_exceeded")
"""Stop reasons that are seen on a step also where the answer has no content."""


@pytest.fixture(scope="module")
def recorded():
    return load()


def test_what_is_replayed_and_what_is_left_out(recorded):
    exchanges, left_out = recorded
    assert dict(left_out) == LEFT_OUT
    suffix = [exchange.file.rpartition(".")[2] for exchange in exchanges]
    assert dict(Counter(suffix)) == EXCHANGES
    files = {exchange.file for exchange in exchanges}
    assert dict(Counter(file.rpartition(".")[2] for file in files)) == FILES


def ask(client, number, exchange):
    """Makes the call as the app that was recorded did; gives all that the app sees of the answer."""
    messages = client.beta.messages if exchange.beta else client.messages
    known = inspect.signature(messages.create).parameters
    named = {key: value for key, value in exchange.request.items() if key in known}
    extra = {key: value for key, value in exchange.request.items() if key not in known}
    if exchange.betas:
        named["betas" if "betas" in known else "extra_headers"] = (
            exchange.betas if "betas" in known else {"anthropic-beta": ",".join(exchange.betas)}
        )
    headers = {**named.pop("extra_headers", {}), HEADER: str(number)}
    try:
        # a timeout of our own: the client refuses long answers that are not streamed without one
        answer = messages.create(**named, extra_headers=headers, extra_body=extra or None, timeout=60)
    except anthropic.APIStatusError as error:
        return type(error), str(error), error.status_code, error.body, error.request_id
    if exchange.request.get("stream"):
        seen = [(type(event), event.model_dump(mode="json", warnings=False)) for event in answer]
        return type(answer), seen
    return type(answer), answer.model_dump(mode="json", warnings=False), answer._request_id


def replay(exchanges, client, tracer=None):
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the SDK's, for models that are older now
        for number, exchange in enumerate(exchanges):
            if tracer is None:
                seen.append(ask(client, number, exchange))
            else:
                with tracer.start_as_current_span(f"app {number}"):
                    seen.append(ask(client, number, exchange))
    return seen


@pytest.fixture(scope="module")
def server(recorded):
    with ReplayServer(recorded[0]) as made:
        yield made


@pytest.fixture(scope="module")
def plain(recorded, server):
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, open_telemetry=False) as client:
        return replay(recorded[0], client)


@pytest.mark.parametrize(
    ("mode", "native"), [("block", False), ("segment", True)], ids=["block, own call spans", "segment, SDK's spans"]
)
def test_every_recorded_exchange(mode, native, recorded, server, plain, monkeypatch, caplog):
    exchanges = recorded[0]
    monkeypatch.setattr("claudescope.emit.content.redact", lambda text: text)  # texts are compared as they are
    server.received.clear()
    with caplog.at_level(logging.WARNING), Telemetry() as telemetry:
        options = {"tracer_provider": telemetry.tracer_provider} if native else False
        claudescope.instrument(
            tracer_provider=telemetry.tracer_provider,
            meter_provider=telemetry.meter_provider,
            logger_provider=telemetry.logger_provider,
            steps=mode,
            content="full",
            content_max=10**9,
        )
        try:
            tracer = telemetry.tracer_provider.get_tracer("app")
            with anthropic.Anthropic(
                base_url=server.url, api_key="none", max_retries=0, open_telemetry=options
            ) as client:
                seen = replay(exchanges, client, tracer)
            assert claudescope.flush(60)
        finally:
            claudescope.uninstrument()
        spans, token_points = telemetry.spans, telemetry.metric(semconv.TOKEN_USAGE.name)

    assert [record.getMessage() for record in caplog.records] == []
    differing = [
        exchanges[n].file for n, (before, after) in enumerate(zip(plain, seen, strict=True)) if before != after
    ]
    assert differing == [], "what the app gets"

    calls, steps = by_exchange(spans)
    wrong = defaultdict(list)
    for number, exchange in enumerate(exchanges):
        mine = calls[number]
        if len(mine) != 1:
            wrong["call spans"].append((exchange.file, len(mine)))
            continue
        for what, expected, found in compare(exchange, mine[0], steps[mine[0].context.span_id], mode, native):
            if expected != found:
                wrong[what].append((exchange.file, expected, found))
    assert not wrong, {what: (len(found), found[:5], found[-5:]) for what, found in wrong.items()}

    digests = {number: f"sha256:{hashlib.sha256(body).hexdigest()}" for number, _, body in server.received}
    assert {n: spans[0].attributes[semconv.REQUEST_SHA256] for n, spans in calls.items() if not native} == (
        {} if native else digests
    )
    for kind, name in (("input", "input_tokens"), ("output", "output_tokens")):
        total = sum(point.sum for point in token_points if point.attributes[semconv.TOKEN_TYPE] == kind)
        assert total == sum(tokens(exchange)[name] for exchange in exchanges if exchange.message), kind


def by_exchange(spans):
    """Call spans by exchange, and steps by the id of their call span, in order. The running of tools is left out."""
    number_of = {
        span.context.span_id: int(span.name.removeprefix("app ")) for span in spans if span.name.startswith("app ")
    }
    calls, steps = defaultdict(list), defaultdict(list)
    for span in spans:
        if span.parent is None:
            continue
        if span.parent.span_id in number_of:
            calls[number_of[span.parent.span_id]].append(span)
        elif span.attributes[semconv.STEP_KIND] != "tool_run":
            steps[span.parent.span_id].append(span)
    for found in steps.values():
        found.sort(key=lambda span: span.attributes[semconv.STEP_INDEX])
    return calls, steps


def tokens(exchange):
    usage = exchange.message["usage"]
    cached = (usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0)
    return {
        "input_tokens": usage["input_tokens"] + sum(cached),
        "output_tokens": usage["output_tokens"],
        "cache_read": cached[0],
        "cache_creation": cached[1],
    }


def compare(exchange, call, steps, mode, native):
    """(what, as recorded, as emitted) of one exchange."""
    attributes, message = call.attributes, exchange.message
    yield "model", exchange.request["model"], attributes[semconv.REQUEST_MODEL]
    yield "scope", native, call.instrumentation_scope.name.startswith(semconv.NATIVE_SCOPE)
    yield "provider", "anthropic", attributes[semconv.PROVIDER_NAME]
    yield "status", exchange.status, attributes[semconv.HTTP_STATUS]
    error = exchange.status != 200
    yield "error type", recorded_error(exchange) if error else None, attributes.get(semconv.ERROR_TYPE)
    yield "span status", error, call.status.status_code is StatusCode.ERROR
    if not error:
        yield "id", message["id"], attributes[semconv.RESPONSE_ID]
        yield "answering model", message["model"], attributes[semconv.RESPONSE_MODEL]
        reason = message["stop_reason"]
        if not native:
            yield "finish reason", reason and (reason,), attributes.get(semconv.FINISH_REASONS)
            recorded = tokens(exchange)
            yield "input", recorded["input_tokens"], attributes[semconv.USAGE_INPUT]
            yield "output", recorded["output_tokens"], attributes[semconv.USAGE_OUTPUT]
            yield "cache read", recorded["cache_read"], attributes.get(semconv.USAGE_CACHE_READ, 0)
            yield "cache creation", recorded["cache_creation"], attributes.get(semconv.USAGE_CACHE_CREATION, 0)
    kinds = [step.attributes[semconv.STEP_KIND] for step in steps]
    texts = [step.attributes.get(semconv.STEP_TEXT, "") for step in steps]
    recorded_kinds, recorded_texts = exchange.kinds, exchange.texts
    if not recorded_kinds and message.get("stop_reason") in STOPPED:
        recorded_kinds, recorded_texts = ["text"], [""]  # the one step that has no content block: an empty text
        yield "verdict of an empty answer", False, steps[0].attributes.get(semconv.STEP_VALID) if steps else None
    if mode == "block":
        yield "steps", recorded_kinds, kinds
        yield "texts", recorded_texts, [text for kind, text in zip(kinds, texts, strict=True) if kind in PROSE]
    else:
        unbroken = [kind for n, kind in enumerate(kinds) if n == 0 or kind != kinds[n - 1]]
        expected = [kind for n, kind in enumerate(recorded_kinds) if n == 0 or kind != recorded_kinds[n - 1]]
        yield "steps", expected, unbroken
        prose = "".join(text for kind, text in zip(kinds, texts, strict=True) if kind in PROSE)
        yield "texts", "".join(recorded_texts), prose
        yield "at least a step a block", True, len(kinds) >= len(recorded_kinds)
    times = [call.start_time, *(time for step in steps for time in (step.start_time, step.end_time)), call.end_time]
    yield "times", [], [(a - b) / 1000 for a, b in pairwise(times) if a > b]


def recorded_error(exchange):
    return json.loads(exchange.body)["error"]["type"]
