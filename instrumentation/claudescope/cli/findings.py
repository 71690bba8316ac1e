"""What ``claudescope doctor`` looks at: each function looks at one thing and yields findings."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Final

from ..finding import Finding
from ..settings import SETTINGS, Settings, find_config

__all__ = [
    "FAST",
    "SLOW",
    "answering",
    "call_spans",
    "plugins",
    "sdk_features",
    "settings_in_force",
    "versions",
]

_NATIVE_SINCE: Final = (1, 14)
_OLDEST: Final = (0, 75)
_WATCHED: Final = (
    "claudescope",
    "anthropic",
    "opentelemetry-api",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-distro",
)
_CALL_TRACERS: Final = {
    "opentelemetry-instrumentation-genai-anthropic": "OpenTelemetry's",
    "opentelemetry-instrumentation-anthropic": "traceloop's",
    "openinference-instrumentation-anthropic": "OpenInference's",
}
"""Distributions whose instrumentation makes a span of its own for each call."""


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def versions(settings: Settings) -> Iterator[Finding]:
    """What is installed, and whether the SDK is one that claudescope knows."""
    found = {name: _version(name) for name in _WATCHED}
    listed = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    yield Finding("installed", "ok", listed)
    sdk = found["anthropic"]
    if sdk is None:
        yield Finding(
            "installed", "fix", "There is no anthropic package here.", "Type: python -m pip install anthropic"
        )
    elif not _OLDEST <= _release(sdk) < (3,):
        yield Finding(
            "installed", "fix", f"anthropic {sdk} is not among the versions tested.", "Use one from 0.75 to 2.x."
        )


def call_spans(settings: Settings) -> Iterator[Finding]:
    """Whether the app itself, without us, would make two spans a call."""
    makers = {}
    sdk = _version("anthropic")
    native_off = os.environ.get("ANTHROPIC_OPEN_TELEMETRY", "").lower() == "false"
    if sdk is not None and _release(sdk) >= _NATIVE_SINCE and not native_off:
        makers["the SDK's own tracing"] = "ANTHROPIC_OPEN_TELEMETRY=false"
    disabled = {name.strip() for name in os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    for entry in metadata.entry_points(group="opentelemetry_instrumentor"):
        whose = _CALL_TRACERS.get(entry.dist.name.lower().replace("_", "-")) if entry.dist else None
        if whose is not None and entry.name not in disabled:
            makers[f"{whose} instrumentation"] = f"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS={entry.name}"
    if len(makers) > 1:
        yield Finding(
            "call spans",
            "fix",
            f"{_and(makers)} each make a span for the same call, with or without claudescope.",
            f"Keep one: set {' or '.join(dict.fromkeys(makers.values()))}.",
        )
    elif makers:
        yield Finding("call spans", "ok", f"Call spans are made by {next(iter(makers))}; claudescope adds its steps.")
    else:
        yield Finding("call spans", "ok", "Nothing else makes call spans; claudescope makes its own.")


def _and(names: dict[str, str]) -> str:
    *rest, last = names
    text = f"{', '.join(rest)} and {last}"
    return text[0].upper() + text[1:]


def settings_in_force(settings: Settings) -> Iterator[Finding]:
    """Every setting that is not its default, with where it comes from."""
    config = find_config()
    if config is not None:
        yield Finding("settings", "ok", f"The file {config} is read.")
    for key, setting in SETTINGS.items():
        value = getattr(settings, key)
        if value != setting.default and (key != "content" or value != "off"):
            capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
            named = [name for name in (setting.variable, capture * (key == "content")) if name in os.environ]
            source = named[0] if named else str(config)
            shown = "(not shown)" if key == "token" else repr(value)
            yield Finding("settings", "ok", f"{key} = {shown}, from {source}.")
    if settings.disabled or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield Finding(
            "settings", "fix", "claudescope is switched off.", "Unset CLAUDESCOPE_DISABLED and OTEL_SDK_DISABLED."
        )
    from ..emit.otel_env import exporter_name, unsupported

    for name in unsupported(os.environ):
        yield Finding(
            "settings", "fix", f"{name} is not honoured by claudescope's own providers.", "Unset or change it."
        )
    if exporter_name("traces", os.environ) != "otlp":
        yield Finding(
            "settings",
            "fix",
            f"OTEL_TRACES_EXPORTER={os.environ['OTEL_TRACES_EXPORTER']} sends no spans to a server.",
            "Unset it, or set it to otlp.",
        )


def answering(settings: Settings) -> Iterator[Finding]:
    """Whether somebody answers where the spans go."""
    from ..emit.endpoint import resolve
    from ..live.probe import probe

    endpoint = resolve("traces", os.environ)
    address = endpoint.address if "//" in endpoint.address else f"http://{endpoint.address}"
    health = probe(address, 2.0)
    if health is None:
        yield Finding(
            "server",
            "fix",
            f"Nothing answers at {endpoint.address}, where the spans go.",
            "Start `claudescope up`, use `claudescope run -- CMD`, or set OTEL_EXPORTER_OTLP_ENDPOINT.",
        )
    elif health.get("service") == "claudescope":
        yield Finding("server", "ok", f"claudescope {health.get('version')} answers at {endpoint.address}.")
    else:
        yield Finding("server", "ok", f"Something answers at {endpoint.address}; it is not a claudescope server.")


def sdk_features(settings: Settings) -> Iterator[Finding]:
    """Whether the private names that capture stands on are there. Imports ``anthropic``."""
    if _version("anthropic") is None:
        return
    from ..capture.seam import probe

    missing = [name for name, there in probe().items() if not there]
    if missing:
        yield Finding(
            "SDK",
            "fix",
            f"This anthropic lacks {', '.join(missing)}: what depends on it is missing from the spans.",
            "Use a version that claudescope was tested with, or a newer claudescope.",
        )
    else:
        yield Finding("SDK", "ok", f"All {len(probe())} names that claudescope stands on are there.")


def plugins(settings: Settings) -> Iterator[Finding]:
    """Whether the checks and confidence estimators can be loaded."""
    from ..assess.panel import Panel

    logging.getLogger("claudescope").addHandler(logging.NullHandler())  # what the panel logs is said here
    states = Panel.from_entry_points(settings).status()
    for kind, topic in (("validator", "checks"), ("confidence", "confidence")):
        loaded = [status.name for status in states if status.kind == kind and status.state == "on"]
        yield Finding(topic, "ok" if loaded else "note", f"{', '.join(loaded) or 'None'} loaded.")
    for status in states:
        if status.state == "not loaded":
            topic = "checks" if status.kind == "validator" else "confidence"
            yield Finding(
                topic, "fix", f"{status.name} cannot be loaded: {status.last_failure}.", "Correct or uninstall it."
            )


FAST: Final[tuple[Callable[[Settings], Iterator[Finding]], ...]] = (
    versions,
    call_spans,
    settings_in_force,
    answering,
)
SLOW: Final[tuple[Callable[[Settings], Iterator[Finding]], ...]] = (sdk_features, plugins)
