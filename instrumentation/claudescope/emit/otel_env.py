"""The OTEL_* variables that claudescope's own providers honour, and what they say about resource and sampler."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote, unquote
from uuid import uuid4

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import sampling

from ..semconv import PROCESS_PID, SERVICE_INSTANCE_ID, SERVICE_NAME
from .endpoint import Signal

__all__ = ["HONOURED", "ExporterName", "brisk", "exporter_name", "resource", "sampler", "under_run", "unsupported"]

ExporterName = Literal["otlp", "console", "none"]

_RUN_INTERVAL: Final = "5000"
"""Milliseconds: a person who watches, and a process that lives briefly, should not wait for a minute."""
_OTLP: Final = (
    "ENDPOINT",
    "PROTOCOL",
    "HEADERS",
    "TIMEOUT",
    "COMPRESSION",
    "CERTIFICATE",
    "CLIENT_KEY",
    "CLIENT_CERTIFICATE",
    "INSECURE",
)
HONOURED: Final = frozenset(
    {
        "OTEL_SDK_DISABLED",
        "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_PROPAGATORS",
        "OTEL_TRACES_SAMPLER",
        "OTEL_TRACES_SAMPLER_ARG",
        "OTEL_TRACES_EXPORTER",
        "OTEL_LOGS_EXPORTER",
        "OTEL_METRICS_EXPORTER",
        "OTEL_METRIC_EXPORT_INTERVAL",
        "OTEL_METRIC_EXPORT_TIMEOUT",
        "OTEL_METRICS_EXEMPLAR_FILTER",
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
        "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
        *(f"OTEL_{queue}_{name}" for queue in ("BSP", "BLRP") for name in ("SCHEDULE_DELAY", "MAX_QUEUE_SIZE")),
        *(f"OTEL_{queue}_MAX_EXPORT_BATCH_SIZE" for queue in ("BSP", "BLRP")),
        *(f"OTEL_EXPORTER_OTLP_{name}" for name in _OTLP),
        *(f"OTEL_EXPORTER_OTLP_{signal}_{name}" for signal in ("TRACES", "LOGS", "METRICS") for name in _OTLP),
        # read by the SDK's own classes, which claudescope uses
        "OTEL_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
        "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
        "OTEL_SPAN_EVENT_COUNT_LIMIT",
        "OTEL_SPAN_LINK_COUNT_LIMIT",
        "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS",
    }
)
"""The variables that have their documented effect on what claudescope emits."""

_OTHERS: Final = ("OTEL_PYTHON_", "OTEL_INSTRUMENTATION_", "OTEL_SEMCONV_STABILITY_OPT_IN", "OTEL_LOG_LEVEL")
"""Beginnings of variables that belong to the app's instrumentations or to the SDK as a whole, not to a pipeline."""

_SAMPLERS: Final = frozenset(
    {
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
    }
)


