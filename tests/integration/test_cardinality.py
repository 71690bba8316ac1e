"""How many series one service costs a Prometheus: counted on the demo, with all its apps and planted faults."""

import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from otlp_page import Page, mapping

from claudescope import semconv

LIMIT = 2000
# the demo loses nothing, and has no bounds of its own
NEVER = {semconv.DROPPED.name, semconv.STEP_OVER.name, semconv.STEP_BELOW.name}
WANTED = {metric.name for metric in semconv.METRICS.values()} - NEVER


def series(page):
    """Series by metric, as Prometheus stores what has come: one for each bucket, the sum and the count."""
    sizes = {}
    for signal, _, _, message in tuple(page.requests):
        if signal != "metrics":
            continue
        for metric in (m for r in message.resource_metrics for scope in r.scope_metrics for m in scope.metrics):
            kind = metric.WhichOneof("data")
            for point in getattr(metric, kind).data_points:
                size = len(point.explicit_bounds) + 3 if kind == "histogram" else 1
                sizes[metric.name, tuple(sorted(mapping(point.attributes).items()))] = size
    found = Counter()
    for (name, _), size in sizes.items():
        found[name] += size
    return found


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_demo_has_fewer_series_than_the_limit():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAUDESCOPE_"))}
    with Page() as page:
        demo = subprocess.Popen(
            [sys.executable, "-m", "claudescope", "demo", "--no-server"],
            env={**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": page.url},
            stdout=subprocess.DEVNULL,
        )
        try:
            began = time.monotonic()
            # every metric is there, and half a minute for the label sets: after two minutes there is hardly one more
            while not (set(series(page)) >= WANTED and time.monotonic() > began + 25):
                assert demo.poll() is None
                assert time.monotonic() < began + 150, WANTED - set(series(page))
                time.sleep(0.5)
        finally:
            demo.terminate()
            demo.wait(30)
        found = series(page)
    print(f"{found.total()} series: {dict(found.most_common())}")
    assert found.total() < LIMIT
