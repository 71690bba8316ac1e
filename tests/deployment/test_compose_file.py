"""docker-compose.yml is valid, needs its secrets, and gives each part no more than it needs."""

from __future__ import annotations

import re

import pytest
from compose_model import ROOT, SECRETS, docker_compose, resolve

ONE_SHOT = {"init"}
SERVICES = {"init", "collector", "jaeger", "prometheus", "alertmanager", "grafana", "demo", "explainer"}


def test_the_services_are_these(model):
    assert set(model["services"]) == SERVICES
    profiles = {name: service["profiles"] for name, service in model["services"].items() if service.get("profiles")}
    assert profiles == {"demo": ["demo"], "explainer": ["explainer"]}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_part_starts_without_its_secret(model, secret, tmp_path):
    env = tmp_path / "env"
    env.write_text("".join(f"{name}={value}\n" for name, value in SECRETS.items() if name != secret))
    done = docker_compose("--env-file", str(env), "config", "-q")
    assert done.returncode == 1
    assert f"required variable {secret} is missing a value" in done.stderr
    assert "claudescope stack init" in done.stderr


def test_the_validator_sees_a_wrong_file(model, tmp_path):
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    for wrong, right in (("  stack_:\n", "  stack:\n"), ("    mem_limits:", "    mem_limit:"), ("[init_]", "[ALL]")):
        broken = tmp_path / "docker-compose.yml"
        changed = text.replace(right, wrong)
        assert changed != text
        broken.write_text(changed)
        env = tmp_path / "env"
        env.write_text("".join(f"{name}={value}\n" for name, value in SECRETS.items()))
        done = docker_compose("--env-file", str(env), "config", "-q", file=broken)
        assert (done.returncode != 0) is (wrong != "[init_]"), (wrong, done.stderr)  # it knows no capabilities


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_part_may_do_little(model, name):
    service = model["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["mem_limit"]) <= 2 * 2**30
    assert "privileged" not in service
    if name in ONE_SHOT:
        assert (service["user"], service["cap_add"], service["network_mode"]) == ("0:0", ["CHOWN"], "none")
        assert service["restart"] == "no"
    else:
        assert service["user"] in ("10001:10001", "10001:0")
        assert "cap_add" not in service
        assert service["restart"] == "unless-stopped"
        assert service["tmpfs"] == ["/tmp"] + ["/var/log/grafana"] * (name == "grafana")
        assert service["logging"] == {"driver": "json-file", "options": {"max-file": "3", "max-size": "10m"}}
    assert all(mount.get("read_only") for mount in service.get("volumes", []) if mount["type"] == "bind")


def test_ports_are_on_loopback_unless_a_variable_says_otherwise(model, tmp_path):
    def published(model):
        return {
            (port["host_ip"], int(port["published"]), port["target"])
            for service in model["services"].values()
            for port in service.get("ports", [])
        }

    assert published(model) == {("127.0.0.1", port, port) for port in (3000, 4317, 4318, 9090, 9093, 9096, 16686)}
    changed = {
        "CS_OTLP_BIND": "0.0.0.0",
        "CS_OTLP_GRPC_PORT": "5317",
        "CS_OTLP_HTTP_PORT": "5318",
        "CS_UI_BIND": "192.0.2.7",
        "CS_GRAFANA_PORT": "13000",
    }
    assert published(resolve(tmp_path, {**SECRETS, **changed})) == {
        ("0.0.0.0", 5317, 4317),
        ("0.0.0.0", 5318, 4318),
        ("192.0.2.7", 13000, 3000),
        ("192.0.2.7", 9090, 9090),
        ("192.0.2.7", 9093, 9093),
        ("192.0.2.7", 9096, 9096),
        ("192.0.2.7", 16686, 16686),
    }


def test_links_follow_the_published_port(model, tmp_path):
    def urls(model):
        services = model["services"]
        flags = [word for name in ("prometheus", "alertmanager") for word in services[name]["command"]]
        external = [word.partition("=")[2] for word in flags if word.startswith("--web.external-url=")]
        return [*external, services["grafana"]["environment"]["GF_SERVER_ROOT_URL"]]

    assert urls(model) == ["http://localhost:9090", "http://localhost:9093", "http://localhost:3000"]
    moved = {"CS_PROMETHEUS_PORT": "1", "CS_ALERTMANAGER_PORT": "2", "CS_GRAFANA_URL": "https://grafana.example"}
    assert urls(resolve(tmp_path, {**SECRETS, **moved})) == [
        "http://localhost:1",
        "http://localhost:2",
        "https://grafana.example",
    ]


def test_secrets_go_where_they_are_needed_and_nowhere_else(model):
    holders = {
        (name, variable)
        for name, service in model["services"].items()
        for variable, value in (service.get("environment") or {}).items()
        if any(secret in str(value) for secret in SECRETS.values())
    }
    assert holders == {
        ("collector", "CS_OTLP_TOKEN"),
        ("collector", "CS_HMAC_KEY"),
        ("grafana", "GF_SECURITY_ADMIN_PASSWORD"),
        ("demo", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("explainer", "CLAUDESCOPE_EXPLAINER_TOKEN"),
        ("explainer", "CLAUDESCOPE_EXPLAINER_GRAFANA_TOKEN"),  # unless it has one of its own
    }
    commands = [word for service in model["services"].values() for word in service.get("command") or []]
    assert not [word for word in commands for secret in SECRETS.values() if secret in word]


def test_the_init_service_owns_every_volume_and_all_others_wait_for_it(model):
    volumes = set(model["volumes"])
    init = model["services"]["init"]
    given = {mount["source"]: mount["target"] for mount in init["volumes"]}
    assert set(given) == volumes
    assert init["command"] == ["chown", "10001:10001", *given.values()]
    for name, service in model["services"].items():
        kept = [mount for mount in service.get("volumes", []) if mount["type"] == "volume"]
        if name == "init" or not kept:
            continue
        assert service["depends_on"]["init"]["condition"] == "service_completed_successfully"
        # else the first container to use the volume would give it the owner that its image has there
        assert all(mount["volume"] == {"nocopy": True} for mount in kept)
    assert {mount["source"] for name, service in model["services"].items() if name != "init"
            for mount in service.get("volumes", []) if mount["type"] == "volume"} == volumes  # fmt: skip


def test_health_checks_are_where_the_image_holds_a_client(model):
    checked = {name for name, service in model["services"].items() if "healthcheck" in service}
    assert checked == {"jaeger", "prometheus", "alertmanager", "grafana", "explainer"}
    waits = {
        (name, other, how["condition"])
        for name, service in model["services"].items()
        for other, how in service.get("depends_on", {}).items()
        if other != "init"
    }
    assert waits == {("demo", "collector", "service_started")}  # everyone else tries again


def test_images_are_the_versions_that_are_tested(model):
    images = {name: service["image"] for name, service in model["services"].items()}

    def required(tool, module):
        text = (ROOT / "scripts" / "stack" / tool / "go.mod").read_text("utf-8")
        found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE)
        assert found is not None
        return found[1]

    manifest = (ROOT / "collector" / "builder.yaml").read_text("utf-8")
    collector = re.search(r"^  version: (\S+)$", manifest, re.MULTILINE)
    assert collector is not None
    assert images["collector"] == f"otel/opentelemetry-collector-contrib:{collector[1]}"
    assert (
        images["alertmanager"] == f"prom/alertmanager:{required('alertmanager', 'github.com/prometheus/alertmanager')}"
    )
    # Prometheus 3.N is the module v0.(300 + N); Jaeger 2.N was released with the module v1.(63 + N).
    prometheus = required("prometheus", "github.com/prometheus/prometheus")
    minor, patch = re.fullmatch(r"v0\.3(\d\d)\.(\d+)", prometheus).groups()
    assert images["prometheus"] == f"prom/prometheus:v3.{int(minor)}.{patch}"
    minor, patch = re.fullmatch(r"v1\.(\d+)\.(\d+)", required("jaeger", "github.com/jaegertracing/jaeger")).groups()
    assert images["jaeger"] == f"cr.jaegertracing.io/jaegertracing/jaeger:2.{int(minor) - 63}.{patch}"
    assert re.fullmatch(r"grafana/grafana:13\.\d+\.\d+", images["grafana"])
    assert re.fullmatch(r"busybox:\d+\.\d+\.\d+", images["init"])
    assert (images["demo"], images["explainer"]) == ("claudescope-demo", "claudescope-explainer")  # built here


def test_the_explainer_has_settings_that_it_knows_and_what_env_sets(model, tmp_path):
    def given(model):
        return model["services"]["explainer"]["environment"]

    from claudescope.explainer.options import OPTIONS, Options

    assert set(given(model)) <= {option.variable for option in OPTIONS.values()}
    options = Options.load({}, given(model))
    assert (options.host, options.port, options.token) == ("0.0.0.0", 9096, "an-explainer-token")
    assert (options.public, options.grafana_token) == ("http://localhost:9096", "admin:a-password")
    assert (options.webhook, options.jira, options.github_repo) == ("", "", "")
    more = {
        "CS_EXPLAINER_GRAFANA_TOKEN": "glsa_x",
        "CS_EXPLAINER_PORT": "1",
        "CS_JAEGER_PORT": "2",
        "CS_GRAFANA_URL": "https://grafana.example",
        "CS_EXPLAINER_JIRA": "https://jira.example",
        "CS_EXPLAINER_JIRA_PROJECT": "OPS",
        "CS_EXPLAINER_JIRA_TOKEN": "j",
        "CS_EXPLAINER_GITHUB_REPO": "acme/shop",
        "CS_EXPLAINER_GITHUB_TOKEN": "g",
        "CS_EXPLAINER_WEBHOOK": "https://hook.example/x",
    }
    set_ = Options.load({}, given(resolve(tmp_path, {**SECRETS, **more})))
    assert (set_.public, set_.jaeger_public, set_.grafana_public) == (
        "http://localhost:1",
        "http://localhost:2",
        "https://grafana.example",
    )
    assert (set_.grafana_token, set_.jira_project, set_.github_repo) == ("glsa_x", "OPS", "acme/shop")
    assert set_.webhook == "https://hook.example/x"


def test_the_explainers_image_has_its_extra_and_the_demos_has_not(model):
    built = {name: model["services"][name]["build"]["args"] for name in ("demo", "explainer")}
    assert built == {"demo": {"CLAUDESCOPE": "."}, "explainer": {"CLAUDESCOPE": ".", "EXTRA": "grafana"}}
