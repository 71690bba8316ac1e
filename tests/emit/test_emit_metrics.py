"""Exact points of every instrument, with a real meter provider and reader."""

import re

import anthropic
import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, TraceFlags

from claudescope import semconv
from claudescope.emit.metrics import Meters
from claudescope.steps.model import Call, CallError, Chain, Reason, Step

S = 1_000_000_000
SAMPLED = SpanContext(0x1234, 0x56, False, TraceFlags(1))


class Bench:
    def __init__(self, **options):
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.births = []
        self.meters = Meters(
            self.provider.get_meter("claudescope"), on_new_series=lambda: self.births.append(self.counts()), **options
        )
        self.context = trace.set_span_in_context(NonRecordingSpan(SAMPLED), Context())

    def points(self, name):
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counts(self, name="claudescope.steps"):
        return {tuple(sorted(point.attributes.items())): point.value for point in self.points(name)}

    def step(self, step, call, exemplar=True):
        self.meters.record_step(step, call, self.context, exemplar)


@pytest.fixture
def bench():
    return Bench()


def make_call(**fields):
    return Call(chain=Chain(), started=10 * S, span=INVALID_SPAN, owned=True, model="claude-x", **fields)


def make_step(valid=None, checks=(), index=0, kind="text", **fields):
    step = Step(kind=kind, started=S, ended=S + 300_000_000, latency_source="measured", index=index, **fields)
    step.valid = valid
    step.reasons = [Reason(check, "code") for check in checks]
    return step


def labels(valid, check=None, kind="text", index="0", **more):
    found = {
        "gen_ai.request.model": "claude-x",
        "claudescope.step.kind": kind,
        "claudescope.step.index": index,
        "claudescope.step.valid": valid,
        **more,
    }
    if check:
        found["claudescope.check"] = check
    return tuple(sorted(found.items()))


def test_the_first_record_of_a_label_set_has_zeros_for_all_verdicts_before_it_counts(bench):
    bench.step(make_step(valid=True), make_call())
    zeros = {labels("true"): 0, labels("false"): 0, labels("unknown"): 0}
    assert bench.births == [zeros]  # what an owner that collects at the call back sees
    assert bench.counts() == {**zeros, labels("true"): 1}
    bench.step(make_step(valid=True), make_call())
    assert len(bench.births) == 1
    assert bench.counts()[labels("true")] == 2


def test_an_invalid_step_counts_once_under_its_first_check_whose_zero_comes_first(bench):
    bench.step(make_step(valid=False, checks=["tool_input", "stop_reason"]), make_call())
    false = labels("false", "stop_reason")
    assert bench.births[0] == {labels(word): 0 for word in ("true", "false", "unknown")}
    assert bench.births[1][false] == 0
    assert bench.counts() == {labels("true"): 0, labels("false"): 0, labels("unknown"): 0, false: 1}


def test_an_invalid_step_without_a_reason_counts_without_a_check(bench):
    bench.step(make_step(valid=False), make_call())
    assert bench.counts()[labels("false")] == 1


