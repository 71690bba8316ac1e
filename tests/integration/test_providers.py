"""Whose providers are used: apps that set their own, at any time and in any way, under `claudescope run` and not."""

import json
from pathlib import Path

import pytest
from otlp_page import Page

from claudescope.cli.launch import armed_environment

NATIVE = "com.anthropic.sdk.python"
PREPARE = """
    import json, sys
    from opentelemetry import _logs, metrics, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    memory, reader, log = InMemorySpanExporter(), InMemoryMetricReader(), InMemoryLogRecordExporter()

    def own_providers():
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(memory))
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider([reader]))
        logger_provider = LoggerProvider()
        logger_provider.add_log_record_processor(SimpleLogRecordProcessor(log))
        _logs.set_logger_provider(logger_provider)

    def logfire():
        import logfire
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        logfire.configure(
            send_to_logfire=False, console=False, inspect_arguments=False,
            additional_span_processors=[SimpleSpanProcessor(memory)],
            metrics=logfire.MetricsOptions(additional_readers=[reader]),
        )
"""
WORK = """
    def work():
        with trace.get_tracer("app").start_as_current_span("app work"):
            anthropic.Anthropic(max_retries=0).messages.create(
                model="test-model", max_tokens=9, messages=[{"role": "user", "content": "2 + 2?"}]
            )
        with trace.get_tracer("app").start_as_current_span("app more"):
            pass

    def report():
        claudescope = sys.modules.get("claudescope")
        flushed = claudescope.flush(30) if claudescope else None
        data = reader.get_metrics_data()
        names = {m.name for r in (data.resource_metrics if data else ()) for s in r.scope_metrics for m in s.metrics}
        print(json.dumps({
            "flushed": flushed,
            "spans": [[s.name, format(s.context.span_id, "016x")] for s in memory.get_finished_spans()],
            "metrics": sorted(names),
            "providers": [type(p).__name__ for p in (
                trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider())],
        }))
"""
APPS = {
    "at import, before anthropic": "own_providers(); import anthropic\n{work}\nwork(); report()",
    "at import, after anthropic": "import anthropic; own_providers()\n{work}\nwork(); report()",
    "inside main()": "import anthropic\n{work}\ndef main(): own_providers(); work(); report()\nmain()",
    "logfire before anthropic": "logfire(); import anthropic\n{work}\nwork(); report()",
    "logfire inside main()": "import anthropic\n{work}\ndef main(): logfire(); work(); report()\nmain()",
}


def source(body):
    import textwrap

    return textwrap.dedent(PREPARE) + body.format(work=textwrap.dedent(WORK))


def told(done):
    """What an app printed; nothing may be on standard error: no "Overriding", no warning of ours."""
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def run_armed(run_app, page):
    """The app with the environment of `claudescope run`, whose server is the page."""

    def run(source, **more):
        python = more.pop("python")
        before = more.pop("before", ())
        env = armed_environment(more, page.url)
        return run_app(source, python, before, **env)

    return run


@pytest.mark.parametrize("when", APPS)
def test_under_run_the_spans_go_where_they_went_and_to_the_page(when, run_armed, page, compat_python):
    found = told(run_armed(source(APPS[when]), python=compat_python))
    names = ["anthropic.messages.create", "app more", "app work", "reasoning_step text", "reasoning_step thinking"]
    assert sorted(name for name, _ in found["spans"]) == names
    assert sorted([span["name"], span["id"]] for span in page.spans) == sorted(found["spans"])
    native = next(span for span in page.spans if span["scope"] == NATIVE)
    root = next(span for span in page.spans if span["name"] == "app work")
    assert native["parent"] == root["id"]
    assert {step["parent"] for step in page.steps} == {native["id"]}
    assert native["attributes"]["claudescope.keep"] is True, "held until its steps were assessed"
    assert found["flushed"] is True
    assert {"claudescope.steps", "claudescope.step.duration"} <= set(found["metrics"])
    first = {point[0].as_int for point in page.samples("claudescope.steps").values()}
    assert first == {0}, "metrics are on the page too, zero first"


def test_under_run_with_opentelemetry_instrument(run_armed, page, compat_python):
    body = "import anthropic\n{work}\nwork()"
    done = run_armed(
        source(body),
        python=compat_python,
        before=[str(Path(compat_python).with_name("opentelemetry-instrument"))],
        OTEL_TRACES_EXPORTER="console",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )
    assert "Overriding" not in done.stderr
    assert done.stderr == ""
    for name in ("anthropic.messages.create", "app work", "reasoning_step text"):
        assert done.stdout.count(f'"name": "{name}"') == 1, "each once on the console of the app's own exporter"


