"""A sender of steps at a steady rate, as an app's exporter sends them to an endpoint on its machine.

    python bench/step_stream.py URL [--rate N] [--seconds S] [--probes FILE]
        [--of cells|nodes] [--run ID]

Steps are made beforehand but for ids and times. Step ``k`` ends ``k / rate`` seconds after the start; a request goes
out 20 ms after the first step that it holds ended, with all that ended until then (OTLP/HTTP, protobuf, one
connection). 20 runs of 8 steps and a call go on at once, of step numbers 0 to 7. With ``--probes`` come besides steps
of numbers 8 to 16 with growing latency (``cells``), or of one run with a name of each (``nodes``); at the end the file
says of each when it ended. What was sent and the CPU time of this process go to standard output as JSON.
"""

import argparse
import http.client
import json
import os
import random
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

DELAY = 0.02
"""Seconds from a batch's first item to its export: the exporter's default to a loopback endpoint."""
LANES = 20
STEPS = 8
LEVELS_MS = (50, 200, 550, 1500, 5000, 20000, 60000)
"""Latencies, one for each colour of the page's latency scale."""
PROBED = range(STEPS, 17)
BUCKET = 10.0
"""Seconds of a column of the heat strip."""
MARGIN = 0.7
"""Seconds at both ends of a column without probes: whether a step is of this column or the next must not matter."""


def _key(number: int, wire: int, payload: bytes) -> bytes:
    return bytes([number << 3 | wire]) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


class Template:
    """A serialized span whose ids and times are put in by position."""

    def __init__(self, attributes: dict[str, object], name: str) -> None:
        span = Span(trace_id=b"T" * 16, span_id=b"S" * 8, parent_span_id=b"P" * 8, name=name, kind=1)
        span.start_time_unix_nano = int.from_bytes(b"A" * 8, "little")
        span.end_time_unix_nano = int.from_bytes(b"E" * 8, "little")
        for key, value in attributes.items():
            attribute = span.attributes.add()
            attribute.key = key
            if isinstance(value, list):
                for one in value:
                    attribute.value.array_value.values.add().string_value = one
                continue
            kind = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}[type(value)]
            setattr(attribute.value, kind, value)
        self._body = bytearray(span.SerializeToString())
        marks = (b"T" * 16, b"S" * 8, b"P" * 8, b"A" * 8, b"E" * 8, b"C" * 32)
        self._at = [self._body.find(mark) for mark in marks]

    def make(self, trace: bytes, span: bytes, parent: bytes, start_ns: int, end_ns: int, chain: str) -> bytes:
        body, at = self._body, self._at
        body[at[0] : at[0] + 16] = trace
        body[at[1] : at[1] + 8] = span
        body[at[2] : at[2] + 8] = parent
        body[at[3] : at[3] + 8] = start_ns.to_bytes(8, "little")
        body[at[4] : at[4] + 8] = end_ns.to_bytes(8, "little")
        body[at[5] : at[5] + 32] = chain.encode()
        return bytes(body)


def step_template(
    index: int, valid: bool | None, confidence: float, name: str = "", kind: str = "thinking"
) -> Template:
    attributes: dict[str, object] = {
        "claudescope.step.index": index,
        "claudescope.step.kind": kind,
        "claudescope.step.latency.source": "measured",
        "claudescope.step.confidence": confidence,
        "claudescope.step.confidence.method": "verbalised",
        "claudescope.step.confidence.calibrated": False,
        "claudescope.chain.id": "C" * 32,
        "claudescope.chain.confidence": confidence,
        "claudescope.request.sha256": "sha256:" + "ab" * 32,
        "claudescope.label.tier": "gold" if index % 2 else "free",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.provider.name": "anthropic",
    }
    if valid is not None:
        attributes |= {"claudescope.step.valid": valid, "claudescope.step.validity.checks": ["tool_input"]}
    if valid is False:
        attributes["claudescope.step.validity.reason"] = "tool_input.schema_mismatch@3-9"
    if name:
        attributes["claudescope.step.name"] = name
    return Template(attributes, f"reasoning_step {kind}")


CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-sonnet-4-5",
    "gen_ai.usage.input_tokens": 1200,
    "gen_ai.usage.output_tokens": 340,
    "gen_ai.response.finish_reasons": ["end_turn"],
    "claudescope.chain.id": "C" * 32,
}


@dataclass
class Lane:
    """One run that goes on: its ids, and how many steps it has."""

    trace: bytes = b""
    call: bytes = b""
    chain: str = ""
    began_ns: int = 0
    steps: int = STEPS


