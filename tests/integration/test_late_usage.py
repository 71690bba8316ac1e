"""What a native call span lacks and the call has told is added as the span leaves; nothing of it is replaced."""

import textwrap

import pytest

from claudescope.cli.launch import armed_environment
from claudescope.testing import StandIn, say
from claudescope.testing.script import Pace, Usage

NATIVE = "com.anthropic.sdk.python"
OWN = (
    "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider;"
    " trace.set_tracer_provider(TracerProvider())"
)
ASK = 'dict(model="test-model", max_tokens=99, messages=[{"role": "user", "content": "Go."}])'
USAGE = Usage(11, 5, cache_creation_input_tokens=30, cache_read_input_tokens=4, ephemeral_1h_input_tokens=12)
RAW = "client.messages.with_raw_response.create(**ask)"
PARSED = "client.messages.create(**ask)"
CUT = "next(iter(stream := client.messages.create(**ask, stream=True))); stream.close()"


def told(run_app, page, body, **env):
    reply = say("Four, I say, and that is it.", usage=USAGE, pace=Pace(chunk=4))
    with StandIn(reply) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url, **env}, page.url)
        done = run_app(
            textwrap.dedent(f"""
                import anthropic
                {OWN}
                client = anthropic.Anthropic(max_retries=0)
                ask = {ASK}
                {body}
            """),
            **env,
        )
    assert done.stderr == ""
    (call,) = [span for span in page.spans if span["scope"] == NATIVE]
    return call["attributes"]


@pytest.mark.parametrize("body", [RAW, PARSED])
def test_tokens_and_model_of_a_response(run_app, page, body):
    attributes = told(run_app, page, body)
    expected = {
        "gen_ai.usage.input_tokens": 11 + 4 + 30,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_creation.input_tokens": 30,
        "claudescope.usage.cache_write_1h.input_tokens": 12,
        "gen_ai.response.model": "test-model",
        "gen_ai.response.finish_reasons": ["end_turn"],
    }
    assert {name: attributes.get(name) for name in expected} == expected
    assert "claudescope.usage.partial" not in attributes


def test_tokens_of_a_cut_stream(run_app, page):
    attributes = told(run_app, page, CUT)
    assert attributes["claudescope.stream.end"] == "closed"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (45, 1)
    assert attributes["claudescope.usage.partial"] is True


def test_what_the_maker_said_stays():
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

    from claudescope.emit.holding import Late, _with

    span = ReadableSpan("chat", SpanContext(1, 2, False), attributes={"a": "maker", "b": "maker"})
    late = Late(added={"b": "added", "c": "added"}, lacking={"a": "lacking", "d": "lacking"})
    assert dict(_with(span, late).attributes) == {"a": "maker", "b": "added", "c": "added", "d": "lacking"}
