"""Every path, port, variable and address of docker-compose.yml is in what it mounts, and the other way round."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
import yaml
from compose_model import ROOT, SECRETS, VARIABLE, configuration, mounted, resolve, source_of, strings

from claudescope.explainer.options import OPTIONS
from claudescope.stack.dotenv import parse_dotenv
from claudescope.stack.explainer import TOKEN_FILE, routed
from claudescope.stack.variables import VARIABLES, env_example

COLLECTORS = ("collector", "jaeger")
CONFIGURED = (*COLLECTORS, "prometheus", "alertmanager")

FIXED = {
    "collector": {
        "CS_GRPC_LISTEN", "CS_HTTP_LISTEN", "CS_HEALTH_LISTEN", "CS_TELEMETRY_HOST", "CS_TELEMETRY_PORT",
        "CS_QUEUE_DIR",
        "CS_JAEGER_ENDPOINT", "CS_JAEGER_INSECURE", "CS_PROMETHEUS_ENDPOINT", "CS_INTAKE",
        "CS_TLS_CERT", "CS_TLS_KEY",
    },
    "jaeger": {
        "CS_JAEGER_OTLP_LISTEN", "CS_JAEGER_UI_LISTEN", "CS_JAEGER_QUERY_LISTEN", "CS_JAEGER_HEALTH_LISTEN",
        "CS_JAEGER_TELEMETRY_HOST", "CS_JAEGER_TELEMETRY_PORT", "CS_JAEGER_DIR", "CS_JAEGER_EPHEMERAL",
        "CS_JAEGER_UI_CONFIG", "CS_PROMETHEUS_ENDPOINT",
    },
}  # fmt: skip
"""What the containers are not given: addresses and folders inside them, and what switches a safeguard off."""

IMAGES_OWN = {
    "grafana": {"/etc/grafana/provisioning", "/var/lib/grafana"},
    "alertmanager": {"/etc/alertmanager/secrets"},  # named in the examples of alertmanager.yml
}
"""Mounts that no configuration in force names: the image's own places, and those for what a person adds."""

UNUSED_PORTS = {("collector", 13133), ("jaeger", 16685)}
"""Health without a client in the image; Jaeger's gRPC API, which nothing here asks."""


# ---------------------------------------------------------------------------------------------------------- variables


def test_the_example_is_written_from_the_table():
    assert (ROOT / ".env.example").read_text("utf-8") == env_example()


def test_every_variable_of_the_file_is_in_the_table_and_the_other_way_round():
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    used = set(re.findall(r"\$\{(CS_\w+)", code)) | set(re.findall(r"^\s+(CS_\w+):\s*$", code, re.MULTILINE))
    assert used == set(VARIABLES)


def test_the_docs_name_variables_that_there_are():
    named = set(re.findall(r"CS_\w+", (ROOT / "docs" / "stack.md").read_text("utf-8")))
    assert named
    assert named <= set(VARIABLES)


def test_a_default_is_the_same_in_both(model, tmp_path):
    """The example with every line in force gives the same as with none of them."""
    everything = re.sub(r"^# (CS_\w+=)", r"\1", env_example(), flags=re.MULTILINE)
    everything = "".join(
        f"{name}={SECRETS[name]}\n" if (name := line.partition("=")[0]) in SECRETS else f"{line}\n"
        for line in everything.splitlines()
    )
    written_out = resolve(tmp_path, text=everything)
    for name, service in model["services"].items():
        explicit = written_out["services"][name]
        environment, explicit_environment = service.pop("environment", {}), explicit.pop("environment", {})
        assert explicit == service
        for variable, value in environment.items():
            expected = VARIABLES[variable].default if value is None else value
            assert explicit_environment[variable] == expected, variable
        service["environment"] = environment


@pytest.mark.parametrize("name", COLLECTORS)
def test_what_is_passed_on_is_what_the_configuration_reads(model, name):
    service = model["services"][name]
    source, _ = configuration(service)
    reads = {found[1]: found[2] or "" for found in VARIABLE.finditer(source.read_text("utf-8"))}
    assert set(service["environment"]) == set(reads) - FIXED[name]
    assert FIXED[name] <= set(reads)
    for variable in service["environment"]:
        if variable not in SECRETS:
            assert reads[variable] == VARIABLES[variable].default, variable


@pytest.mark.parametrize("name", COLLECTORS)
def test_the_table_of_the_collectors_readme_says_the_same(model, name):
    readme = (ROOT / "collector" / "README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(CS_\w+)` \| (?:`([^`]*)`)?[^|]*\|", readme, re.MULTILINE))
    source, _ = configuration(model["services"][name])
    reads = {found[1]: found[2] or "" for found in VARIABLE.finditer(source.read_text("utf-8"))}
    assert set(reads) <= set(rows)
    wrong = {variable for variable, default in reads.items() if rows[variable] != default}
    assert wrong <= {"CS_REDACT_KEYS"}  # in words there


