"""The standard variables, end to end: what an app's process sends to a real endpoint when they are set."""

import json
import textwrap

import pytest

CALL = """
    import anthropic, claudescope, logging, sys
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s %(message)s")
    claudescope.instrument()
    client = anthropic.Anthropic(max_retries=0)
    for _ in range(CALLS):
        client.messages.create(model="test-model", max_tokens=9, messages=[{"role": "user", "content": "2 + 2?"}])
    claudescope.flush(30)
"""


def calls(number=1, more=""):
    return textwrap.dedent(CALL).replace("CALLS", str(number)) + more


def sent(standin):
    """Header names of the latest call."""
    return {name.lower() for name, _ in standin.requests[-1].headers}


@pytest.fixture
def send(run_app):
    def run(source=None, **env):
        return run_app(source or calls(), CLAUDESCOPE_EVALUATION_EVENTS="all", **env)

    return run


def test_general_endpoint_headers_compression_names_and_propagators(send, page, standin):
    done = send(
        OTEL_EXPORTER_OTLP_ENDPOINT=f"{page.url}/",
        OTEL_EXPORTER_OTLP_HEADERS="x-team=blue%20one,x-other=2",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_SERVICE_NAME="tutor",
        OTEL_RESOURCE_ATTRIBUTES="service.name=loses,team=maths%2C1",
        OTEL_PROPAGATORS="none",
        OTEL_METRIC_EXPORT_INTERVAL="100000",
    )
    assert done.stderr == ""
    for signal in ("traces", "metrics"):
        for headers in page.headers(signal):
            assert (headers["x-team"], headers["x-other"]) == ("blue one", "2")
            assert headers["content-encoding"] == "gzip"
    for span in page.spans:
        assert span["resource"]["service.name"] == "tutor"
        assert span["resource"]["team"] == "maths,1"
    assert len(page.spans) == 3
    assert "traceparent" not in sent(standin)


def test_a_signals_own_variables_win(send, page):
    from otlp_page import Page

    with Page() as metrics:
        done = send(
            OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{page.url}/v1/traces",
            OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=f"{metrics.url}/v1/metrics",
            OTEL_EXPORTER_OTLP_HEADERS="x-team=blue",
            OTEL_EXPORTER_OTLP_TRACES_HEADERS="x-team=green",
            OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
            OTEL_EXPORTER_OTLP_TRACES_COMPRESSION="none",
            OTEL_EXPORTER_OTLP_METRICS_COMPRESSION="deflate",
            OTEL_LOGS_EXPORTER="none",
            OTEL_METRIC_EXPORT_INTERVAL="50",
            OTEL_PROPAGATORS="tracecontext,baggage",
            source=calls(more="import time; time.sleep(0.5)\n"),
        )
        assert done.stderr == ""
        assert {kind for kind, _ in page.protocols()} == {"traces"}
        assert {kind for kind, _ in metrics.protocols()} == {"metrics"}
        assert {headers["x-team"] for headers in page.headers("traces")} == {"green"}
        assert {headers.get("content-encoding") for headers in page.headers("traces")} == {None}
        assert {(h["x-team"], h["content-encoding"]) for h in metrics.headers("metrics")} == {("blue", "deflate")}
        assert len(metrics.requests) >= 5, "an export every 50 ms, beside those of new series and of the exit"


def test_grpc_and_batches(send, page, standin):
    done = send(
        OTEL_EXPORTER_OTLP_ENDPOINT=page.grpc(),
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        OTEL_EXPORTER_OTLP_HEADERS="x-team=blue",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="2",
        OTEL_BSP_SCHEDULE_DELAY="60000",
        OTEL_BSP_MAX_QUEUE_SIZE="100",
        source=calls(4),
    )
    assert done.stderr == ""
    assert {protocol for _, protocol in page.protocols()} == {"grpc"}
    assert {headers["x-team"] for headers in page.headers("traces")} == {"blue"}
    assert len(page.spans) == 12
    assert "traceparent" in sent(standin)


def test_console_and_none(send, page):
    done = send(
        OTEL_EXPORTER_OTLP_ENDPOINT=page.url,
        OTEL_TRACES_EXPORTER="console",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )
    assert done.stdout.count('"name": "reasoning_step text"') == 1
    assert page.requests == []


@pytest.mark.parametrize(
    ("sampler", "argument", "low", "high"),
    [("always_off", "", 0, 0), ("traceidratio", "0.5", 25, 75), ("parentbased_always_on", "", 100, 100)],
)
def test_sampler(send, page, sampler, argument, low, high):
    """100 runs at one half: fewer than 25 or more than 75 kept has a chance of 6e-7."""
    env = {"OTEL_TRACES_SAMPLER_ARG": argument} if argument else {}
    send(OTEL_EXPORTER_OTLP_ENDPOINT=page.url, OTEL_TRACES_SAMPLER=sampler, source=calls(100), **env)
    kept = {span["trace"] for span in page.spans if span["name"] == "chat test-model"}
    assert low <= len(kept) <= high
    assert {span["trace"] for span in page.steps} == kept, "a step follows its call's sampling"
    last = [points[-1].as_int for points in page.samples("claudescope.steps").values()]
    assert sum(last) == 200, "metrics count unsampled calls too"
    exemplars = [
        exemplar.trace_id.hex()
        for points in page.samples("claudescope.step.duration").values()
        for point in points
        for exemplar in point.exemplars
    ]
    assert set(exemplars) <= kept
    assert bool(exemplars) == bool(kept)


def test_timeout(run_app):
    """A server that accepts and never answers: each attempt ends after the timeout, and the exit after its own."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        more = (
            "import json, time; start = time.monotonic(); print(json.dumps([claudescope.flush(1.5),"
            " time.monotonic() - start]))\n"
        )
        source = CALL.replace("CALLS", "1").replace("claudescope.flush(30)", more)
        done = run_app(
            source,
            OTEL_EXPORTER_OTLP_ENDPOINT=url,
            OTEL_EXPORTER_OTLP_TIMEOUT="0.3",
            CLAUDESCOPE_EXIT_WAIT="0.5",
        )
        assert json.loads(done.stdout)[0] is False, "a flush that did not deliver says so"
        assert "3 spans" in done.stderr
        assert "timed out" in done.stderr


def test_what_is_not_honoured_is_named_in_one_warning(send, page):
    done = send(
        OTEL_EXPORTER_OTLP_ENDPOINT=page.url,
        OTEL_EXPORTER_JAEGER_ENDPOINT="http://secret",
        OTEL_TRACES_SAMPLER="jaeger_remote",
        OTEL_LOGS_EXPORTER="kafka",
        OTEL_PYTHON_LOG_CORRELATION="true",
    )
    assert done.stderr == (
        "claudescope claudescope does not honour OTEL_EXPORTER_JAEGER_ENDPOINT, OTEL_LOGS_EXPORTER=kafka,"
        " OTEL_TRACES_SAMPLER=jaeger_remote.\n"
    )
    assert len(page.spans) == 3
