"""A real meter provider and reader under ``Meters``, and calls and steps to record."""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags

from claudescope import semconv
from claudescope.emit.metrics import Meters
from claudescope.steps.model import Call, Chain, Step

MODEL = "claude-x"
S = 1_000_000_000


class Bench:
    """``births`` are the counts of the bounds' metrics at each call back, by metric."""

    def __init__(self, **options):
        self.reader = InMemoryMetricReader()
        provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.births = []
        self.meters = Meters(provider.get_meter("claudescope"), on_new_series=self._born, **options)
        span = NonRecordingSpan(SpanContext(0x1234, 0x56, False, TraceFlags(1)))
        self.context = trace.set_span_in_context(span, Context())

    def _born(self):
        keys = (semconv.STEP_KIND, semconv.STEP_BOUND, semconv.STEP_BEYOND)
        found = {}
        for name, point in self._collected():
            if semconv.STEP_BOUND in point.attributes:
                found.setdefault(name, {})[tuple(point.attributes[key] for key in keys)] = point.value
        self.births.append(found)

    def _collected(self):
        data = self.reader.get_metrics_data()
        for resource in () if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        yield metric.name, point

    def points(self, name):
        return [point for found, point in self._collected() if found == name]

    def step(self, step, call):
        self.meters.record_step(step, call, self.context, True)

    def call(self, call):
        self.meters.record_call(call, self.context, True)


def make_call(**fields):
    return Call(chain=Chain(), started=10 * S, span=INVALID_SPAN, owned=True, model=MODEL, ended=11 * S, **fields)


def make_step(nanoseconds=300_000_000, kind="text", index=0, latency_source="measured", **fields):
    return Step(kind, S, S + nanoseconds, latency_source, index=index, **fields)
