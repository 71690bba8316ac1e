"""A call's span of somebody else's: held until its steps are assessed, then exported with what is known by then."""

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from claudescope.emit import holding
from claudescope.emit.holding import HoldingProcessor, Late

LATE = Late(added={"claudescope.keep": True}, lacking={"gen_ai.usage.output_tokens": 5, "mine": "late"})


class Kept(SpanProcessor):
    def __init__(self):
        self.spans = []
        self.over = False

    def on_end(self, span):
        self.spans.append((span.name, dict(span.attributes)))

    def shutdown(self):
        self.over = True


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def processor(kept):
    return HoldingProcessor(kept)


@pytest.fixture
def start(processor):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return lambda name: provider.get_tracer("t").start_span(name, attributes={"mine": name})


def test_a_span_that_nobody_expects_goes_at_once_as_it_is(start, kept):
    start("app").end()
    assert kept.spans == [("app", {"mine": "app"})]


def test_an_expected_span_waits_and_gets_what_is_added_and_what_it_lacks(start, kept, processor):
    span = start("call")
    processor.expect(span.get_span_context())
    span.end()
    assert kept.spans == []
    processor.release(span.get_span_context(), LATE)
    assert kept.spans == [("call", {"mine": "call", "claudescope.keep": True, "gen_ai.usage.output_tokens": 5})]
    processor.release(span.get_span_context(), LATE)  # a second release is none
    assert len(kept.spans) == 1


def test_a_span_may_end_after_its_release(start, kept, processor):
    span = start("call")
    processor.expect(span.get_span_context())
    processor.release(span.get_span_context(), LATE)
    assert kept.spans == []
    span.end()
    assert kept.spans[0][1]["claudescope.keep"] is True
    assert kept.spans[0][1]["mine"] == "call"


def test_only_so_many_are_held_and_the_oldest_goes_as_it_is(start, kept, processor, monkeypatch):
    monkeypatch.setattr(holding, "_CAPACITY", 2)
    spans = [start(f"call {number}") for number in range(3)]
    for span in spans:
        processor.expect(span.get_span_context())
        span.end()
    assert kept.spans == [("call 0", {"mine": "call 0"})]


def test_only_so_many_releases_are_remembered(start, kept, processor, monkeypatch):
    monkeypatch.setattr(holding, "_RELEASED", 1)
    spans = [start(f"call {number}") for number in range(2)]
    for span in spans:
        processor.expect(span.get_span_context())
        processor.release(span.get_span_context(), LATE)
    for span in spans:
        span.end()
    assert ["claudescope.keep" in attributes for _, attributes in kept.spans] == [False, True]


def test_at_the_end_all_that_is_held_goes_and_later_nothing_more(start, kept, processor):
    held, open_span = start("held"), start("open")
    processor.expect(held.get_span_context())
    processor.expect(open_span.get_span_context())
    held.end()
    processor.shutdown()
    assert [name for name, _ in kept.spans] == ["held"]
    assert kept.over
    assert processor.force_flush()
    processor.end()
    start("late").end()
    assert len(kept.spans) == 1


def test_a_forked_child_has_nothing_of_its_parents(start, kept, processor):
    span = start("call")
    processor.expect(span.get_span_context())
    processor.after_fork()
    span.end()
    assert kept.spans == [("call", {"mine": "call"})]
