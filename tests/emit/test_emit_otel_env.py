import os
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import sampling

from claudescope.emit.endpoint import resolve
from claudescope.emit.otel_env import brisk, exporter_name, resource, sampler, unsupported


def test_endpoint_defaults():
    made = resolve("traces", {})
    assert (made.protocol, made.url, made.timeout, made.compression) == (
        "http/protobuf",
        "http://localhost:4318/v1/traces",
        10.0,
        "none",
    )
    assert (made.loopback, made.address) == (True, "http://localhost:4318")
    grpc = resolve("logs", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert (grpc.url, grpc.insecure, grpc.loopback) == ("http://localhost:4317", True, True)


def test_the_general_endpoint_gets_the_signals_path_and_the_own_one_does_not():
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://user:pw@collector.example:8443/otlp/",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://logs.example/in",
    }
    assert resolve("traces", env).url == "https://user:pw@collector.example:8443/otlp/v1/traces"
    assert resolve("traces", env).address == "https://collector.example:8443"  # no credentials in what people see
    assert resolve("logs", env).url == "http://logs.example/in"
    assert resolve("logs", env).loopback is False


def test_a_signals_own_variables_win():
    env = {
        "OTEL_EXPORTER_OTLP_TIMEOUT": "3",
        "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "4.5",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_HEADERS": "a=1,b=two%20words",
    }
    traces, metrics = resolve("traces", env), resolve("metrics", env)
    assert (traces.timeout, metrics.timeout) == (3.0, 4.5)
    assert (traces.protocol, metrics.protocol) == ("http/protobuf", "grpc")
    assert (traces.compression, traces.certificate) == ("gzip", "/ca.pem")
    assert traces.headers == {"a": "1", "b": "two words"}


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan"])
def test_a_timeout_that_is_none_is_the_default(value):
    assert resolve("traces", {"OTEL_EXPORTER_OTLP_TIMEOUT": value}).timeout == 10.0


def test_grpc_transport_security():
    def insecure(**env):
        return resolve("traces", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", **env}).insecure

    assert insecure(OTEL_EXPORTER_OTLP_ENDPOINT="https://c:4317") is False
    assert insecure(OTEL_EXPORTER_OTLP_ENDPOINT="c:4317") is False
    assert insecure(OTEL_EXPORTER_OTLP_ENDPOINT="c:4317", OTEL_EXPORTER_OTLP_INSECURE="true") is True
    assert insecure(OTEL_EXPORTER_OTLP_ENDPOINT="https://c:4317", OTEL_EXPORTER_OTLP_INSECURE="true") is False


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("", "otlp"),
        ("otlp", "otlp"),
        ("otlp_proto_http", "otlp"),
        ("none", "none"),
        ("console", "console"),
        ("zipkin", "otlp"),
        ("console,otlp", "console"),
        ("prometheus, none", "none"),
    ],
)
def test_exporter_names(value, name):
    assert exporter_name("traces", {"OTEL_TRACES_EXPORTER": value}) == name


def test_unsupported_names_what_has_no_effect_and_nothing_else():
    env = {
        "OTEL_SERVICE_NAME": "a",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=secret",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_TRACES_EXPORTER": "zipkin",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_TRACES_SAMPLER": "jaeger_remote",
        "OTEL_EXPORTER_ZIPKIN_ENDPOINT": "http://z",
        "OTEL_BSP_EXPORT_TIMEOUT": "1",
        "OTEL_CONFIG_FILE": "x.yaml",
        "OTEL_ENTITIES": "",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "x",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai",
        "PATH": "/bin",
    }
    assert unsupported(env) == [
        "OTEL_BSP_EXPORT_TIMEOUT",
        "OTEL_CONFIG_FILE",
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
        "OTEL_EXPORTER_ZIPKIN_ENDPOINT",
        "OTEL_TRACES_EXPORTER=zipkin",
        "OTEL_TRACES_SAMPLER=jaeger_remote",
    ]


def test_resource():
    made = resource({"OTEL_RESOURCE_ATTRIBUTES": "service.name=r,team=a%20b,broken, =x"}).attributes
    assert (made["service.name"], made["team"], made["process.pid"]) == ("r", "a b", os.getpid())
    assert made["telemetry.sdk.language"] == "python"
    assert made["service.instance.id"] != resource({}).attributes["service.instance.id"]
    assert resource({"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=one"}).attributes["service.instance.id"] == "one"
    both = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=r", "OTEL_SERVICE_NAME": "s"}
    assert resource(both).attributes["service.name"] == "s"


@pytest.mark.parametrize(
    ("how", "name"), [("script", "my_app"), ("module", "my_app"), ("folder", "pack"), ("-c", "python")]
)
def test_service_name_of_an_app_without_one(how, name, tmp_path):
    code = "import os\nfrom claudescope.emit.otel_env import resource\nprint(resource({}).attributes['service.name'])\n"
    (tmp_path / "my_app.py").write_text(code)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__main__.py").write_text(code)
    command = {
        "script": [str(tmp_path / "my_app.py")],
        "module": ["-m", "my_app"],
        "folder": ["-m", "pack"],
        "-c": ["-c", code],
    }[how]
    ended = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == name


def test_sampler():
    def described(name, argument=""):
        return sampler({"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument})

    assert described("always_on") is sampling.ALWAYS_ON
    assert described("always_off") is sampling.ALWAYS_OFF
    ratio = described("traceidratio", "0.25")
    assert isinstance(ratio, sampling.TraceIdRatioBased)
    assert ratio.rate == 0.25
    for name, argument, inner in (
        ("", "", "AlwaysOnSampler"),
        ("strange", "", "AlwaysOnSampler"),
        ("parentbased_always_off", "", "AlwaysOffSampler"),
        ("parentbased_traceidratio", "0.5", "TraceIdRatioBased{0.5}"),
        ("parentbased_traceidratio", "7", "TraceIdRatioBased{1.0}"),
        ("parentbased_traceidratio", "half", "TraceIdRatioBased{1.0}"),
    ):
        assert described(name, argument).get_description().startswith(f"ParentBased{{root:{inner}")


def test_under_run_metrics_go_out_every_five_seconds_unless_said_otherwise() -> None:
    assert brisk({}) == {"OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    own = {"OTEL_METRIC_EXPORT_INTERVAL": "1000", "OTEL_SERVICE_NAME": "a"}
    assert brisk(own) == own
