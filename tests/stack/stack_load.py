"""A steady load of spans as an app under ``claudescope run`` sends it, and a list of the traces that must be kept.

``python stack_load.py OUT RATE SECONDS``: RATE spans a second, five a trace, through claudescope's own exporter to
``OTEL_EXPORTER_OTLP_ENDPOINT``. One trace in twenty must be kept: every second of them is marked ``claudescope.keep``,
the others fail unmarked, as those of an app without claudescope. OUT gets one JSON line for each: its id, the time
(Unix, seconds) at which it ended, and whether it was marked. The last line is the summary.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode

from claudescope.emit.exporter import make_span_exporter
from claudescope.semconv import KEEP, STEP_VALID
from claudescope.settings import Settings

SPANS = 5
KEPT_OF = 20


def main(out: str, rate: float, seconds: float) -> None:
    exporter = make_span_exporter(Settings.load(), os.environ)
    provider = TracerProvider(resource=Resource({"service.name": "load"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=100_000, schedule_delay_millis=50))
    tracer = provider.get_tracer("load")
    began, number, draw = time.time(), 0, random.Random(7)
    with Path(out).open("w") as file:
        while time.time() < began + seconds:
            kept = number % KEPT_OF == 0
            marked = number % (2 * KEPT_OF) == 0
            marks = {KEEP: True} if marked else {}
            root = tracer.start_span("run", attributes={**marks, "text": f"{draw.random()}" * 10})
            context = trace.set_span_in_context(root)
            for step in range(SPANS - 1):
                tracer.start_span(f"step {step}", context, attributes={**marks, STEP_VALID: True}).end()
            if kept and not marked:
                root.set_status(StatusCode.ERROR)
            root.end()
            if kept:
                print(
                    json.dumps([f"{root.get_span_context().trace_id:032x}", time.time(), marked]), file=file, flush=True
                )
            number += 1
            time.sleep(max(0.0, began + number * SPANS / rate - time.time()))
        delivered = provider.force_flush(120_000) and exporter.force_flush(120_000)
        summary = {"spans": number * SPANS, "seconds": time.time() - began, "delivered": delivered}
        summary["lost"] = exporter.losses
        print(json.dumps(summary), file=file, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