def test_every_series_that_counts_has_been_zero_first():
    bench = Bench()
    checks = ["a", "b", "c"]
    for number in range(60):
        valid = (True, False, None)[number % 3]
        bench.step(make_step(valid=valid, checks=[checks[number % 9 // 3]] if valid is False else ()), make_call())
    seen = {}
    for birth in bench.births:
        for key, value in birth.items():
            seen.setdefault(key, value)
    assert all(seen[key] == 0 for key, value in bench.counts().items() if value)


def test_seven_invalid_of_57_steps_are_exactly_that(bench):
    invalid = {3, 9, 15, 22, 30, 41, 56}
    call = make_call()
    for index in range(57):
        bench.step(make_step(valid=index not in invalid, checks=["c"] if index in invalid else (), index=index), call)
    by_verdict = {"true": 0, "false": 0, "unknown": 0}
    for key, value in bench.counts().items():
        by_verdict[dict(key)["claudescope.step.valid"]] += value
    assert by_verdict == {"true": 50, "false": 7, "unknown": 0}
    assert sum(point.count for point in bench.points("claudescope.step.duration")) == 57
    # index labels 0..15 and 16+: 17 series of durations
    assert len(bench.points("claudescope.step.duration")) == 17


def test_duration_and_confidence_points_and_boundaries(bench):
    step = make_step()
    step.confidence = 0.66
    bench.step(step, make_call())
    (duration,) = bench.points("claudescope.step.duration")
    assert dict(duration.attributes) == {
        "gen_ai.request.model": "claude-x",
        "claudescope.step.kind": "text",
        "claudescope.step.index": "0",
        "claudescope.step.latency.source": "measured",
    }
    assert duration.explicit_bounds == (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1, 2.5, 5, 10, 30, 60, 120)
    assert duration.sum == pytest.approx(0.3)
    assert duration.bucket_counts[5] == 1  # 0.2 < 0.3 <= 0.35
    (confidence,) = bench.points("claudescope.step.confidence")
    assert confidence.explicit_bounds == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 0.95, 1)
    assert confidence.bucket_counts[7] == 1  # 0.65 < 0.66 <= 0.7
    bench.step(make_step(), make_call())
    assert bench.points("claudescope.step.confidence")[0].count == 1  # an unknown confidence is not recorded


def exemplars(bench):
    """Of all histograms, from one collection: the next one has none of them any more."""
    return [
        (exemplar.trace_id, exemplar.span_id)
        for scope in bench.reader.get_metrics_data().resource_metrics[0].scope_metrics
        for metric in scope.metrics
        if "step." in metric.name
        for point in metric.data.data_points
        for exemplar in point.exemplars
    ]


def test_exemplars_of_kept_traces_only(bench):
    step = make_step()
    step.confidence = 0.5
    ambient = trace.set_span_in_context(NonRecordingSpan(SpanContext(0x99, 0x99, False, TraceFlags(1))))
    from opentelemetry import context

    token = context.attach(ambient)  # a span of the app is current: it must not become an exemplar
    try:
        bench.step(step, make_call(), exemplar=False)
    finally:
        context.detach(token)
    assert exemplars(bench) == []
    bench.step(step, make_call(), exemplar=True)
    assert exemplars(bench) == [(0x1234, 0x56)] * 2


def test_an_unsampled_span_gives_no_exemplar_but_is_counted(bench):
    bench.context = trace.set_span_in_context(NonRecordingSpan(SpanContext(0x1, 0x2, False, TraceFlags(0))))
    bench.step(make_step(valid=True), make_call())
    assert exemplars(bench) == []
    assert bench.counts()[labels("true")] == 1


def test_tool_names_are_capped_at_fifty():
    bench = Bench()
    for number in range(60):
        bench.step(make_step(kind="tool_use", tool_name=f"tool{number}"), make_call())
    bench.step(make_step(kind="tool_use", tool_name="tool3"), make_call())
    names = {}
    for key, value in bench.counts().items():
        name = dict(key)["gen_ai.tool.name"]
        names[name] = names.get(name, 0) + value
    assert len(names) == 51
    assert (names["tool3"], names["tool49"], names["other"]) == (2, 1, 10)
    assert "tool50" not in names


def test_label_values_are_short_and_encodable(bench):
    call = make_call(ended=11 * S)
    call.model = "m" * 300
    bench.step(make_step(kind="tool_use", tool_name="a\ud83d"), call)
    bench.meters.record_call(call, bench.context, True)
    for key in bench.counts():
        assert (dict(key)["gen_ai.tool.name"], dict(key)["gen_ai.request.model"]) == ("a?", "m" * 200)
    assert bench.points("gen_ai.client.operation.duration")[0].attributes["gen_ai.request.model"] == "m" * 200


def test_business_labels_are_named_ones_of_step_call_and_chain_capped_at_fifty():
    bench = Bench(labels=("tenant", "plan", "a", "b", "c", "sixth"))
    call = make_call(labels={"tenant": "acme", "plan": "call"})
    call.chain.labels.update(plan="chain", a="from chain", sixth="x", other="y")
    step = make_step(valid=True, labels={"tenant": "step"})
    bench.step(step, call)
    expected = {
        "claudescope.label.tenant": "step",
        "claudescope.label.plan": "call",
        "claudescope.label.a": "from chain",
    }
    assert bench.counts()[labels("true", **expected)] == 1
    for number in range(60):
        bench.step(make_step(labels={"tenant": f"t{number}"}), make_call())
    tenants = {dict(key).get("claudescope.label.tenant") for key in bench.counts()}
    assert len(tenants) == 51
    assert "other" in tenants
    # durations carry no business labels
    assert all(not any("label" in key for key in p.attributes) for p in bench.points("claudescope.step.duration"))


def test_a_call(bench):
    call = make_call(
        ended=12 * S,
        response_model="claude-x-1",
        base_url=anthropic.Anthropic(api_key="x", base_url="https://api.example").base_url,
        streamed=True,
        first_chunk=10 * S + 500_000_000,
        chunks=31,
        usage={
            "input_tokens": 10,
            "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 30,
            "output_tokens": 77,
            "output_tokens_details": {"thinking_tokens": 5},
        },
    )
    bench.meters.record_call(call, bench.context, True)
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.response.model": "claude-x-1",
        "server.address": "api.example",
    }
    (duration,) = bench.points("gen_ai.client.operation.duration")
    assert (dict(duration.attributes), duration.sum) == (common, 2.0)
    assert duration.explicit_bounds == semconv.OPERATION_DURATION.boundaries
    tokens = {point.attributes["gen_ai.token.type"]: point for point in bench.points("gen_ai.client.token.usage")}
    assert {kind: point.sum for kind, point in tokens.items()} == {"input": 240, "output": 77}
    assert dict(tokens["input"].attributes) == {**common, "gen_ai.token.type": "input"}
    (first,) = bench.points("gen_ai.client.operation.time_to_first_chunk")
    assert (dict(first.attributes), first.sum) == (common, 0.5)
    (gap,) = bench.points("gen_ai.client.operation.time_per_output_chunk")
    assert (gap.count, gap.sum) == (1, pytest.approx(1.5 / 30))  # 31 chunks have 30 gaps in the 1.5 s


def test_a_failed_call_has_an_error_type_and_no_tokens(bench):
    bench.meters.record_call(make_call(ended=11 * S, error=CallError("overloaded_error", 529)), bench.context, True)
    (duration,) = bench.points("gen_ai.client.operation.duration")
    assert duration.attributes["error.type"] == "overloaded_error"
    assert bench.points("gen_ai.client.token.usage") == []
    assert bench.points("gen_ai.client.operation.time_per_output_chunk") == []


def test_usage_of_unknown_shape_is_passed_over(bench):
    usage = {"input_tokens": None, "output_tokens": "9", "cache_read_input_tokens": {}}
    bench.meters.record_call(make_call(ended=11 * S, usage=usage), bench.context, True)
    assert bench.points("gen_ai.client.token.usage") == []


def test_drops_have_a_zero_first_and_chains_a_length(bench):
    bench.meters.dropped("rejected", "span", 7)
    bench.meters.dropped("rejected", "span", 2)
    key = (("claudescope.dropped.kind", "span"), ("claudescope.dropped.reason", "rejected"))
    assert bench.counts("claudescope.dropped") == {key: 9}
    assert len(bench.births) == 1
    call = make_call()
    call.chain.next_index = 6
    bench.meters.chain_ended(call.chain, call)
    (point,) = bench.points("claudescope.chain.steps")
    assert (point.sum, point.bucket_counts[4], dict(point.attributes)) == (6, 1, {"gen_ai.request.model": "claude-x"})


def test_every_instrument_is_the_one_of_the_table():
    bench = Bench(step_bounds=(0.35,), confidence_bounds=(0.6,), in_flight=lambda: 0)
    headers = {"claudescope.ratelimit.tokens.limit": 10, "claudescope.ratelimit.tokens.remaining": 5}
    call = make_call(ended=11 * S, first_chunk=10 * S, chunks=2, usage={"input_tokens": 1}, headers=headers)
    step = make_step(valid=False, checks=["tool_result"], kind="tool_run", tool_name="search", is_error=True)
    step.confidence = 1.0
    bench.step(step, call)
    bench.meters.record_call(call, bench.context, True)
    bench.meters.chain_ended(call.chain, call)
    bench.meters.dropped("queue_full", "step", 1)
    data = bench.reader.get_metrics_data()
    found = {
        metric.name: (metric.unit, metric.description)
        for scope in data.resource_metrics[0].scope_metrics
        for metric in scope.metrics
    }
    assert found == {name: (metric.unit, metric.brief) for name, metric in semconv.METRICS.items()}
    for scope in data.resource_metrics[0].scope_metrics:
        for metric in scope.metrics:
            allowed = semconv.METRICS[metric.name].attributes
            for point in metric.data.data_points:
                assert all(re.sub(r"label\..*", "label.KEY", key) in allowed for key in point.attributes)


def test_a_step_without_a_time_has_no_duration(bench):
    step = make_step(valid=False, checks=["stop_reason"])
    step.latency_source, step.confidence = None, 0.5
    bench.step(step, make_call(operation="batch_result"))
    assert bench.points("claudescope.step.duration") == []
    assert [point.sum for point in bench.points("claudescope.step.confidence")] == [0.5]
    assert bench.counts()[labels("false", "stop_reason")] == 1


def plain(bench, name, *keys):
    return {tuple(point.attributes[key] for key in keys): point.value for point in bench.points(name)}


def test_tokens_by_what_they_are_priced_as_add_up_to_the_usage():
    bench = Bench(labels=["tier"])
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 30,
        "cache_creation": {"ephemeral_5m_input_tokens": 18, "ephemeral_1h_input_tokens": 12},
        "output_tokens": 77,
    }
    call = make_call(ended=11 * S, response_model="claude-x-1", usage=usage, labels={"tier": "gold"})
    bench.meters.record_call(call, bench.context, True)
    bench.meters.record_call(call, bench.context, True)
    classes = plain(bench, "claudescope.tokens", "claudescope.token.class")
    assert classes == {
        ("input",): 20,
        ("cache_read",): 400,
        ("cache_write_5m",): 36,
        ("cache_write_1h",): 24,
        ("output",): 154,
    }
    assert sum(classes.values()) == sum(point.sum for point in bench.points("gen_ai.client.token.usage"))
    assert dict(bench.points("claudescope.tokens")[0].attributes) == {
        "gen_ai.request.model": "claude-x",
        "gen_ai.response.model": "claude-x-1",
        "claudescope.label.tier": "gold",
        "claudescope.token.class": "input",
    }
    assert len(bench.births) == 2  # the call's, and one in which all five are 0


def test_every_failing_check_and_reason_is_counted_the_step_once(bench):
    step = make_step(valid=False, kind="tool_use")
    step.reasons = [
        Reason("tool_input", "schema_mismatch", 3, 9),
        Reason("tool_input", "schema_mismatch", 20, 22),
        Reason("tool_name", "unknown"),
    ]
    bench.step(step, make_call())
    bench.step(step, make_call())
    keys = ("claudescope.step.kind", "claudescope.check", "claudescope.reason")
    assert plain(bench, "claudescope.step.failures", *keys) == {
        ("tool_use", "tool_input", "schema_mismatch"): 2,
        ("tool_use", "tool_name", "unknown"): 2,
    }
    assert bench.counts()[labels("false", "tool_input", kind="tool_use")] == 2


@pytest.mark.parametrize(
    ("confidence", "band"),
    [(0, "0.1"), (0.1, "0.1"), (0.1 + 1e-6, "0.2"), (0.1 * 3, "0.3"), (0.7, "0.7"), (0.95, "1.0"), (1, "1.0")],
)
def test_an_outcome_is_counted_where_confidence_and_verdict_are_known(bench, confidence, band):
    for valid, known in ((True, confidence), (True, confidence), (False, confidence), (None, confidence), (True, None)):
        step = make_step(valid=valid)
        step.confidence, step.confidence_method = known, "verbalised" if known is not None else None
        bench.step(step, make_call())
    keys = ("claudescope.step.confidence.method", "claudescope.step.confidence.band", "claudescope.step.valid")
    assert plain(bench, "claudescope.step.outcomes", *keys) == {
        ("verbalised", band, "true"): 2,
        ("verbalised", band, "false"): 1,
    }


def test_a_tool_that_the_app_ran_has_a_duration_by_tool_and_error(bench):
    for failed in (False, True):
        bench.step(make_step(kind="tool_run", tool_name="search", is_error=failed), make_call())
    bench.step(make_step(kind="tool_use", tool_name="search"), make_call())
    found = {point.attributes.get("error.type"): point for point in bench.points("gen_ai.execute_tool.duration")}
    assert {error: point.count for error, point in found.items()} == {None: 1, "tool_error": 1}
    assert dict(found[None].attributes) == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    assert found[None].sum == pytest.approx(0.3)
