"""``/metrics``: the exact lines, the names that Prometheus' OTLP receiver gives, and both text forms."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_kit import Client, Sender, Stream
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_classic

from claudescope import semconv
from claudescope.emit.metrics import Meters
from claudescope.live.web import prometheus
from claudescope.live.web.metrics import OWN

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
# what Prometheus 3.16 sends to a target
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


class App:
    """An app with the SDK's own meters, whose metrics are sent when we say."""

    def __init__(self, **resource: str) -> None:
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider([self._reader], Resource(resource))
        self.meter: Meter = self._provider.get_meter(semconv.SCOPE)

    def send(self, live: Client) -> None:
        data = self._reader.get_metrics_data()
        assert data is not None
        body = encode_metrics(data).SerializeToString()
        answer = live.post(body, "/v1/metrics")
        assert (answer.status, answer.body) == (200, b"")


def scrape(live: Client, accept: str = OPENMETRICS) -> list[str]:
    answer = live.get("/metrics", Accept=accept)
    assert answer.status == 200, answer.body
    return answer.body.decode().splitlines()


def of(lines: list[str], *starts: str) -> list[str]:
    return [line for line in lines if line.startswith(starts)]


def test_the_lines_of_a_real_sdk(live: Client) -> None:
    app = App(**{"service.name": "shop", "service.instance.id": "i-1", "service.version": "2", "host.name": "h"})
    duration = app.meter.create_histogram(
        semconv.STEP_DURATION.name, "s", explicit_bucket_boundaries_advisory=[0.5, 1.0, 67108864.0]
    )
    confidence = app.meter.create_histogram(
        semconv.STEP_CONFIDENCE_METRIC.name, "1", explicit_bucket_boundaries_advisory=[0.7]
    )
    steps = app.meter.create_counter(semconv.STEPS.name, "{step}")
    with TracerProvider().get_tracer("t").start_as_current_span("s") as span:
        trace = f"{span.get_span_context().trace_id:032x}"
        step = f"{span.get_span_context().span_id:016x}"
        duration.record(0.75, {semconv.STEP_INDEX: "16+", semconv.REQUEST_MODEL: 'm"\\\n'})
    duration.record(0.25, {semconv.STEP_INDEX: "16+", semconv.REQUEST_MODEL: 'm"\\\n'})
    confidence.record(0.7, {semconv.STEP_INDEX: "0"})
    steps.add(2, {semconv.STEP_VALID: "false", "claudescope.label.team-a": "x", "empty": ""})
    app.send(live)
    lines = scrape(live)
    who = 'instance="i-1",job="shop"'
    which = 'claudescope_step_index="16+",gen_ai_request_model="m\\"\\\\\\n"'
    more = 'service_name="shop",service_version="2"'
    (told,) = [line for line in lines if trace in line]
    assert told.startswith(f'claudescope_step_duration_seconds_bucket{{{which},{who},le="1.0",{more}}} 2.0 # ')
    assert told.split(" # ")[1].startswith(f'{{span_id="{step}",trace_id="{trace}"}} 0.75 ')
    assert of([line.split(" # {")[0] for line in lines], "claudescope_step", "target") == [
        f'claudescope_step_duration_seconds_bucket{{{which},{who},le="0.5",{more}}} 1.0',
        f'claudescope_step_duration_seconds_bucket{{{which},{who},le="1.0",{more}}} 2.0',
        f'claudescope_step_duration_seconds_bucket{{{which},{who},le="6.7108864e+07",{more}}} 2.0',
        f'claudescope_step_duration_seconds_bucket{{{which},{who},le="+Inf",{more}}} 2.0',
        f"claudescope_step_duration_seconds_count{{{which},{who},{more}}} 2.0",
        f"claudescope_step_duration_seconds_sum{{{which},{who},{more}}} 1.0",
        f'claudescope_step_confidence_bucket{{claudescope_step_index="0",{who},le="0.7",{more}}} 1.0',
        f'claudescope_step_confidence_bucket{{claudescope_step_index="0",{who},le="+Inf",{more}}} 1.0',
        f'claudescope_step_confidence_count{{claudescope_step_index="0",{who},{more}}} 1.0',
        f'claudescope_step_confidence_sum{{claudescope_step_index="0",{who},{more}}} 0.7',
        f'claudescope_steps_total{{claudescope_label_team_a="x",claudescope_step_valid="false",{who},{more}}} 2.0',
        f'target_info{{host_name="h",{who},service_instance_id="i-1",{more}}} 1.0',
    ]
    assert of(lines, "# TYPE claudescope_step", "# UNIT claudescope_step") == [
        "# TYPE claudescope_step_duration_seconds histogram",
        "# UNIT claudescope_step_duration_seconds seconds",
        "# TYPE claudescope_step_confidence histogram",
        "# TYPE claudescope_steps counter",
    ]
    assert lines[-1] == "# EOF"