def brisk(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with the metric interval of ``claudescope run``, 5 s, where it has none of its own."""
    return {"OTEL_METRIC_EXPORT_INTERVAL": _RUN_INTERVAL, **env}


def under_run(env: Mapping[str, str], endpoint: str, token: str) -> dict[str, str]:
    """The environment of our own exporters under ``claudescope run``: its server, whatever the app's exporters use.

    The process's own variables stay as they are, so that the app's spans go where they would go without us.
    """
    kept = {
        name: value
        for name, value in env.items()
        if not name.startswith("OTEL_EXPORTER_OTLP_") or name.endswith(("_TIMEOUT", "_PREFERENCE", "_AGGREGATION"))
    }
    kept.update({f"OTEL_{signal}_EXPORTER": "otlp" for signal in ("TRACES", "METRICS", "LOGS")})
    kept["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    kept["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
    kept = brisk(kept)
    if token:
        kept["OTEL_EXPORTER_OTLP_HEADERS"] = f"authorization=Bearer%20{quote(token)}"
    return kept


def exporter_name(signal: Signal, env: Mapping[str, str]) -> ExporterName:
    """``otlp``, ``console`` or ``none`` by ``OTEL_{SIGNAL}_EXPORTER``; the first that is known, else ``otlp``."""
    for word in env.get(f"OTEL_{signal.upper()}_EXPORTER", "").lower().split(","):
        if word.strip() == "otlp" or word.strip().startswith("otlp_proto_"):
            return "otlp"
        if word.strip() == "console":
            return "console"
        if word.strip() == "none":
            return "none"
    return "otlp"


def unsupported(env: Mapping[str, str]) -> list[str]:
    """The OTEL_* variables, with their values where the value is the matter, that are set and not honoured; sorted.

    For one warning. Variables that belong to others (``OTEL_PYTHON_*``, ``OTEL_INSTRUMENTATION_*``) are not named.
    Values that may be secret are never given.
    """
    found = []
    for name, value in env.items():
        word = value.strip().lower()
        if not name.startswith("OTEL_") or not word or name.startswith(_OTHERS):
            continue
        if name not in HONOURED:
            found.append(name)
        elif name.endswith(("TRACES_EXPORTER", "LOGS_EXPORTER", "METRICS_EXPORTER")):
            if word not in ("otlp", "otlp_proto_grpc", "otlp_proto_http", "console", "none"):
                found.append(f"{name}={value.strip()}")
        elif name.endswith("_PROTOCOL"):
            if word not in ("grpc", "http/protobuf"):
                found.append(f"{name}={value.strip()}")
        elif name == "OTEL_TRACES_SAMPLER" and word not in _SAMPLERS:
            found.append(f"{name}={value.strip()}")
    return sorted(found)


def resource(env: Mapping[str, str]) -> Resource:
    """What describes the process on everything that it emits.

    ``service.name`` is ``OTEL_SERVICE_NAME``, else the one in ``OTEL_RESOURCE_ATTRIBUTES``, else the name of the app's
    script or module. ``service.instance.id`` is random for each process, unless given: without it the cumulative
    counters of two processes of one service would be one series that jumps to and fro.
    """
    attributes: dict[str, str] = {}
    for pair in env.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = pair.partition("=")
        if equals and key.strip():
            attributes[key.strip()] = unquote(value.strip())
    if name := env.get("OTEL_SERVICE_NAME", "").strip():
        attributes[SERVICE_NAME] = name
    attributes.setdefault(SERVICE_NAME, _script_name())
    attributes.setdefault(SERVICE_INSTANCE_ID, str(uuid4()))
    return Resource.create({PROCESS_PID: os.getpid(), **attributes})


def _script_name() -> str:
    """``app`` for ``python app.py``, ``python -m app`` and ``/usr/bin/app``; ``python`` when there is no script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name.removesuffix(".__main__"))
    path = Path(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-") else None
    if path is None:
        return "python"
    if path.stem == "__main__":
        return path.parent.name or "python"
    return path.stem or "python"


def sampler(env: Mapping[str, str]) -> sampling.Sampler:
    """The sampler by ``OTEL_TRACES_SAMPLER`` and its argument; by default or if unknown, parent-based and always on."""
    name = env.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if name not in _SAMPLERS:
        name = "parentbased_always_on"
    kind = name.removeprefix("parentbased_")
    if kind == "always_on":
        root: sampling.Sampler = sampling.ALWAYS_ON
    elif kind == "always_off":
        root = sampling.ALWAYS_OFF
    else:
        root = sampling.TraceIdRatioBased(_share(env.get("OTEL_TRACES_SAMPLER_ARG", "")))
    return root if kind == name else sampling.ParentBased(root)


def _share(value: str) -> float:
    """A share from 0 to 1; 1 when it is none, as the SDK has it."""
    try:
        share = float(value)
    except ValueError:
        return 1.0
    return share if 0 <= share <= 1 else 1.0