def test_the_env_file_is_read_as_compose_reads_it(model, tmp_path):
    text = r"""
CS_OTLP_TOKEN='to$ken #1'
export CS_HMAC_KEY="k\"ey" # why
CS_GRAFANA_PASSWORD=pass word # no part of it
CS_EXPLAINER_TOKEN=t
CS_LOG_LEVEL=${CS_NOT_THERE:-warn}
CS_SLOW_MS=100$CS_LOG_LEVEL
CS_REDACT_KEYS=["(?i)^a\\z", "b"]
CS_ROOT_WAIT=
CS_QUEUE_SPANS = 5
CS_LOGS_ENDPOINT=http://loki:3100/otlp#here
"""
    compose = resolve(tmp_path, text=text)["services"]
    ours = parse_dotenv(text, {})
    for variable, value in compose["collector"]["environment"].items():
        if variable in ours:
            assert ours[variable] == (value or "").replace("$$", "$"), variable  # the model escapes its output
    assert ours["CS_OTLP_TOKEN"] == "to$ken #1"
    assert compose["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"] == ours["CS_GRAFANA_PASSWORD"]


# -------------------------------------------------------------------------------------------------------------- paths


def test_every_mounted_file_is_in_the_tree(model):
    sources = {source for service in model["services"].values() if "volumes" in service
               for source in mounted(service).values()}  # fmt: skip
    assert not [source for source in sources if not source.exists()]
    used = {source for source in sources if source.is_relative_to(ROOT / "collector")}
    tree = {path for path in (ROOT / "collector").iterdir() if path.suffix in {".yaml", ".yml", ".json"}}
    folders = {ROOT / "collector" / "rules", ROOT / "collector" / "slos"}
    assert tree | folders == used | {ROOT / "collector" / "builder.yaml"}


def _paths(text: str) -> set[str]:
    return {found[1] for found in re.finditer(r"(?:^|[=\s])(/[a-z][\w./*-]*)", text) if found[1] != "/dev/null"}


@pytest.mark.parametrize("name", [*CONFIGURED, "grafana"])
def test_every_path_that_a_part_reads_is_mounted_and_the_other_way_round(model, name):
    service = model["services"][name]
    texts = [*(service.get("command") or []), *map(str, (service.get("environment") or {}).values())]
    if name in CONFIGURED:
        source, configured = configuration(service)
        base = next(target for target, mount in mounted(service).items() if mount == source).rpartition("/")[0]
        texts += [text for text in strings(configured) if not text.startswith("/api")]
        texts += [f"{base}/{glob}" for glob in configured.get("rule_files", [])] if name == "prometheus" else []
    else:
        for file in (ROOT / "dashboards" / "provisioning").rglob("*.yaml"):
            texts += list(strings(yaml.safe_load(file.read_text("utf-8"))))
    named = set().union(*map(_paths, texts))
    targets = {mount["target"] for mount in service["volumes"]}
    for path in named:
        assert any(path == target or path.startswith(f"{target}/") for target in targets), f"{path} is not mounted"
        found = source_of(service, path)
        if found is not None and ROOT / "secrets" not in found.parents:  # those are a person's own
            assert list(found.parent.glob(found.name)), f"{path} is not in the tree"
    unnamed = {
        target for target in targets if not any(path == target or path.startswith(f"{target}/") for path in named)
    }
    assert unnamed == IMAGES_OWN.get(name, set()) - named


# ------------------------------------------------------------------------------------------------ ports and addresses


def _listening(model) -> set[tuple[str, int]]:
    """Service and port of everything that listens, as the mounted configuration has it."""
    # the programs' own defaults
    found = {("prometheus", 9090), ("alertmanager", 9093), ("grafana", 3000), ("explainer", OPTIONS["port"].default)}
    for name in COLLECTORS:
        _, configured = configuration(model["services"][name])
        places = [configured["receivers"], configured["extensions"]]
        endpoints = [text for place in places for text in strings(place) if re.fullmatch(r"[\d.]+:\d+", text)]
        assert all(endpoint.startswith("0.0.0.0:") for endpoint in endpoints)
        found |= {(name, int(endpoint.rpartition(":")[2])) for endpoint in endpoints}
        for reader in configured["service"]["telemetry"]["metrics"]["readers"]:
            pull = reader["pull"]["exporter"]["prometheus"]
            assert pull["host"] == "0.0.0.0"
            found.add((name, int(pull["port"])))
    return found


