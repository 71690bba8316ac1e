"""The collector: takes OTLP over HTTP and gRPC from who has the token, and from nobody else."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ...finding import Finding
from ...semconv import KEEP, SERVICE_NAME
from ..ask import CLOSED, ask
from ..parts import Stack

__all__ = ["SERVICE", "TestSpan", "over_grpc", "over_http"]

SERVICE: Final = "claudescope-stack-check"
"""The service whose one span a check is."""
_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_JSON: Final = {"Content-Type": "application/json"}
_NOBODY: Final = "nothing listens there"


class TestSpan:
    """A span that is not there yet; ``taken`` says whether the collector has it."""

    __test__ = False  # it is no test of pytest's

    def __init__(self) -> None:
        self.trace_id = secrets.token_hex(16)
        self.taken = False

    def payload(self) -> bytes:
        """The span in OTLP/JSON, marked so that no sampling drops it."""
        now = time.time_ns()
        span = {
            "traceId": self.trace_id,
            "spanId": secrets.token_hex(8),
            "name": "claudescope stack check",
            "kind": 1,
            "startTimeUnixNano": str(now - 1_000_000),
            "endTimeUnixNano": str(now),
            "attributes": [{"key": KEEP, "value": {"boolValue": True}}],
        }
        resource = {"attributes": [{"key": SERVICE_NAME, "value": {"stringValue": SERVICE}}]}
        return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}).encode()


def over_http(stack: Stack, span: TestSpan) -> Iterator[Finding]:
    """Sends the test span with the token, and a request without."""
    url = f"{stack.otlp_http}/v1/traces"
    context = stack.certificates.context() if stack.tls else None
    bearer = {**_JSON, "Authorization": f"Bearer {stack.token}"}
    began = time.monotonic()
    answer = ask(url, span.payload(), bearer if stack.token else _JSON, context=context)
    took = (time.monotonic() - began) * 1000
    if answer.ok:
        span.taken = True
        yield Finding("collector", "ok", f"A test span was taken at {stack.otlp_http} in {took:.0f} ms.")
        if ask(url, b'{"resourceSpans":[]}', _JSON, context=context).ok:
            yield Finding(
                "collector",
                "fix",
                f"{stack.otlp_http} takes spans without the token.",
                "Give the otlp receivers in collector/otelcol.yaml their `auth` back.",
            )
    elif answer.status == 401:
        yield _refused(stack, stack.otlp_http)
    elif answer.status == 503:
        yield Finding(
            "collector",
            "fix",
            f"{stack.otlp_http} takes nothing now: its memory limit is reached, or its queues are full.",
            "See whether Jaeger and Prometheus answer; then raise CS_MEMORY_LIMIT_MIB or CS_QUEUE_SPANS.",
        )
    elif answer.status == 400 and b"HTTPS server" in answer.body:
        yield _absent(stack, f"OTLP/HTTP at {stack.otlp_http}", CLOSED)
    elif answer.status is not None:
        yield Finding(
            "collector",
            "fix",
            f"{stack.otlp_http} answers {answer.status} to a span: it is not an OTLP receiver.",
            "See what has that port, or set CS_OTLP_HTTP_PORT to another one.",
        )
    else:
        yield _absent(stack, f"OTLP/HTTP at {stack.otlp_http}", answer.problem)


def over_grpc(stack: Stack) -> Iterator[Finding]:
    """Sends an empty request over gRPC with the token. Imports ``grpc``."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to standard error what we say below
    import grpc  # type: ignore[import-untyped]

    metadata = (("authorization", f"Bearer {stack.token}"),) if stack.token else ()
    try:
        with _channel(grpc, stack) as channel:
            channel.unary_unary(_METHOD)(b"", timeout=5, metadata=metadata)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            yield _refused(stack, stack.otlp_grpc)
        else:
            yield _absent(stack, f"OTLP/gRPC at {stack.otlp_grpc}", _reason(str(error.details())))
    else:
        yield Finding("collector", "ok", f"OTLP/gRPC answers at {stack.otlp_grpc}.")


def _channel(grpc: Any, stack: Stack) -> Any:
    if not stack.tls:
        return grpc.insecure_channel(stack.otlp_grpc)
    ca, certificate, key = (Path(file).read_bytes() if file else None for file in stack.certificates)
    return grpc.secure_channel(stack.otlp_grpc, grpc.ssl_channel_credentials(ca, key, certificate))


def _reason(details: str) -> str:
    """Of gRPC's own words, which name libraries and peers, what matters."""
    if "refused" in details:
        return _NOBODY
    if "handshake" in details or "TSI_" in details:
        return "the TLS handshake fails"
    return CLOSED if "Socket closed" in details else " ".join(details.split())[:200].rstrip(".")


def _absent(stack: Stack, what: str, problem: str) -> Finding:
    fix = "Type `docker compose up -d`, then `docker compose logs collector`."
    if problem == CLOSED:
        fix = "If it is the collector's, set CS_RECEIVER=otlp/tls here, too."
    elif stack.tls and problem != _NOBODY:
        fix = "Name the certificates: --ca FILE for an authority of your own, --cert FILE where apps must show one."
    return Finding("collector", "fix", f"No {what}: {problem}.", fix)


def _refused(stack: Stack, address: str) -> Finding:
    where = stack.folder / ".env"
    if not stack.token:
        return Finding(
            "collector",
            "fix",
            f"{address} wants a token, and there is no CS_OTLP_TOKEN in {where} or the environment.",
            "Name the stack's folder: claudescope stack check DIR.",
        )
    return Finding(
        "collector",
        "fix",
        f"{address} does not take the CS_OTLP_TOKEN of {where}.",
        "If it was changed, type `docker compose up -d` again; else another collector may have that port.",
    )
