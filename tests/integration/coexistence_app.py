"""Makes the same six calls in a forked process for each case read from standard input; one JSON line a case.

Importing the SDK and the instrumentations costs seconds and changes nothing, so it is done once. What a case does to
the process (global providers, wrapped functions) is its own.
"""

import asyncio
import json
import os
import sys
import traceback
import warnings

import anthropic
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import claudescope
from claudescope.guard import guard

REQUEST = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "2 + 2?"}]}


def instrumentors(beside):
    made = []
    if beside in ("genai", "all"):
        from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

        made.append(AnthropicInstrumentor())
    if beside in ("openinference", "all"):
        from openinference.instrumentation.anthropic import AnthropicInstrumentor

        made.append(AnthropicInstrumentor())
    if beside in ("traceloop", "all"):
        from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

        made.append(AnthropicInstrumentor())
    return made


def create(client):
    message = client.messages.create(**REQUEST)
    return type(message).__name__, message.content[-1].text


def stream(client):
    stream = client.messages.create(**REQUEST, stream=True)
    events = [event.type for event in stream]
    return type(stream).__name__, events


def helper(client):
    with client.messages.stream(**REQUEST) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    return type(stream).__name__, text, type(final).__name__, final.usage.output_tokens


async def acreate(client):
    message = await client.messages.create(**REQUEST)
    return type(message).__name__, message.content[-1].text


async def astream(client):
    stream = await client.messages.create(**REQUEST, stream=True)
    events = [event.type async for event in stream]
    return type(stream).__name__, events


async def ahelper(client):
    async with client.messages.stream(**REQUEST) as stream:
        text = "".join([text async for text in stream.text_stream])
        final = await stream.get_final_message()
    return type(stream).__name__, text, type(final).__name__, final.usage.output_tokens


def run(case, url):
    guard.reraise = True
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    given = {"tracer_provider": provider} if case["providers"] in ("given", "own") else {}
    if case["providers"] == "global":
        trace.set_tracer_provider(provider)
    option = None if case["native"] else {"traces": False}
    if case["providers"] == "own":
        option = {**(option or {}), "tracer_provider": provider}

    def ours():
        claudescope.instrument(**(given if case["providers"] == "given" else {}))

    if case["claudescope"] == "first":
        ours()
    for instrumentor in instrumentors(case["beside"]):
        instrumentor.instrument(**given)
    if case["claudescope"] == "last":
        ours()
    if case["providers"] == "late":
        trace.set_tracer_provider(provider)
    found = {}
    for function in (create, stream, helper, acreate, astream, ahelper):
        options = {"base_url": url, "api_key": "none", "max_retries": 0, "open_telemetry": option}
        if function.__name__.startswith("a"):

            async def main(function=function, options=options):
                async with anthropic.AsyncAnthropic(**options) as client:
                    return await function(client)

            answer = asyncio.run(main())
        else:
            with anthropic.Anthropic(**options) as client:
                answer = function(client)
        claudescope.flush(30)
        spans = sorted(memory.get_finished_spans(), key=lambda span: span.start_time)
        memory.clear()
        found[function.__name__] = {"answer": answer, "spans": [described(span) for span in spans]}
    return found


def described(span):
    return {
        "scope": span.instrumentation_scope.name,
        "name": span.name,
        "kind": span.kind.name,
        "id": span.context.span_id,
        "parent": span.parent and span.parent.span_id,
        "trace": span.context.trace_id,
        "step": span.attributes.get("claudescope.step.kind"),
        "chain": span.attributes.get("claudescope.chain.id"),
    }


def main():
    warnings.simplefilter("ignore")
    url = sys.argv[1]
    instrumentors("all")
    for line in sys.stdin:
        case = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.dup2(write, 2)  # warnings and log messages are part of what is looked at
            try:
                result = {"found": run(case, url)}
            except BaseException:
                result = {"failed": traceback.format_exc()}
            sys.stdout.write(json.dumps(result))
            sys.stdout.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as errors:
            told = errors.read()
        os.waitpid(pid, 0)
        sys.stdout.write(f"\t{json.dumps(told)}\n")
        sys.stdout.flush()


main()