def _connections(model) -> set[tuple[str, str, int]]:
    """Service, host and port of everything that one part asks of another."""
    services = model["services"]
    found = set()

    def add(name, address):
        parts = urlsplit(address if "//" in address else f"//{address}")
        assert parts.hostname is not None
        assert parts.port is not None, address
        found.add((name, name if parts.hostname in ("localhost", "127.0.0.1") else parts.hostname, parts.port))

    _, collector = configuration(services["collector"])
    exporters = {name for pipeline in collector["service"]["pipelines"].values() for name in pipeline["exporters"]}
    for exporter in exporters & set(collector["exporters"]):
        if (collector["exporters"][exporter] or {}).get("endpoint"):
            add("collector", collector["exporters"][exporter]["endpoint"])
    _, jaeger = configuration(services["jaeger"])
    for backend in jaeger["extensions"]["jaeger_storage"]["metric_backends"].values():
        add("jaeger", backend["prometheus"]["endpoint"])
    _, prometheus = configuration(services["prometheus"])
    jobs = [*prometheus["scrape_configs"], *prometheus["alerting"]["alertmanagers"]]
    for target in (target for job in jobs for group in job["static_configs"] for target in group["targets"]):
        add("prometheus", target)
    for file in (ROOT / "dashboards" / "provisioning" / "datasources").glob("*.yaml"):
        for source in yaml.safe_load(file.read_text("utf-8"))["datasources"]:
            add("grafana", source["url"])
    add("demo", services["demo"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"])
    for part in ("PROMETHEUS", "JAEGER", "GRAFANA"):
        add("explainer", services["explainer"]["environment"][f"CLAUDESCOPE_EXPLAINER_{part}"])
    source = source_of(services["alertmanager"], "/etc/alertmanager/alertmanager.yml")
    for receiver in yaml.safe_load(routed(source.read_bytes()))["receivers"]:
        for webhook in receiver.get("webhook_configs", []):
            add("alertmanager", webhook["url"])
    for name, service in services.items():
        if "healthcheck" in service:
            add(name, service["healthcheck"]["test"][-1])
    return found


def test_every_address_is_a_part_that_listens_there(model):
    listening, services = _listening(model), model["services"]
    for name, host, port in _connections(model):
        assert (host, port) in listening, f"{name} asks {host}:{port}, where nothing listens"
        assert set(services[name]["networks"]) & set(services[host]["networks"]), f"{name} does not reach {host}"


def test_every_port_is_published_or_asked(model):
    listening = _listening(model)
    published = {
        (name, port["target"]) for name, service in model["services"].items() for port in service.get("ports", [])
    }
    assert published <= listening
    asked = {(host, port) for _, host, port in _connections(model)}
    assert listening - published - asked == UNUSED_PORTS


def test_the_collector_gives_up_before_its_container_is_killed(model):
    service = model["services"]["collector"]
    _, configured = configuration(service)
    limit = configured["processors"]["memory_limiter"]["limit_mib"] * 2**20
    assert int(service["mem_limit"]) == 1.5 * limit


def test_links_of_jaegers_page_lead_to_grafana_and_to_dashboards_that_are_there(model):
    text = (ROOT / "collector" / "jaeger-ui.json").read_text("utf-8")
    grafana = model["services"]["grafana"]["environment"]["GF_SERVER_ROOT_URL"]
    links = re.findall(r'"url": "([^"]+)"', text)
    assert links
    for link in links:
        assert link.startswith(f"{grafana}/d/")
        uid = re.match(r"[\w-]+", link[len(grafana) + 3 :])
        assert uid is not None
        assert (ROOT / "dashboards" / "json" / f"{uid[0]}.json").is_file()


def test_alertmanagers_way_to_the_explainer_is_there_only_when_it_is(model):
    source = source_of(model["services"]["alertmanager"], "/etc/alertmanager/alertmanager.yml")
    without, with_it = (yaml.safe_load(text) for text in (source.read_bytes(), routed(source.read_bytes())))
    assert "explainer" not in str(without)
    route = next(one for one in with_it["route"]["routes"] if one["receiver"] == "explainer")
    assert (route["matchers"], route["continue"]) == (['claudescope_slo=~".+"'], True)
    with_it["route"]["routes"].remove(route)
    receiver = with_it["receivers"].pop()
    assert with_it == without
    (webhook,) = receiver["webhook_configs"]
    assert webhook["send_resolved"] is True
    file = webhook["http_config"]["authorization"]["credentials_file"]
    assert source_of(model["services"]["alertmanager"], file) == ROOT / TOKEN_FILE


def test_the_explainer_keeps_what_it_has_in_its_volume_and_reads_the_shipped_objectives(model):
    service = model["services"]["explainer"]
    environment = service["environment"]
    volume = next(mount["target"] for mount in service["volumes"] if mount["type"] == "volume")
    for name in ("DATA", "TICKETS"):
        assert environment[f"CLAUDESCOPE_EXPLAINER_{name}"].startswith(f"{volume}/")
    assert source_of(service, environment["CLAUDESCOPE_EXPLAINER_SLO"]) == ROOT / "collector" / "slos"