class Steps:
    """The spans that end, in the order in which they end."""

    def __init__(self, seed: int = 1) -> None:
        draw = random.Random(seed)
        self._made = [
            [
                step_template(
                    index,
                    draw.choices((True, False, None), (8, 1, 3))[0],
                    round(draw.uniform(0.5, 0.99), 2),
                    kind=draw.choice(("thinking", "text", "tool_use")),
                )
                for _ in range(8)
            ]
            for index in range(STEPS)
        ]
        self._call = Template(CALL, "chat claude-sonnet-4-5")
        self._lanes = [Lane() for _ in range(LANES)]
        self._latencies = [int(draw.lognormvariate(-0.7, 0.8) * 1e9) for _ in range(1024)]
        self._count = 0

    def step(self, end_ns: int) -> list[bytes]:
        """The next step and, after a run's last, its call."""
        number = self._count
        self._count += 1
        lane = self._lanes[number % LANES]
        if lane.steps == STEPS:
            lane.trace, lane.call, lane.chain = os.urandom(16), os.urandom(8), os.urandom(16).hex()
            lane.steps, lane.began_ns = 0, end_ns
        index, lane.steps = lane.steps, lane.steps + 1
        start_ns = end_ns - self._latencies[number % 1024]
        template = self._made[index][number // LANES % 8]
        spans = [template.make(lane.trace, os.urandom(8), lane.call, start_ns, end_ns, lane.chain)]
        if lane.steps == STEPS:
            spans.append(self._call.make(lane.trace, lane.call, bytes(8), lane.began_ns, end_ns, lane.chain))
        return spans


@dataclass
class Probes:
    """Steps that a page can be watched for. ``cells``: the column's first of a number, then slower ones, each of
    another colour. ``nodes``: steps of one run, named ``probe-N-``."""

    of: str
    run: str
    sent: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._cells = {index: step_template(index, True, 0.9) for index in PROBED}
        self._trace, self._call = os.urandom(16), os.urandom(8)

    def due(self, start: float, seconds: float) -> list[tuple[float, int, int]]:
        """(time, step number, level) of all probes between ``start`` and the end, in seconds."""
        if self.of == "nodes":
            return [(start + 0.11 + 0.5 * number, number, 0) for number in range(int((seconds - 1) * 2))]
        pairs = [(index, level) for level in range(len(LEVELS_MS)) for index in PROBED]
        gap = (BUCKET - 2 * MARGIN) / len(pairs)
        # a column that began before is left out: its first steps would be missing
        first = int(-(-start // BUCKET))
        columns = [number * BUCKET for number in range(first, int((start + seconds) // BUCKET) + 1)]
        found = [(column + MARGIN + at * gap, *pair) for column in columns for at, pair in enumerate(pairs)]
        return [probe for probe in found if probe[0] < start + seconds - 0.5]

    def make(self, at: float, index: int, level: int) -> bytes:
        end_ns = int(at * 1e9)
        span, start_ns = os.urandom(8), end_ns - LEVELS_MS[level] * 1_000_000
        entry: dict[str, object] = {"index": index, "level": level, "end_ms": at * 1000}
        self.sent.append(entry)
        if self.of == "nodes":
            entry["name"] = f"probe-{index}-"
            template = step_template(index, True, 0.9, f"probe-{index}-")
            return template.make(self._trace, span, self._call, start_ns, end_ns, self.run)
        return self._cells[index].make(os.urandom(16), span, bytes(8), start_ns, end_ns, os.urandom(16).hex())


class Exporter:
    """Sends spans as one request and waits for the answer."""

    def __init__(self, url: str, service: str = "bench") -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        resource_ = Resource()
        attribute = resource_.attributes.add()
        attribute.key, attribute.value.string_value = "service.name", service
        self._resource = _key(1, 2, resource_.SerializeToString())
        self._scope = _key(1, 2, InstrumentationScope(name="claudescope").SerializeToString())
        self.requests = 0
        self.waited: list[float] = []
        self.refused = 0

    def send(self, spans: list[bytes]) -> None:
        inner = self._scope + b"".join([_key(2, 2, span) for span in spans])
        body = _key(1, 2, self._resource + _key(2, 2, inner))
        while True:
            began = time.perf_counter()
            self._connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            answer = self._connection.getresponse()
            answer.read()
            self.waited.append(time.perf_counter() - began)
            self.requests += 1
            if answer.status == 200:
                return
            self.refused += 1
            time.sleep(0.1)


def stream(url: str, rate: float, seconds: float, probes: Probes | None) -> dict[str, object]:
    """Sends; returns what was sent, and what it cost."""
    exporter, steps = Exporter(url), Steps()
    start = time.time() + 0.05
    end = start + seconds
    waiting = iter(probes.due(start, seconds) if probes else ())
    probe = next(waiting, None)
    sent = 0
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    while True:
        first = start + sent / rate
        if probe is not None:
            first = min(first, probe[0])
        if first >= end:
            break
        time.sleep(max(0.0, first + DELAY - time.time()))
        now = min(time.time(), end)
        spans: list[bytes] = []
        while (at := start + sent / rate) <= now and at < end:
            spans += steps.step(int(at * 1e9))
            sent += 1
        while probe is not None and probe[0] <= now:
            spans.append(probes.make(*probe))
            probe = next(waiting, None)
        if spans:
            exporter.send(spans)
    after = resource.getrusage(resource.RUSAGE_SELF)
    waited = sorted(exporter.waited)
    return {
        "steps": sent,
        "probes": len(probes.sent) if probes else 0,
        "requests": exporter.requests,
        "refused": exporter.refused,
        "answered_p50_ms": round(waited[len(waited) // 2] * 1000, 2),
        "answered_p99_ms": round(waited[int(len(waited) * 0.99)] * 1000, 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime, 3),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--probes", type=Path, help="send probes too, and write here when each ended")
    parser.add_argument("--of", choices=("cells", "nodes"), default="cells", help="which probes")
    parser.add_argument("--run", default="b" * 32, help="id of the run that the nodes are of")
    arguments = parser.parse_args()
    probes = Probes(arguments.of, arguments.run) if arguments.probes else None
    report = stream(arguments.url, arguments.rate, arguments.seconds, probes)
    if probes is not None:
        arguments.probes.write_text(json.dumps(probes.sent))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