def test_our_own_meters_give_every_family_and_both_forms_parse(live: Client) -> None:
    app = App(**{"service.name": "shop", "service.instance.id": "i-1"})
    Meters(app.meter).dropped("queue_full", "step", 3)
    for metric in semconv.METRICS.values():
        if metric.kind == "histogram":
            app.meter.create_histogram(metric.name, metric.unit).record(0.5)
        elif metric.kind == "updowncounter":
            app.meter.create_observable_up_down_counter(metric.name, [lambda _: [Observation(3)]], metric.unit)
        elif metric is not semconv.DROPPED:
            app.meter.create_counter(metric.name, metric.unit).add(7)
    app.send(live)
    families = {family.name: family for family in parse_openmetrics("\n".join(scrape(live)) + "\n")}
    assert families["claudescope_dropped"].samples[0].labels == {
        "claudescope_dropped_reason": "queue_full",
        "claudescope_dropped_kind": "step",
        "job": "shop",
        "instance": "i-1",
        "service_name": "shop",
    }
    # by the Go library that Prometheus' receiver uses (otlptranslator 1.0.0), without the suffixes of counters
    assert set(families) == {
        "claudescope_step_duration_seconds",
        "claudescope_step_confidence",
        "claudescope_steps",
        "claudescope_step_over",
        "claudescope_step_below",
        "claudescope_calls",
        "claudescope_active_calls",
        "claudescope_ratelimit_used",
        "claudescope_step_failures",
        "claudescope_step_outcomes",
        "claudescope_chain_steps",
        "claudescope_tokens",
        "claudescope_dropped",
        "gen_ai_client_operation_duration_seconds",
        "gen_ai_client_token_usage",
        "gen_ai_execute_tool_duration_seconds",
        "gen_ai_client_operation_time_to_first_chunk_seconds",
        "gen_ai_client_operation_time_per_output_chunk_seconds",
        "target",
        *OWN,
    }
    active = families["claudescope_active_calls"]
    assert (active.type, [(sample.name, sample.value) for sample in active.samples]) == (
        "gauge",
        [("claudescope_active_calls", 3)],
    )
    classic = {family.name for family in parse_classic("\n".join(scrape(live, "")) + "\n")}
    assert "claudescope_steps" in classic
    assert "target_info" in classic


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (PROMETHEUS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html;q=x;;,,=", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_the_form_is_that_asked_for(live: Client, accept: str, media: str) -> None:
    answer = live.get("/metrics", Accept=accept)
    assert answer.headers["content-type"].startswith(media)
    assert answer.body.endswith(b"# EOF\n") == ("openmetrics" in media)


@pytest.mark.parametrize(
    ("name", "label"),
    [  # as otlptranslator 1.0.0 gives them with Prometheus' default options
        ("gen_ai.request.model", "gen_ai_request_model"),
        ("claudescope.label.team-a", "claudescope_label_team_a"),
        ("a..b", "a__b"),
        ("é☃", "__"),
        ("_hidden", "key_hidden"),
        ("__name", "__name"),
        ("9lives", "key_9lives"),
        ("a:b", "a_b"),
    ],
)
def test_label_names(name: str, label: str) -> None:
    assert prometheus.label_name(name) == label


def test_label_values_and_names_that_become_one() -> None:
    attributes = {
        "a.b": 1,
        "a_b": 2.0,
        "t": True,
        "f": 0.5,
        "l": ["x", 1],
        "n": None,
        "é☃": "left out",
        "__name__": "x",
    }
    assert prometheus.labels_of(attributes) == {
        "a_b": "1;2",
        "t": "true",
        "f": "0.5",
        "l": '["x",1]',
        "n": "",
    }


def test_resources() -> None:
    resource = {"service.name": "shop", "service.namespace": "eu", "deployment.environment.name": "prod"}
    assert prometheus.resource_labels(resource) == {
        "service_name": "shop",
        "deployment_environment_name": "prod",
        "job": "eu/shop",
    }
    assert prometheus.target_labels({"service.name": "shop", "service.instance.id": "i"}) is None
    assert prometheus.target_labels({"host.name": "h"}) is None


def test_a_series_is_there_once(live: Client) -> None:
    """Two resources that differ in what is no label: a scrape with one sample twice would be refused as a whole."""
    for host in ("one", "two"):
        app = App(**{"service.name": "shop", "service.instance.id": "i", "host.name": host})
        app.meter.create_counter(semconv.STEPS.name, "{step}").add(1 if host == "one" else 5)
        app.send(live)
    lines = scrape(live)
    assert of(lines, "claudescope_steps_total") == [
        'claudescope_steps_total{instance="i",job="shop",service_name="shop"} 5.0'
    ]
    assert len(of(lines, "target_info")) == 2


def test_the_servers_own_figures(live: Client) -> None:
    sender = Sender()
    sender.step(0, span=b"\1" * 8)
    sender.step(1)
    sender.step(2, span=bytes(8))
    live.post(sender.body())
    again = Sender()
    again.step(0, span=b"\1" * 8)
    live.send(again)
    stream = Stream(live.url)
    values = dict(line.rsplit(" ", 1) for line in of(scrape(live), "claudescope_live_"))
    stream.close()
    assert float(values.pop("claudescope_live_store_bytes")) > 0
    assert float(values.pop("claudescope_live_start_time_seconds")) > 1.7e9
    assert values == {
        "claudescope_live_spans_total": "3.0",
        "claudescope_live_duplicate_spans_total": "1.0",
        "claudescope_live_rejected_spans_total": "1.0",
        "claudescope_live_refused_points_total": "0.0",
        "claudescope_live_lagged_events_total": "0.0",
        "claudescope_live_metric_series": "0.0",
        "claudescope_live_stream_clients": "1.0",
        "claudescope_live_backlog_bytes": "0.0",
        "claudescope_live_store_failing": "0.0",
    }


def test_own_figures_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
    for own in OWN.values():
        assert f"`{own.name}{'_total' if own.kind == 'counter' else ''}` | {own.kind} | {own.text} |" in text