def test_under_run_with_opentelemetry_distro_and_an_endpoint_of_its_own(run_armed, page, compat_python):
    with Page() as own:
        done = run_armed(
            source("import anthropic\n{work}\nwork()"),
            python=compat_python,
            before=[str(Path(compat_python).with_name("opentelemetry-instrument"))],
            OTEL_EXPORTER_OTLP_ENDPOINT=own.url,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="anthropic,genai-anthropic,genai_anthropic",
        )
        assert done.stderr == ""
        for where in (own, page):
            names = [span["name"] for span in where.spans]
            assert {name: names.count(name) for name in names} == dict.fromkeys(
                ("app work", "app more", "anthropic.messages.create", "reasoning_step text", "reasoning_step thinking"),
                1,
            )
            assert where.samples("claudescope.steps")


NOTHING_SET = """
    import json, sys
    import anthropic
    from opentelemetry import _logs, metrics, trace
    import httpx2

    def note(request):
        seen.append(request.headers["traceparent"])

    seen = []
    client = anthropic.Anthropic(http_client=anthropic.DefaultHttpxClient(event_hooks={"request": [note]}))
    client.messages.create(model="test-model", max_tokens=9, messages=[{"role": "user", "content": "2 + 2?"}])
    print(json.dumps([seen, [type(p).__name__ for p in (
        trace.get_tracer_provider(), metrics.get_meter_provider(), _logs.get_logger_provider())]]))
"""


def test_an_app_that_sets_nothing(run_app, page):
    done = run_app(NOTHING_SET, **armed_environment({}, page.url))
    seen, providers = told(done)
    assert providers == ["ProxyTracerProvider", "_ProxyMeterProvider", "ProxyLoggerProvider"], "nothing global is set"
    call = next(span for span in page.spans if span["name"] == "chat test-model")
    assert [header.rpartition("-")[0] for header in seen] == [f"00-{call['trace']}-{call['id']}"]
    assert int(seen[0].rpartition("-")[2], 16) & 1, "sampled"
    assert {step["parent"] for step in page.steps} == {call["id"]}
    assert len(page.spans) == 3
    assert page.samples("claudescope.steps")


def test_instrument_alone_adds_nothing_but_the_spotter(run_app, page, compat_python):
    body = """
import anthropic, claudescope
own_providers()
{work}
claudescope.instrument()
work()
processors = trace.get_tracer_provider()._active_span_processor._span_processors
assert [type(p).__name__ for p in processors] == ["SimpleSpanProcessor", "Spotter"], processors
report()
"""
    done = run_app(source(body), compat_python, OTEL_EXPORTER_OTLP_ENDPOINT=page.url)
    found = told(done)
    assert sorted(name for name, _ in found["spans"])[-2:] == ["reasoning_step text", "reasoning_step thinking"]
    assert "claudescope.steps" in found["metrics"]
    assert page.requests == [], "no export of our own"


@pytest.mark.parametrize("variable", ["OTEL_SDK_DISABLED", "CLAUDESCOPE_DISABLED"])
def test_disabled_every_function_stays_the_same_object(run_app, page, variable):
    done = run_app(
        """
        import anthropic
        from anthropic import _base_client as base
        names = [(cls, name) for cls in (base.SyncAPIClient, base.AsyncAPIClient, base.BaseClient)
                 for name in vars(cls)]
        before = [vars(cls)[name] for cls, name in names]
        import claudescope
        claudescope.instrument()
        from claudescope import autoload
        from claudescope.instrumentor import ClaudescopeInstrumentor
        autoload.arm()
        ClaudescopeInstrumentor().instrument()
        assert all(vars(cls)[name] is old for (cls, name), old in zip(names, before))
        anthropic.Anthropic().messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}])
        assert claudescope.flush(1)
        """,
        **{**armed_environment({}, page.url), variable: "true"},
    )
    assert done.stderr == ""
    assert page.requests == []


ENTRY_POINT = """
    import sys
    assert "anthropic" not in sys.modules, "a process that does not use the SDK does not pay for it"
    import anthropic
    from anthropic import _base_client
    print(hasattr(_base_client.SyncAPIClient.request, "__wrapped__"))
"""


@pytest.mark.parametrize(("off", "wrapped"), [("", "True"), ("claudescope", "False")])
def test_opentelemetry_instrument_finds_us_and_waits_for_the_sdk(run_app, compat_python, off, wrapped):
    others = "anthropic,genai_anthropic,genai-anthropic"
    done = run_app(
        ENTRY_POINT,
        compat_python,
        before=[str(Path(compat_python).with_name("opentelemetry-instrument"))],
        OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=f"{others},{off}".strip(","),
        **{f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")},
    )
    assert done.stdout.split() == [wrapped]
