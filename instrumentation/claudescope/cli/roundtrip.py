"""A test span to where the app's spans go, and back from there where a claudescope server is."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from ..finding import Finding
from ..settings import Settings

__all__ = ["round_trip"]

_TIMEOUT = 5.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def round_trip(settings: Settings) -> Iterator[Finding]:
    """Sends one span with claudescope's own exporter and reads it from the server's API."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from ..emit.endpoint import resolve
    from ..emit.exporter import OtlpSpanExporter
    from ..emit.otel_env import resource
    from ..live.probe import probe
    from ..semconv import SCOPE

    endpoint = resolve("traces", os.environ)
    health = probe(endpoint.address if "//" in endpoint.address else f"http://{endpoint.address}", 2.0)
    if health is None:
        return  # said already
    exporter = OtlpSpanExporter(endpoint, settings)
    provider = TracerProvider(resource=resource(os.environ), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer(SCOPE).start_as_current_span("claudescope doctor") as span:
        trace_id = f"{span.get_span_context().trace_id:032x}"
    started = time.monotonic()
    delivered = exporter.force_flush(int(_TIMEOUT * 1000))
    took = f"{(time.monotonic() - started) * 1000:.0f} ms"
    exporter.shutdown(0)
    provider.shutdown()
    if not delivered:
        yield Finding(
            "test span",
            "fix",
            f"A test span could not be delivered to {endpoint.address} by {endpoint.protocol}.",
            "See the warning above; check OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL and _HEADERS.",
        )
    elif health.get("service") != "claudescope" or endpoint.protocol == "grpc":
        yield Finding("test span", "ok", f"A test span was taken in {took}.")
    else:
        yield _read_back(endpoint.address, trace_id, settings.token, took)


def _read_back(address: str, trace_id: str, token: str, took: str) -> Finding:
    parts = urlsplit(address)
    request = urllib.request.Request(f"{parts.scheme}://{parts.netloc}/api/traces/{trace_id}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    until = time.monotonic() + _TIMEOUT
    while True:
        try:
            with _OPENER.open(request, timeout=_TIMEOUT) as answer:
                json.load(answer)
            return Finding("test span", "ok", f"A test span was taken in {took} and read back.")
        except (OSError, ValueError) as error:
            gone = not isinstance(error, urllib.error.HTTPError) or error.code != 404
            if gone or time.monotonic() > until:
                return Finding(
                    "test span",
                    "fix",
                    f"A test span was taken in {took}, but cannot be read back: {error}.",
                    "Set CLAUDESCOPE_TOKEN to the server's token." if "401" in str(error) else "Look at its log.",
                )
        time.sleep(0.05)
