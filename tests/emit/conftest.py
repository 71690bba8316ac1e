import socket

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp_sink import Sink

from claudescope.settings import Settings


@pytest.fixture
def sink():
    made = Sink()
    yield made
    made.close()


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def make_spans():
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "t"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")

    def make(number, first=0, **attributes):
        memory.clear()
        for index in range(first, first + number):
            tracer.start_span(f"span {index}", attributes=attributes).end()
        return memory.get_finished_spans()

    return make


@pytest.fixture
def settings():
    def make(**values):
        return Settings({"content": "off", **values})

    return make


@pytest.fixture
def drops():
    return []


@pytest.fixture
def on_drop(drops):
    return lambda reason, kind, number: drops.append((reason, kind, number))
